"""The doctor reads what partitions grant from a real Slurm, and finds what Slurm then does not run."""

import math
import os
import subprocess

import pytest
from tests.slurm.cluster import CPUS, MEMORY_MB, PARTITION, WITH_GPUS, wait_for

from cocite.tools.cluster import FORMAT, compare, read_limits, slurm

pytestmark = pytest.mark.slurm


@pytest.fixture
def short(cluster, monkeypatch):
    """A Slurm whose first partition grants four hours, and no more."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setitem(os.environ, name, cluster.environment[name])
    cluster.run("scontrol", "update", f"PartitionName={PARTITION}", "MaxTime=4:00:00")
    yield cluster
    cluster.run("scontrol", "update", f"PartitionName={PARTITION}", "MaxTime=INFINITE")


def test_the_limits_of_partitions_are_those_that_slurm_was_given(short):
    found = read_limits(short.run("sinfo", "--noheader", "--Node", f"--format={FORMAT}"))
    assert found[PARTITION] == {"minutes": 240, "memory_mb": MEMORY_MB, "threads": CPUS}
    assert found[WITH_GPUS] == {"minutes": math.inf, "memory_mb": MEMORY_MB, "threads": CPUS}
    assert next(slurm()).verdict == "ok"


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({"memory_mb": 2 * MEMORY_MB}, f"--mem={2 * MEMORY_MB}"),
        # These wait, and so does the test.
        pytest.param({"minutes": 300}, "--time=300", marks=pytest.mark.long),
        pytest.param({"threads": 2 * CPUS}, f"--cpus-per-task={2 * CPUS}", marks=pytest.mark.long),
    ],
)
def test_a_job_that_the_doctor_finds_too_large_is_refused_or_waits_for_ever(short, asked, option):
    limits = read_limits(short.run("sinfo", "--noheader", "--Node", f"--format={FORMAT}"))
    job = {"minutes": 1, "memory_mb": 1, "threads": 1} | asked
    (finding,) = compare(limits, {"large": job}, {"default-resources": {"slurm_partition": PARTITION}})
    assert finding.verdict == "failed"
    assert not starts(short, option)


def test_a_job_within_the_limits_starts(short):
    assert starts(short, "--time=240")


def starts(cluster, option: str) -> bool:
    """Whether Slurm starts a job of the partition with this option within some seconds."""
    submit = ["sbatch", "--parsable", "--output=/dev/null", option, f"--partition={PARTITION}", "--wrap=true"]
    submitted = subprocess.run(submit, env=cluster.environment, capture_output=True, text=True, check=False)
    if submitted.returncode != 0:
        return False
    number = submitted.stdout.strip()
    try:
        wait_for(
            lambda: "PENDING" not in cluster.run("squeue", "--noheader", "--format=%T", f"--jobs={number}"), "it", 8
        )
    except TimeoutError:
        return False
    finally:
        cluster.run("scancel", number)
    return True
