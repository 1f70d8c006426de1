"""Corpora as people have them in the workflow: tables with names for ids, and a sample of a finished run's corpus."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.workflow.conftest import SMALL, Run, edited, planned

from cocite.core.tables.files import read_table
from cocite.corpus.sample import write_sample

RULES = (
    *("list_names", "number_names", "ingest_tables"),
    *("ingest", "ingest_with_authors", "download_shards", "number_ids"),
)


@pytest.fixture
def tables(run: Run) -> dict[str, Any]:
    """Two files of papers and one of citations, in a ring; and the corpus of a configuration that reads them."""
    names = [f"10.1/{number:03}" for number in range(60)]
    for part in range(2):
        rows = "".join(f"{name},Title,Text,Ada;Bo\n" for name in names[part::2])
        (run.folder / f"papers-{part}.csv").write_text(f"doi,title,abstract,authors\n{rows}")
    ring = "".join(f"{names[place]},{names[place - step]}\n" for place in range(60) for step in (1, 2, 3))
    (run.folder / "citations.csv").write_text(f"from,to\n{ring}")
    columns = {"id": "doi", "title": "title", "abstract": "abstract"}
    columns |= {"authors": {"column": "authors", "separator": ";"}}
    return {
        **{"source": "table", "ids": "string", "authors": True},
        "papers": {"files": "papers-*.csv", "columns": columns},
        "citations": {"files": "citations.csv", "columns": {"citing": "from", "cited": "to"}},
    }


def jobs(run: Run, tables: dict[str, Any], **keys: Any) -> dict[str, int]:
    """How many jobs of the rules above a corpus would have."""
    config = {"release": "mine", "corpus": tables, **keys}
    counts = Counter(job.rule for job in planned(run, config, "corpus").jobs)
    return {rule: counts[rule] for rule in RULES if counts[rule]}


def test_each_file_is_listed_and_ingested_by_jobs_of_its_own_and_names_are_numbered_once(run, tables, monkeypatch):
    monkeypatch.chdir(run.folder)
    assert jobs(run, tables) == {"list_names": 3, "number_names": 1, "ingest_tables": 5}
    # What Snakemake takes for a wildcard or a folder elsewhere is a text here.
    whole = tables | {"ids": "integer", "papers": tables["papers"] | {"nulls": ["{na}", "<results>"]}}
    assert jobs(run, whole) == {"ingest_tables": 5}


@pytest.mark.long
def test_a_run_finds_queries_and_excluded_papers_by_their_names(run, tables, monkeypatch):
    monkeypatch.chdir(run.folder)
    Path("wanted.txt").write_text("10.1/007\n10.1/011\n10.1/013\nnobody\n")
    Path("out.txt").write_text("10.1/011\n10.1/059\n")
    keys = {"queries": {"from": "file", "path": "wanted.txt"}, "exclude": ["out.txt"]}
    run.make("corpus", config=run.configure({"release": "mine", "corpus": tables, **keys}))
    names = read_table(Path("results/corpus/names.parquet"), "names")["name"].to_pylist()
    rows = read_table(Path("results/corpus/queries.parquet"), "queries").to_pylist()
    queries = {names[row["corpusid"]]: row["split"] for row in rows}
    assert {name for name, split in queries.items() if split != "excluded"} == {"10.1/007", "10.1/013"}
    assert {name for name, split in queries.items() if split == "excluded"} == {"10.1/011", "10.1/059"}
    papers = read_table(Path("results/corpus/papers"), "papers").to_pylist()
    assert {tuple(row["authors"]) for row in papers} == {("Ada", "Bo")}
    # What has run stays as it is, though what was listed is gone.
    assert jobs(run, tables, **keys) == {}


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_sample_of_a_corpus_runs_to_a_report_with_the_lines_that_are_printed(finished, run, capsys):
    folders = {"results": finished.folder / "results", "output": run.folder / "my-sample"}
    written = write_sample(**folders, count=60, neighbours=8, memory_mb=1000, threads=1)
    assert written.papers < 700
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]
    config = edited(benchmarks={"holdout": SMALL["benchmarks"]["holdout"]}) | yaml.safe_load("\n".join(lines))
    run.make("all", config=run.configure(config))
    assert (run.folder / "results/my-sample/report/index.html").is_file()
