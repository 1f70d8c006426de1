"""One run at a time, and a run that is killed hard leaves no lock behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HOLD = ["sh", "-c", "echo holding; sleep 60"]


def at_work(pid: int) -> bool:
    """Whether a process is there and not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def locked(folder: Path, *command: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "cocite.locked", *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def holder(tmp_path):
    process = locked(tmp_path, *HOLD)
    assert process.stdout.readline() == "holding\n"
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_second_run_waits_for_the_first_and_says_so(holder, tmp_path):
    second = locked(tmp_path, "true")
    assert "is at work" in second.stderr.readline()
    assert second.poll() is None
    os.killpg(holder.pid, signal.SIGKILL)
    assert second.wait(timeout=20) == 0


def test_after_a_hard_kill_the_next_run_starts(holder, tmp_path):
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()
    assert locked(tmp_path, "true").wait(timeout=20) == 0


def test_a_step_that_outlives_its_run_keeps_the_next_run_waiting(tmp_path):
    run = locked(tmp_path, "sh", "-c", "sleep 3 & echo $!; wait")
    step = int(run.stdout.readline())
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert at_work(step)
    assert locked(tmp_path, "true").wait(timeout=20) == 0
    assert not at_work(step)


def test_the_exit_code_is_the_commands(tmp_path):
    assert locked(tmp_path, "sh", "-c", "exit 7").wait(timeout=20) == 7
