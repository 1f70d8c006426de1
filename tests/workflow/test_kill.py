"""A run that is killed ten times and started again each time ends with the same tables as one that was not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.workflow.conftest import ROOT, SMALL, Run

KILLS = 10
pytestmark = pytest.mark.long


def start(run: Run, log: Path) -> subprocess.Popen:
    """The run as `make run` starts it, in a process group of its own."""
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    snakemake += ["--resources", "mem_mb=4000", "--show-failed-logs"]
    snakemake += ["--configfile", "config.yaml", "--replace-workflow-config", "all"]
    with log.open("a") as output:
        return subprocess.Popen(snakemake, cwd=run.folder, stdout=output, stderr=output, start_new_session=True)


def finish(run: Run, log: Path) -> None:
    """Run to the end."""
    assert start(run, log).wait() == 0, log.read_text()[-5000:]


def tables(run: Run) -> dict[str, object]:
    results = run.folder / "results"
    found = {str(path.relative_to(results)): pq.read_table(path) for path in sorted(results.rglob("*.parquet"))}
    del found["report/costs.parquet"]  # what each rule's jobs took, which differs from run to run
    return found


def finished_jobs(log: Path) -> int:
    return log.read_text().count("Finished jobid")


def kill_after(process: subprocess.Popen, log: Path, jobs: int, seconds: float) -> None:
    """Kill the run some seconds after so many jobs are finished, those of earlier starts among them."""
    while finished_jobs(log) < jobs:
        assert process.poll() is None, log.read_text()[-5000:]
        time.sleep(0.02)
    time.sleep(seconds)
    assert process.poll() is None, "the run ended before it was killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_the_tables_are_the_same_after_ten_kills(tmp_path):
    """Kills are spread evenly over the jobs of a run, the last of them among its last jobs."""
    whole, killed = Run(folder=tmp_path / "whole"), Run(folder=tmp_path / "killed")
    for run in (whole, killed):
        run.folder.mkdir()
        run.configure(SMALL)
    finish(whole, tmp_path / "whole.log")
    jobs = finished_jobs(tmp_path / "whole.log")
    random = np.random.default_rng(int(os.environ.get("COCITE_KILL_SEED", "1")))
    for kill in range(KILLS):
        process = start(killed, tmp_path / "killed.log")
        kill_after(process, tmp_path / "killed.log", jobs * (kill + 1) // (KILLS + 2), float(random.uniform(0, 1)))
    finish(killed, tmp_path / "killed.log")
    expected, found = tables(whole), tables(killed)
    assert found.keys() == expected.keys()
    assert [name for name in expected if not found[name].equals(expected[name])] == []
