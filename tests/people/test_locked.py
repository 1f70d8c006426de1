"""One run at a time in a folder of results, and a run that is killed hard leaves no lock behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cocite.people.locked import results_of

HOLD = ["sh", "-c", "echo holding; sleep 60"]


def at_work(pid: int) -> bool:
    """Whether a process is there and not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def locked(folder: Path, *command: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "cocite.people.locked", *command],
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


OUTLIVING = """
import subprocess, sys, time
step = [sys.executable, "-c", "from cocite.cli import main; main()", "demo", "serve", ".", "--", "sleep", "3"]
print(subprocess.Popen(step, close_fds=True).pid, flush=True)
time.sleep(60)
"""


def test_a_step_keeps_the_next_run_waiting_though_snakemake_closes_the_files_of_its_jobs(tmp_path):
    run = locked(tmp_path, sys.executable, "-c", OUTLIVING)
    step = int(run.stdout.readline())
    while not Path(f"/proc/{step}/fd").exists() or not holds_lock(step):
        assert at_work(step)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert locked(tmp_path, "true").wait(timeout=20) == 0
    assert not at_work(step)


def holds_lock(pid: int) -> bool:
    """Whether a process has the steps' lock open."""
    try:
        opened = [os.path.realpath(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:  # a file that was closed while they were listed
        return False
    return any(file.endswith("steps.lock") for file in opened)


@pytest.fixture
def configured(tmp_path):
    """Two configurations, whose results lie in folders of their own."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(f"pathvars: {{results: out/{name}}}\n")
    (tmp_path / "logs.yaml").write_text("pathvars: {logs: elsewhere}\n")
    return tmp_path


def test_runs_in_different_folders_of_results_do_not_wait_for_each_other(configured):
    holder = locked(configured, *HOLD, "--configfile", "one.yaml")
    assert holder.stdout.readline() == "holding\n"
    other = locked(configured, "sh", "-c", "true", "--configfile", "two.yaml")
    assert other.wait(timeout=20) == 0
    same = locked(configured, "sh", "-c", "true", "--configfile", "one.yaml", "--replace-workflow-config")
    assert "is at work" in same.stderr.readline()
    os.killpg(holder.pid, signal.SIGKILL)
    assert same.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("options", "folder"),
    [
        ([], "results"),
        (["--configfile", "one.yaml", "--replace-workflow-config", "all"], "out/one"),
        (["--configfile=two.yaml"], "out/two"),
        (["--configfiles", "one.yaml", "two.yaml", "--", "all"], "out/two"),
        (["--configfile", "one.yaml", "--directory", "elsewhere"], "elsewhere/out/one"),
        (["--configfile", "one.yaml", "logs.yaml"], "out/one"),
        (["--configfile", "none.yaml"], "results"),
    ],
)
def test_the_folder_is_that_of_the_configuration_that_snakemake_is_given(configured, monkeypatch, options, folder):
    monkeypatch.chdir(configured)
    assert results_of(["snakemake", "--cores", "2", *options]) == Path(folder)


def test_the_default_configuration_is_read_where_none_is_given(configured, monkeypatch):
    monkeypatch.chdir(configured)
    Path("one.yaml").rename("config.yaml")
    assert results_of(["snakemake", "all"]) == Path("out/one")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "results").write_text("a file")
    run = locked(tmp_path, "true")
    assert run.wait(timeout=20) == 1
    assert run.stderr.read() == "Error: results cannot be written to (Not a directory), as a run needs to.\n"


def test_the_exit_code_is_the_commands(tmp_path):
    assert locked(tmp_path, "sh", "-c", "exit 7").wait(timeout=20) == 7
