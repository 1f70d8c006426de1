"""Benchmarks run commands of the program and functions that there are, and the tables that they make fit.

Nobody runs benchmarks often enough to see it there.
"""

import re
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks import baselines, made_release, made_triplets, measuring, rehearse, retrieval, triplets
from tests.benchmarks.__main__ import FILES, function_of, parsed
from tests.conftest import ROOT
from typer import Context
from typer.main import get_command

from cocite.cli import app
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.demo.release import read_rows

COST = measuring.Cost(wall=1.0, cpu=1.0, peak_mb=1.0)


def check(command):
    """Raise where the words of a command would not be taken."""
    program, *words = map(str, command)
    if program.endswith("/cocite"):
        step, context = get_command(app), None
        while hasattr(step, "get_command"):
            context = Context(step, parent=context)
            step = step.get_command(context, words.pop(0))
        step.make_context(step.name, words)
    else:
        parsed(function_of(words[2]), words[3:])


@pytest.mark.parametrize(
    ("name", "sizes", "commands"),
    [
        ("baselines", {}, 8),
        ("embedding", {}, 9),
        ("learning", {}, 2),
        ("merge", {"ROWS": 100}, 8),
        pytest.param("mining", {}, 8, marks=pytest.mark.long),  # whose rival has libraries that take long to import
        ("pairs", {}, 3),
        ("searching", {}, 9),
        ("triplets", {"ROUNDS": 1}, 13),
        ("twins", {}, 2),
    ],
)
def test_the_program_takes_the_commands_of_a_benchmark(tmp_path, monkeypatch, name, sizes, commands):
    benchmark, taken = function_of(name), []
    module = sys.modules[benchmark.__module__]

    def run(*given, **_):
        for command in given:
            if isinstance(command, list):
                check(command)
                taken.append(command)
            elif callable(command):
                command()
        return COST

    fakes = {
        "run": run,
        "run_and_read": lambda command: (run(command), "10 links"),
        "answer": lambda function, *arguments: (run(measuring.python(function, *arguments)), 1.0),
        "compare": lambda title, ours, rival, *_: (run(ours, rival), 1.0),
    }
    for changed, value in {**fakes, **sizes}.items():
        monkeypatch.setattr(module, changed, value, raising=changed in sizes)
    with suppress(OSError, InputError, TypeError):  # as it looks at what the commands would have written
        benchmark(tmp_path)
    assert len(taken) >= commands


def test_each_benchmark_that_make_or_the_manual_names_is_there():
    texts = [path.read_text() for path in (ROOT / "Makefile", *(ROOT / "docs").rglob("*.md"))]
    named = re.findall(r"BENCH(?: \?)?=\"? ?((?:[a-z]\w* ?)+)|-m tests\.benchmarks (\w+)", "\n".join(texts))
    names = {name for pair in named for words in pair for name in words.split()} - {"NAME"}
    assert {"ingest", "walks", "rehearse", "engine_memory", "pairs"} <= names
    for name in names:
        file = Path(__file__).with_name(f"{FILES.get(name, name)}.py")
        assert f"\ndef {name if name in FILES else 'main'}(" in file.read_text(), name


def test_made_papers_have_texts_and_a_hundred_are_held_out(tmp_path):
    made_triplets.write_papers(tmp_path, 120)
    papers = read_table(tmp_path / "papers", "papers", ["corpusid", "title", "abstract", "has_text"]).to_pylist()
    assert [paper["corpusid"] for paper in papers] == list(range(1, 121))
    assert all(paper["has_text"] and paper["abstract"] for paper in papers)
    assert {len(paper["title"].split()) for paper in papers} == {10}
    assert read_table(tmp_path / "queries.parquet", "queries", ["split"])["split"].to_pylist() == ["holdout"] * 100


def test_each_made_paper_has_a_vector_and_cites_earlier_ones(tmp_path):
    baselines.write_features(tmp_path, 30)
    assert len(read_table(tmp_path / "vectors.parquet", "baseline_paper_embeddings", ["corpusid"])) == 30
    edges = read_table(tmp_path / "edges.parquet", "edges", ["source", "target"]).to_pylist()
    assert {edge["source"] for edge in edges} == set(range(2, 31))
    assert all(1 <= edge["target"] < edge["source"] for edge in edges)


