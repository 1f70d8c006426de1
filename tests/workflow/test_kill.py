"""A run that is killed ten times and started again each time ends with the same tables as one that was not."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.workflow.conftest import SMALL, Run

KILLS = 10


class Logged:
    """A run whose starts append what they say to one log."""

    def __init__(self, folder: Path) -> None:
        self.run, self.log = Run(folder=folder), folder / "snakemake.log"
        folder.mkdir()
        self.run.configure(SMALL)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the run in a process group of its own."""
        command = self.run.command("--show-failed-logs", "all")
        with self.log.open("a") as log:
            return subprocess.Popen(command, cwd=self.run.folder, stdout=log, stderr=log, start_new_session=True)

    def finish(self) -> dict[str, object]:
        """Run to the end; return the tables, but for what each rule's jobs took, which differs from run to run."""
        assert self.start().wait() == 0, self.log.read_text()[-5000:]
        results = self.run.folder / "results"
        found = {str(path.relative_to(results)): pq.read_table(path) for path in results.rglob("*.parquet")}
        del found["report/costs.parquet"]
        return found

    def jobs(self) -> int:
        """The jobs that are finished."""
        return self.log.read_text().count("Finished jobid")

    def kill_after(self, jobs: int, seconds: float) -> None:
        """Start the run, and kill it some seconds after so many jobs are finished, those of earlier starts included."""
        process = self.start()
        while self.jobs() < jobs:
            assert process.poll() is None, self.log.read_text()[-5000:]
            time.sleep(0.02)
        time.sleep(seconds)
        assert process.poll() is None, "the run ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.long
def test_the_tables_are_the_same_after_ten_kills(tmp_path):
    """Kills are spread evenly over the jobs of a run, the last of them among its last jobs."""
    whole, killed = Logged(tmp_path / "whole"), Logged(tmp_path / "killed")
    expected = whole.finish()
    random = np.random.default_rng(int(os.environ.get("COCITE_KILL_SEED", "1")))
    for kill in range(KILLS):
        killed.kill_after(whole.jobs() * (kill + 1) // (KILLS + 2), random.uniform(0, 1))
    found = killed.finish()
    assert found.keys() == expected.keys()
    assert [name for name in expected if not found[name].equals(expected[name])] == []
