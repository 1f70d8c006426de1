"""A sample of a corpus: which papers it has, that it holds all that the corpus has of them, and that it can be read."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.configurations import recorded
from tests.corpus.made import Made, make_corpus
from tests.graph.conftest import write_queries
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import resolve
from cocite.config.entries import as_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.sample import Sample, write_sample
from cocite.demo.release import generate_release

EVERYTHING = 10**6
"""More neighbours than any paper has."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A generated corpus with the names of authors, whose queries are every seventh paper."""
    folder = tmp_path_factory.mktemp("whole")
    generate_release(folder / "release", release="2026-01-06", papers=400, topics=6, shards=2, seed=3)
    (folder / "release/papers/README").write_text("Whose papers they are.")
    (folder / "release/release.json").unlink()
    corpus = {"source": "directory", "path": f"{folder}/release", "authors": True, "contexts": {}}
    made = make_corpus(folder / "results", corpus)
    write_queries(made.results / "corpus/queries.parquet", dict.fromkeys([*made.papers][::7], "train"))
    return made


@pytest.fixture
def cut(tmp_path: Path) -> Callable[..., tuple[Sample, Path]]:
    """Cut a sample from a corpus; return what it has, and its folder."""

    def cut(made: Made, folder: str = "sample", *, threads: int = 1, **changed: Any) -> tuple[Sample, Path]:
        chosen = {"count": 3, "depth": 1, "neighbours": 3} | changed
        output = tmp_path / folder
        return write_sample(results=made.results, output=output, **chosen, memory_mb=500, threads=threads), output

    return cut


def read(folder: Path, **keys: Any) -> Made:
    (folder / "release.json").unlink()  # the steps of the tests name every release `mine`
    return make_corpus(folder.with_name(f"{folder.name}-results"), {"source": "directory", "path": str(folder), **keys})


def papers_of(made: Made) -> set[int]:
    """The papers of a corpus, with or without a record."""
    return {*made.papers} | {paper for pair in made.pairs for paper in pair}


def around(pairs: Iterable[tuple[int, int]], start: set[int], depth: int) -> set[int]:
    found = set(start)
    for _ in range(depth):
        found |= {paper for pair in pairs if found & {*pair} for paper in pair}
    return found


def check_consistent(sample: Made, whole: Made) -> None:
    """The sample has exactly the citations among its papers, and the records that the corpus has of them."""
    members = papers_of(sample)
    assert sample.pairs == {pair for pair in whole.pairs if members.issuperset(pair)}
    assert sample.papers == {paper: row for paper, row in whole.papers.items() if paper in members}
    rows = [row for row in whole.rows("citations") if members.issuperset((row["citing"], row["cited"]))]
    assert sample.rows("citations") == rows


def test_a_sample_has_exactly_the_citations_among_its_papers_and_their_whole_records(whole, cut):
    described, folder = cut(whole, count=5, depth=2)
    sample = read(folder, authors=True, contexts={})
    check_consistent(sample, whole)
    members = papers_of(sample)
    sentences = [
        row | {"cited": cited}
        for row in whole.rows("contexts")
        if row["citing"] in members and (cited := [paper for paper in row["cited"] if paper in members])
    ]
    assert sample.rows("contexts") == sentences != []
    assert 20 < described.papers == len(sample.papers) < len(whole.papers)
    assert described.abstracts == sum(row["abstract"] is not None for row in sample.papers.values())
    assert described.citations == len(sample.pairs)
    assert described.unrecorded == len(papers_of(sample)) - len(sample.papers)


def test_a_sample_is_read_with_the_twins_and_the_sentences_of_its_run(whole, cut, capsys):
    settings = {"twins": "exclude", "contexts": {"min_words": 3}}
    file = whole.results / "configuration.yaml"
    file.write_text(yaml.safe_dump(as_json(recorded({"corpus": {"source": "demo", **settings}}))))
    cut(whole)
    file.unlink()
    [line] = [line for line in capsys.readouterr().out.splitlines() if "corpus:" in line]
    corpus = yaml.safe_load(line)["corpus"]
    assert (corpus["twins"], corpus["contexts"]["min_words"]) == ("exclude", 3)


def tables_in(folder: Path, papers: str, citations: str, **keys: Any) -> dict[str, Any]:
    """A corpus of two tables in CSV, whose columns have the names that the program has for them."""
    tables = {}
    for name, text in {"papers": papers, "citations": citations}.items():
        (folder / f"{name}.csv").write_text(text)
        columns = {column: column for column in text.partition("\n")[0].split(",")}
        tables[name] = {"files": f"{folder}/{name}.csv", "columns": columns}
    return {"source": "table", **tables, **keys}


