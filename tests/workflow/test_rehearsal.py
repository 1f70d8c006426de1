"""The rehearsal of a whole release at a thousandth of its size ends with a report, and no job exceeds its request."""

import json
import subprocess
import sys

import duckdb
import pytest
from tests.benchmarks.rehearse import peak_mb
from tests.workflow.conftest import ROOT


@pytest.mark.long
@pytest.mark.end_to_end
@pytest.mark.timeout(3600)
def test_a_thousandth_of_a_release_goes_through_all_stages_within_the_memory_that_jobs_request(tmp_path):
    command = [sys.executable, "-m", "tests.benchmarks", "rehearse", str(tmp_path), "--scale", "0.001"]
    subprocess.run(command, cwd=ROOT, check=True)
    run = tmp_path / "rehearsal-0.001"
    jobs = [json.loads(line) for path in (run / "benchmarks").rglob("*.jsonl") for line in path.open()]
    assert {"download_shards", "count_pairs", "train_graph_embedding", "rank_candidates"} <= {
        job["rule_name"] for job in jobs
    }
    assert [job["rule_name"] for job in jobs if peak_mb(job) > job["resources"]["mem_mb"]] == []
    counts = json.loads((run / "release/release.json").read_text())["counts"]
    with duckdb.connect(run / "results/whole/cocite.duckdb", read_only=True) as database:
        for table in ("papers", "citations"):
            ((rows,),) = database.sql(f"SELECT count(*) FROM {table}").fetchall()
            assert rows == counts[table]
    assert (run / "results/whole/report/index.html").is_file()
