"""A copy of OpenAlex becomes papers and citations, and a later copy is reached from an earlier run."""

from pathlib import Path

import pytest
from tests.corpus.made_openalex import DATE, url_of, work, write_copy
from tests.releases.server import Arrival, serve_copy
from tests.workflow.conftest import Run, edited, planned

from cocite.tables.files import read_table

LATER = "2026-07-24"
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
    assert sorted(jobs["download_shards"]) == [f"results/corpus/raw/works/{part}" for part in range(3)]
    assert len(jobs["ingest_works"]) == 3
    assert len(jobs["account"]) == 1
    assert not {"ingest", "ingest_with_authors", "update", "reuse_works"} & jobs.keys()


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
