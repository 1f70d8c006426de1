"""A release that is downloaded by a run has the tables of the same release in a folder, and no key is left behind."""

import pytest
from tests.releases.server import serve
from tests.workflow.conftest import Run

from cocite.core.tables.files import read_table
from cocite.demo.release import generate_release

pytestmark = pytest.mark.end_to_end

RELEASE, KEY = "2026-01-06", "a-key-that-must-stay-secret"
TABLES = ("papers", "citations")


def corpus_of(run: Run, name: str, **source) -> dict[str, list[dict]]:
    """The rows of the tables of a corpus that a run makes in a folder of this name."""
    folders = {"results": f"results/{name}", "logs": f"logs/{name}", "benchmarks": f"benchmarks/{name}"}
    config = {"release": RELEASE, "pathvars": folders, "corpus": {"buckets": 1, **source}}
    files = [f"results/{name}/corpus/{table}/0.parquet" for table in TABLES]
    run.make(*files, config=run.configure(config, f"{name}.yaml"))
    return {table: read_table(run.folder / files[number], table).to_pylist() for number, table in enumerate(TABLES)}


def test_a_downloaded_release_has_the_tables_of_a_folder_and_leaves_no_key(run, tmp_path, monkeypatch):
    release = tmp_path / "release"
    generate_release(release, release=RELEASE, papers=60, topics=3, shards=1, seed=7)
    monkeypatch.setenv("S2_API_KEY", KEY)
    with serve(release, key=KEY) as api:
        served = corpus_of(run, "served", source="s2", api=api, shards=dict.fromkeys((*TABLES, "abstracts"), 1))
    assert served == corpus_of(run, "copied", source="directory", path=str(release))
    assert len(served["papers"]) == 60
    said = [*run.folder.glob("logs/served/**/*.log"), run.folder / "results/served/corpus/manifest.json"]
    assert len(said) > 5
    for path in said:
        assert "Signature=" not in path.read_text(), path
        assert KEY not in path.read_text(), path
    assert (run.folder / "results/served/.state/api-turns").stat().st_size == 0
