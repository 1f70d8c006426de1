"""One run at a time, and a run that is killed hard leaves no lock behind."""

import os
import signal
import subprocess
import sys
import time
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


def test_a_second_run_in_the_same_folder_is_refused(holder, tmp_path):
    second = locked(tmp_path, "true")
    _, complaint = second.communicate(timeout=20)
    assert second.returncode == 1
    assert "another run is at work" in complaint


def test_after_a_hard_kill_the_next_run_starts(holder, tmp_path):
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()
    assert locked(tmp_path, "true").wait(timeout=20) == 0


def test_a_step_that_outlives_its_run_keeps_the_lock(tmp_path):
    run = locked(tmp_path, "sh", "-c", "sleep 3 & echo $!; wait")
    step = int(run.stdout.readline())
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert locked(tmp_path, "true").wait(timeout=20) == 1
    deadline = time.monotonic() + 20
    while locked(tmp_path, "true").wait(timeout=20) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not at_work(step)


def test_the_exit_code_is_the_commands(tmp_path):
    assert locked(tmp_path, "sh", "-c", "exit 7").wait(timeout=20) == 7
