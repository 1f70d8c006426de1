"""A copy of OpenAlex becomes papers and citations, and a later copy is reached from an earlier run."""

import gzip
import json
import re
from pathlib import Path

import pytest
from tests.corpus.made_openalex import DATE, url_of, work, write_copy
from tests.releases.server import Arrival, serve_copy
from tests.workflow.conftest import Run, edited, planned

from cocite.core.tables.files import read_table

LATER = "2026-07-24"
FAR = 5_000_000_000
TABLES = [f"{table}/{bucket}" for table in ("papers", "citations") for bucket in range(2)]


def works(count: int) -> list[dict]:
    return [
        work(2**31 + number, abstract=f"About {number}", references=[2**31 + (3 * number) % count, 2**31], year=2000)
        | {"updated_date": f"2026-06-{1 + number % 4:02}"}
        for number in range(count)
    ]


@pytest.fixture
def make(run: Run):
    """Let Snakemake make papers and citations in a results folder of their own; return what it says."""

    def tables(results: str, release: str, **corpus) -> str:
        folders = {"results": results, "logs": "logs", "benchmarks": "benchmarks"}
        source = {"source": "openalex", "jobs": 3, "buckets": 2, **corpus}
        config = run.configure({"release": release, "pathvars": folders, "corpus": source}, f"{results}.yaml")
        wanted = [f"{results}/corpus/{name}.parquet" for name in TABLES]
        result = run.snakemake("--show-failed-logs", "--", *wanted, config=config)
        assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
        return result.stdout + result.stderr

    return tables


def ends(folder: Path) -> set[tuple[int, int]]:
    rows = read_table(folder / "corpus/citations", "citations").to_pylist()
    return {(row["citing"], row["cited"]) for row in rows}


def test_each_job_downloads_some_files_and_another_ingests_them_to_three_tables(run):
    config = edited(corpus={"source": "openalex", "jobs": 3, "buckets": 2}, benchmarks={"holdout": {"kind": "holdout"}})
    jobs = planned(run, config | {"release": DATE}, "corpus")
    assert sorted(jobs.outputs("download_shards")) == [f"results/corpus/raw/works/{part}" for part in range(3)]
    assert (len(jobs.of("ingest_works")), len(jobs.of("account"))) == (3, 1)
    assert not {"ingest", "ingest_with_authors", "update", "reuse_works"} & jobs.rules()


OTHER_IDS = {
    "corpus": {"source": "openalex", "jobs": 2, "buckets": 2},
    "release": DATE,
    "baselines": {
        "fasttext": {"kind": "fasttext"},
        "sif": {"kind": "sif", "of": "fasttext"},
        "sgc": {"kind": "sgc", "of": "sif", "graph": "citation"},
    },
}
"""What the small configuration has on a corpus of OpenAlex."""


def with_benchmark(folder: Path, **more) -> dict:
    """That configuration, with a benchmark whose documents have Semantic Scholar's ids."""
    (folder / "scidocs").mkdir()
    scidocs = {"kind": "scidocs", "folder": str(folder / "scidocs")}
    config = edited(**OTHER_IDS, benchmarks={"holdout": {"kind": "holdout"}, "scidocs": scidocs})
    config["corpus"] = config["corpus"] | more.pop("corpus", {})
    return config | more


def test_documents_of_other_ids_are_looked_for_through_matches(run, tmp_path):
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/0.jsonl").write_text('{"corpusid": 1, "externalids": {"MAG": "1"}}\n')
    corpus = {"match": str(tmp_path / "papers")}
    jobs = planned(run, with_benchmark(tmp_path, corpus=corpus, exclude=["scidocs"]))
    assert len(jobs.of("match")) == 1
    papers = "results/corpus/document_papers/scidocs.parquet"
    assert jobs.one("find_documents").outputs[0] == papers
    assert len(jobs.commands("corpus ingest-works --mag")) == 2
    commands = [job.command for job in jobs.jobs]
    documents = "results/evaluation/scidocs/documents.parquet"
    for told in (
        "--matches results/corpus/matches.parquet",
        f"cocite corpus select {documents} {papers} ",
        f"cocite triplets check {documents} {papers} ",
        f'"document_papers": "{papers}"',
    ):
        assert any(told in command for command in commands)


def test_without_a_match_no_mag_ids_are_kept_and_documents_of_other_ids_are_counted_as_such(run, tmp_path):
    jobs = planned(run, with_benchmark(tmp_path))
    assert "match" not in jobs.rules()
    assert not [job for job in jobs.jobs if "--mag" in job.command]
    assert re.match(r"cocite corpus find-documents \S+ --memory-mb", jobs.one("find_documents").command)


