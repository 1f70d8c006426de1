"""Jobs that run side by side on a machine take different GPUs."""

import os
import subprocess
import sys

import pytest

from cocite.core import gpus

PROGRAM = """
import sys
from pathlib import Path
from cocite.core import gpus
gpus.DEVICES = Path(sys.argv[1])
gpus.take_gpus(int(sys.argv[2]))
print(",".join(gpus.gpus()), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def devices(tmp_path, monkeypatch):
    """A folder with three GPUs, and no lock on any of them."""
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(gpus, "DEVICES", tmp_path)
    for name in (gpus.VISIBLE, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def job(devices):
    """A function that starts a job which wants so many GPUs, and tells which it sees and how it ends."""
    started = []

    def start(wanted):
        command = [sys.executable, "-c", PROGRAM, str(devices), str(wanted)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process.stdout.readline().strip(), process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_jobs_side_by_side_see_different_gpus_which_are_free_again_however_a_job_ended(job):
    assert gpus.gpus() == ["0", "1", "2"]
    seen, first = job(1)
    assert [seen, job(2)[0]] == ["0", "1,2"]
    first.kill()
    first.wait()
    assert job(1)[0] == "0"


def test_a_job_that_finds_too_few_free_ones_shares_all(job):
    job(2)
    assert job(2)[0] == "0,1,2"


@pytest.mark.parametrize(
    ("surroundings", "seen"),
    [
        ({gpus.VISIBLE: "2,0"}, ["2", "0"]),
        ({gpus.VISIBLE: "2,-1,0"}, ["2", "2"]),
        ({gpus.VISIBLE: "-1"}, ["", ""]),
        ({gpus.VISIBLE: "0", "SLURM_JOB_ID": "7"}, ["0", "0"]),
    ],
)
def test_a_choice_of_the_user_is_kept_to_and_a_job_of_slurm_keeps_what_it_was_given(
    job, monkeypatch, surroundings, seen
):
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    assert [job(1)[0], job(1)[0]] == seen


def test_without_a_gpu_nothing_is_set(devices, monkeypatch):
    monkeypatch.setattr(gpus, "DEVICES", devices / "none")
    gpus.take_gpus(1)
    assert gpus.VISIBLE not in os.environ
