"""Runs through the profiles of LSF, Grid Engine and PBS, on a batch system that answers as theirs do."""

import json
import os
import re
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.clusters.conftest import configured
from tests.slurm.conftest import command, differing, ending, start
from tests.workflow.conftest import ROOT

PLUGIN = "snakemake_executor_plugin_cluster_generic"
PROGRAMS = {
    "lsf": ["bsub", "bjobs", "bkill"],
    "sge": ["qsub", "qstat", "qacct", "qdel"],
    "pbs": ["qsub", "qstat", "qdel"],
}
QUICK = ["--jobs", "3", "--latency-wait", "5", "--max-status-checks-per-second", "20"]
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(find_spec(PLUGIN) is None, reason="needs snakemake-executor-plugin-cluster-generic"),
]


class Queue:
    """A batch system of a kind, and a folder for a run."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self.jobs = configured(folder), kind, folder / "queue"
        self.jobs.mkdir()
        (folder / "bin").mkdir()
        for name in PROGRAMS[kind]:
            program = folder / "bin" / name
            program.write_text(f"#!{sys.executable}\n{(ROOT / 'tests/clusters/queue.py').read_text()}")
            program.chmod(0o755)

    def start(self, *options: str, **variables: str):
        """Start a run on it."""
        profiles = ["--profile", str(ROOT / "slurm"), "--profile", str(ROOT / "profiles" / self.kind)]
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "QUEUE": str(self.jobs), **variables}
        snakemake = command(self.folder, "tests.slurm.impatient")
        return start([*snakemake, *profiles, *QUICK, *options], self.folder, environment)

    def submitted(self, rule: str) -> list[str]:
        """The words with which the jobs of a rule were submitted."""
        found = []
        for file in sorted(self.jobs.glob("*/words.json"), key=lambda file: int(file.parent.name)):
            *words, script = json.loads(file.read_text())
            found += [" ".join(words)] if f"snakejob.{rule}." in script else []
        return found


@pytest.mark.parametrize("kind", PROGRAMS)
def test_jobs_ask_for_what_their_rules_need_and_for_more_after_they_were_killed(tmp_path, kind):
    queue = Queue(tmp_path, kind)
    ended = ending(tmp_path, queue.start("--until", "generate_release", QUEUE_KILLS="generate_release"))
    assert ended.status == 0, ended.log[-5000:]
    first, second = queue.submitted("generate_release")  # 700 papers: 303.5 MB and 10.07 minutes
    numbers = [{int(number) for number in re.findall(r"\d+", words)} for words in (first, second)]
    minutes = 1 if kind == "lsf" else 60
    assert numbers[0] >= {304, 11 * minutes}
    assert numbers[1] >= {608, 22 * minutes}
    assert not re.search("gpu", first + second)


def test_a_run_on_lsf_has_the_tables_of_a_run_without_a_cluster(tmp_path, calm):
    queue = Queue(tmp_path, "lsf")
    ended = ending(tmp_path, queue.start(QUEUE_KILLS="count_pairs"))
    assert ended.status == 0, ended.log[-5000:]
    assert differing(tmp_path, calm.folder) == []
    assert len(queue.submitted("count_pairs")) == 2
    assert all("-gpu num=1" in words for words in queue.submitted("train_encoder"))
    assert not any("-gpu" in words for words in queue.submitted("train_graph_embedding"))


def test_a_run_that_is_interrupted_leaves_no_job(tmp_path):
    queue = Queue(tmp_path, "pbs")
    run, log = queue.start("--until", "ingest"), tmp_path / "snakemake.log"
    while "with external jobid" not in log.read_text():  # before, no one knows what to cancel
        assert run.poll() is None, log.read_text()
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    assert run.wait(60) != 0
    assert [(job / "status").read_text() for job in queue.jobs.iterdir()] == ["137"]