@pytest.mark.long
@pytest.mark.end_to_end
def test_papers_of_openalex_are_matched_and_the_documents_of_a_benchmark_are_kept_out(run, tmp_path):
    # Every work cites some others; three of ten have Semantic Scholar's papers 0, 1, … beside them.
    made = [
        work(
            FAR + n,
            abstract=f"About {n}",
            references=[FAR + (n + m) % 30 for m in (1, 2, 3)],
            mag=str(n) if n % 10 == 0 else None,
            doi=f"10.1/A{n}" if n % 10 < 3 else None,
        )
        for n in range(30)
    ]
    write_copy(tmp_path / "copy", "jsonl", made)
    (tmp_path / "papers").mkdir()
    theirs = [{"corpusid": n, "externalids": {"MAG": str(n), "DOI": f"10.1/a{n}"}} for n in range(30)]
    (tmp_path / "papers/0.gz").write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in theirs).encode()))
    write_mdcr(tmp_path / "mdcr", {"10": ["21", "5"]})
    config = {
        "release": DATE,
        "corpus": {
            "source": "openalex",
            "format": "jsonl",
            "path": str(tmp_path / "copy/data/jsonl"),
            "jobs": 1,
            "buckets": 2,
            "match": str(tmp_path / "papers"),
        },
        "queries": {"count": 10, "min_citations": 1, "min_references": 1},
        "benchmarks": {"mdcr": {"kind": "mdcr", "folder": str(tmp_path / "mdcr")}},
        "exclude": ["mdcr"],
    }
    targets = ["corpus", "results/report/id_spaces.parquet"]
    result = run.snakemake("--show-failed-logs", *targets, config=run.configure(config))
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    corpus = run.folder / "results/corpus"
    rows = read_table(corpus / "matches.parquet", "matches").to_pylist()
    assert {row["corpusid"] - FAR: row["matched_by"] for row in rows} == {
        n: "mag" if n % 10 == 0 else "doi" for n in range(30) if n % 10 < 3
    }
    assert all(row["s2_corpusid"] == row["corpusid"] - FAR for row in rows)
    excluded = [
        row["corpusid"]
        for row in read_table(corpus / "queries.parquet", "queries").to_pylist()
        if row["split"] == "excluded"
    ]
    assert excluded == [FAR + 10, FAR + 21]  # 5 is matched with no work
    spaces = {
        row["owner"]: (row["id_space"], row["known_by"])
        for row in read_table(run.folder / "results/report/id_spaces.parquet", "id_spaces").to_pylist()
    }
    assert spaces == {"corpus": ("openalex", None), "mdcr": ("s2", "matches")}


def write_mdcr(folder: Path, cited: dict[str, list[str]]) -> None:
    """A benchmark in MDCR's layout: a query cites the first of its candidates."""
    folder.mkdir()
    judged = {"Art": {query: {"true": papers[:1], "bm25": papers[1:]} for query, papers in cited.items()}}
    (folder / "mdcr_test.json").write_text(json.dumps(judged))
    papers = [*cited, *(paper for papers in cited.values() for paper in papers)]
    lines = [json.dumps({"paper_id": paper, "title": f"Title {paper}", "abstract": "A"}) + "\n" for paper in papers]
    (folder / "mdcr_test_data.jsonl").write_text("".join(lines))


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_later_copy_is_reached_from_an_earlier_run_which_is_then_needed_no_more(run, make, tmp_path, monkeypatch):
    write_copy(tmp_path / "older", "parquet", works(40))
    monkeypatch.setattr("tests.corpus.made_openalex.DATE", LATER)
    added = work(2**31 + 50, references=[2**31 + 1]) | {"updated_date": "2026-07-01"}
    later = [*works(40)[:38], added]
    write_copy(tmp_path / "later", "parquet", later)
    requests: list[Arrival] = []
    with serve_copy(tmp_path / "older") as older, serve_copy(tmp_path / "later", requests=requests) as newer:
        make("base", DATE, url=f"{older}/data/parquet", keep_ingested=True)
        corpus = {"url": f"{newer}/data/parquet", "base": "base"}
        make("updated", LATER, **corpus)
        make("fresh", LATER, url=corpus["url"])
        (run.folder / "base").rename(run.folder / "gone")
        assert "Nothing to be done" in make("updated", LATER, **corpus)
    for table in ("papers", "citations"):
        made = [read_table(run.folder / results / "corpus" / table, table) for results in ("updated", "fresh")]
        assert made[0].equals(made[1])
    assert ends(run.folder / "updated") == {
        (int(each["id"].removeprefix(url_of(0)[:-1])), int(cited.removeprefix(url_of(0)[:-1])))
        for each in later
        for cited in each["referenced_works"]
        if cited != each["id"]
    }
    assert not list((run.folder / "updated/corpus/ingested").glob("*/*.parquet"))