def test_a_sample_of_papers_with_ids_of_their_own_and_few_abstracts_is_read_as_that(tmp_path, cut, capsys):
    papers = "".join(f"{n},Title {n},{'' if n % 3 else 'Text.'}\n" for n in range(30))
    citations = "".join(f"{n + 1},{n}\n" for n in range(29))
    keys = {"allow_missing_abstract": True}
    corpus = tables_in(tmp_path, f"id,title,abstract\n{papers}", f"citing,cited\n{citations}", **keys)
    made = make_corpus(tmp_path / "made", corpus)
    write_queries(made.results / "corpus/queries.parquet", dict.fromkeys(made.papers, "train"))
    config = as_json(recorded({"corpus": corpus}))
    (made.results / "configuration.yaml").write_text(yaml.safe_dump(config))
    _, folder = cut(made, depth=5)
    assert "id_space: own, allow_missing_abstract: true}" in capsys.readouterr().out
    sample = read(folder, id_space="own", allow_missing_abstract=True)
    assert {row["title"] for row in sample.papers.values()} <= {f"Title {n}" for n in range(30)}
    assert sample.papers


def test_names_of_papers_come_with_the_sample(tmp_path, cut):
    corpus = tables_in(tmp_path, "id,abstract\na,A\nb,B\nc,C\n", "citing,cited\na,b\nb,c\n", ids="string")
    (tmp_path / "ids.txt").write_text("a\n")
    _, folder = cut(make_corpus(tmp_path / "made", corpus), ids=tmp_path / "ids.txt")
    names = read_table(folder / "names.parquet", "names").to_pylist()
    assert names == [{"corpusid": 0, "name": "a"}, {"corpusid": 1, "name": "b"}]


@pytest.mark.parametrize("depth", [1, 2])
def test_without_a_cap_all_papers_up_to_the_depth_are_there(whole, cut, depth, tmp_path):
    start = {[*whole.papers][50], [*whole.papers][-1]}
    (tmp_path / "ids.txt").write_text("\n".join(map(str, start)))
    _, folder = cut(whole, ids=tmp_path / "ids.txt", depth=depth, neighbours=EVERYTHING)
    assert papers_of(read(folder, authors=True)) == around(whole.pairs, start, depth)


def test_of_each_paper_no_more_references_and_citing_papers_are_followed_than_asked_for(whole, cut, tmp_path):
    pairs = whole.pairs
    ends = [Counter(pair[end] for pair in pairs) for end in (0, 1)]
    paper = max(whole.papers, key=lambda paper: min(counts[paper] for counts in ends))
    (tmp_path / "ids.txt").write_text(str(paper))
    cited, citing = ({pair[1 - end] for pair in pairs if pair[end] == paper} for end in (0, 1))
    followed = [
        papers_of(read(cut(whole, f"{count}", ids=tmp_path / "ids.txt", neighbours=count)[1])) - {paper}
        for count in (1, 2)
    ]
    assert [(len(some & cited), len(some & citing)) for some in followed] == [(1, 1), (2, 2)]
    assert followed[0] < followed[1]


def test_the_queries_that_a_sample_starts_from_are_drawn_by_the_seed(whole, cut):
    queries = read_table(whole.results / "corpus/queries.parquet", "queries")["corpusid"].to_pylist()
    drawn = [
        papers_of(read(cut(whole, f"{seed}-{count}", seed=seed, count=count)[1])) & {*queries}
        for seed, count in ((1, 4), (2, 4), (1, 9), (1, EVERYTHING))
    ]
    assert drawn[0] != drawn[1]
    assert drawn[0] < drawn[2] < drawn[3] == {*queries}


def test_a_sample_depends_on_neither_threads_nor_buckets(whole, cut, tmp_path):
    release = whole.results.parent / "release"
    corpus = {"source": "directory", "path": str(release), "authors": True, "buckets": 5}
    other = make_corpus(tmp_path / "other", corpus)
    write_queries(other.results / "corpus/queries.parquet", dict.fromkeys([*whole.papers][::7], "train"))
    folders = [cut(whole, "one", depth=2)[1], cut(whole, "two", depth=2, threads=4)[1], cut(other, "three", depth=2)[1]]
    first, *others = [
        {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} for folder in folders
    ]
    assert all(files == first for files in others)


def test_the_configuration_that_is_printed_reads_the_sample(whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["corpus", "sample", "--results", str(whole.results), "--output", "small", "--count", "4", "--depth", "1"]
    ran = CliRunner().invoke(app, words, catch_exceptions=False)
    assert ran.exit_code == 0
    first, *_ = ran.stdout.splitlines()
    lines = [line for line in ran.stdout.splitlines() if line.startswith("    ")]
    assert len(lines) == 3
    config = resolve(yaml.safe_load("\n".join(line.strip() for line in lines)))
    assert config["release"] == "mine-sample"
    assert config["corpus"]["authors"]
    sample = make_corpus(tmp_path / "made", config["corpus"], release=config["release"])
    assert f"small: {len(sample.papers):,} papers" in first
    assert Path("small/papers/README.txt").read_text() == "Whose papers they are."


def test_what_cannot_be_sampled_is_told_in_a_sentence(whole, cut, tmp_path):
    (tmp_path / "ids.txt").write_text(f"{min(whole.papers)}\n99999999999\n")
    (tmp_path / "there").mkdir()
    for made, asked, said in (
        (whole, {"ids": tmp_path / "ids.txt"}, r"1 of its papers, the first 99999999999, have no record"),
        (whole, {"count": 1, "depth": 0}, "would have no citations"),
        (whole, {"folder": "there"}, "there exists already"),
        (Made(tmp_path), {}, "does not exist"),
    ):
        with pytest.raises(InputError, match=said):
            cut(made, **asked)