def test_made_papers_of_triplets_lie_in_two_buckets_with_neighbours_of_each_query(tmp_path, monkeypatch):
    monkeypatch.setattr(triplets, "DRAWN_WORDS", 10_000)
    triplets.write_tables(tmp_path, 50, 4, 6)
    assert len(read_table(tmp_path / "papers", "papers", ["corpusid"])) == 50
    neighbours = read_table(tmp_path / "neighbours", "neighbours", ["query", "rank"]).to_pylist()
    assert sorted(row["rank"] for row in neighbours) == sorted([1, 2, 3, 4, 5, 6] * 4)


def test_made_documents_have_titles_and_abstracts(tmp_path):
    made_triplets.write_documents(tmp_path / "documents.parquet", 12)
    documents = read_table(tmp_path / "documents.parquet", "documents", ["title", "abstract"]).to_pylist()
    assert [bool(row["title"] and row["abstract"]) for row in documents] == [True] * 12


def test_brought_vectors_are_of_made_documents(tmp_path):
    baselines.write_brought(tmp_path / "made", 3)
    assert len(read_table(tmp_path / "made/documents.parquet", "documents", ["document"])) == 3
    assert len((tmp_path / "made/vectors.jsonl").read_text().splitlines()) == 3


def test_a_made_run_has_titles_citations_and_a_vector_of_each_paper(tmp_path):
    retrieval.write_run(tmp_path, 60, 8)
    assert len(read_table(tmp_path / "encoder/model/seed-1/papers", "paper_embeddings", ["corpusid"])) == 60
    titles = read_table(tmp_path / "corpus/papers", "papers", ["title"])["title"].to_pylist()
    assert {len(title.split()) for title in titles} == {10}
    for name, path in (("citations", "corpus/citations"), ("cocitations", "graph/cocitation/cocitations")):
        assert len(read_table(tmp_path / path, name)) == 600


def test_as_many_made_works_match_as_a_query_shall_find_and_they_cite_earlier_ones():
    works = rehearse.made_works(1000, 300)
    assert len(rehearse.Unchanging(works).matching({"filter": rehearse.FILTER})) == 300
    year = {each["id"]: each["publication_year"] for each in works}
    cited = [(each, other) for each in works for other in each["referenced_works"] if other in year]
    assert sum(year[other] < year[each["id"]] for each, other in cited) > 0.9 * len(cited) > 2000


def test_a_made_release_has_the_flaws_and_the_tails_of_a_real_one(tmp_path, monkeypatch):
    monkeypatch.setattr(made_release, "sentences_of", lambda _: ["It cites.", "So does this."])
    counts = made_release.write_release(
        tmp_path / "release", 1e-5, "2026-01-06", {"papers": 2, "abstracts": 1, "citations": 3}
    )
    papers = {row["corpusid"]: row for row in read_rows(tmp_path / "release/papers")}
    rows = list(read_rows(tmp_path / "release/citations"))
    assert (len(papers), len(rows)) == (counts["papers"], counts["rows"]) == (2200, 51_000)
    abstracts = {row["corpusid"] for row in read_rows(tmp_path / "release/abstracts")}
    assert abstracts < papers.keys()
    assert abs(len(abstracts) / len(papers) - 100 / 220) < 0.05
    pairs = Counter((row["citingcorpusid"], row["citedcorpusid"]) for row in rows if row["citedcorpusid"])
    assert len(pairs) == counts["citations"]
    assert 0.2 < sum(row["citedcorpusid"] is None for row in rows) / len(rows) < 0.24
    known = [pair for pair in pairs if pair[1] in papers]
    assert 0.03 < 1 - len(known) / len(pairs) < 0.07
    assert all(
        papers[cited]["year"] <= papers[citing]["year"]
        for citing, cited in known
        if papers[citing]["year"] and papers[cited]["year"]
    )
    cited = np.sort([*Counter(cited for _, cited in pairs).values()])[::-1]
    assert cited[:22].sum() > 0.1 * cited.sum()
    assert {type(row["contexts"]) for row in rows} == {list, type(None)}
