"""A configuration with a base reaches the newer release through its diffs."""

import gzip
import json
from pathlib import Path

import pytest
from tests.releases.server import serve
from tests.releases.successor import generate_successor
from tests.workflow.conftest import Run

from cocite.core.tables.files import read_table
from cocite.demo.release import generate_release

OLDER, NEWER = "2026-01-06", "2026-01-13"
DATASETS = ("papers", "abstracts", "citations")
KEY = "a-key-that-must-stay-secret"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("releases")
    generate_release(parent / OLDER, release=OLDER, papers=200, topics=6, shards=1, seed=7)
    generate_successor(parent / OLDER, parent / NEWER, release=NEWER, share=0.02, seed=7)
    return {release: parent / release for release in (OLDER, NEWER)}


@pytest.fixture
def make(run: Run):
    """Let Snakemake make targets in a results folder of their own; return what it says."""

    def targets(results: str, release: str, *names: str, **corpus) -> str:
        folders = {"results": results, "logs": "logs", "benchmarks": "benchmarks"}
        config = {"release": release, "pathvars": folders, "corpus": {"buckets": 2, **corpus}}
        wanted = [f"{results}/corpus/{name}.parquet" for name in names]
        result = run.snakemake("--show-failed-logs", "--", *wanted, config=run.configure(config, f"{results}.yaml"))
        assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
        return result.stdout + result.stderr

    return targets


def records(folder: Path) -> list[dict]:
    return [
        json.loads(line) for path in folder.glob("*.gz") for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


@pytest.mark.end_to_end
@pytest.mark.long
def test_a_run_with_a_base_ends_in_the_newer_release_and_needs_the_base_no_more(run, make, folders, monkeypatch):
    monkeypatch.setenv("S2_API_KEY", KEY)
    shards = [f"ingested/{dataset}/0" for dataset in DATASETS]
    make("base", OLDER, *shards, source="directory", path=str(folders[OLDER]), keep_ingested=True)
    tables = [f"{table}/{bucket}" for table in ("papers", "citations") for bucket in range(2)]
    with serve(folders[NEWER], key=KEY) as api:
        corpus = {"source": "s2", "api": api, "base": "base", "shards": dict.fromkeys(DATASETS, 1)}
        make("updated", NEWER, *tables, **corpus)
    (run.folder / "base").rename(run.folder / "gone")
    assert "Nothing to be done" in make("updated", NEWER, *tables, **corpus)

    citations = read_table(run.folder / "updated/corpus/citations", "citations").select(["citing", "cited"])
    ends = [(row["citingcorpusid"], row["citedcorpusid"]) for row in records(folders[NEWER] / "citations")]
    assert {(row["citing"], row["cited"]) for row in citations.to_pylist()} == {
        (citing, cited) for citing, cited in ends if cited not in (None, citing)
    }
    papers = read_table(run.folder / "updated/corpus/papers", "papers").to_pylist()
    abstracts = {row["corpusid"]: row["abstract"] for row in records(folders[NEWER] / "abstracts")}
    assert {row["corpusid"]: (row["title"], row["abstract"]) for row in papers} == {
        row["corpusid"]: (row["title"].strip() or None, abstracts.get(row["corpusid"]))
        for row in records(folders[NEWER] / "papers")
    }
    for temporary in ("ingested", "changes"):
        assert not list((run.folder / "updated" / "corpus" / temporary).glob("*/*.parquet"))
