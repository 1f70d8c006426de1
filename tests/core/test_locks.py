"""One run at a time in a folder of results, and a run that is killed hard leaves no lock behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cocite.core.locks import locked_results, writes_results

HOLD = ["sh", "-c", "echo holding; sleep 60"]
UNDER_LOCK = """
import signal, subprocess, sys
from pathlib import Path
from cocite.core.errors import InputError
from cocite.core.locks import lock_results
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background process of a shell ignores
try:
    lock_results(Path(sys.argv[1]))
except InputError as error:
    sys.exit(f"Error: {error}")
sys.exit(subprocess.call(sys.argv[2:]))
"""


def at_work(pid: int) -> bool:
    """Whether a process is there and not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def locked(folder: Path, *command: str, results: str = "results") -> subprocess.Popen:
    """A process that runs a command while it holds the lock of some results, as Snakemake runs steps."""
    return subprocess.Popen(
        [sys.executable, "-c", UNDER_LOCK, results, *command],
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


@pytest.fixture
def second(holder, tmp_path):
    """A run that waits for the first."""
    process = locked(tmp_path, "true")
    assert "is at work" in process.stderr.readline()
    assert process.poll() is None
    return process


def test_a_second_run_waits_for_the_first_which_leaves_no_lock_when_it_is_killed(holder, second, tmp_path):
    os.killpg(holder.pid, signal.SIGKILL)
    assert second.wait(timeout=20) == 0
    assert locked(tmp_path, "true").wait(timeout=20) == 0


def test_who_interrupts_the_wait_is_told_that_nothing_was_done(holder, second, tmp_path):
    second.send_signal(signal.SIGINT)
    assert second.wait(timeout=20) == 1
    assert second.stderr.read() == f"Error: Interrupted before {tmp_path / 'results'} was free; nothing was done.\n"
    assert holder.poll() is None


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


def test_runs_in_different_folders_of_results_do_not_wait_for_each_other(holder, tmp_path):
    assert locked(tmp_path, "sh", "-c", "exit 7", results="out/other").wait(timeout=20) == 7


WRITING = """
    all
    --cores 2 results/encoder/cocite/seed-1/papers/0.parquet
    --profile slurm --configfile my.yaml --replace-workflow-config all
    --cores 1 --touch --forceall all
    --until fetch_benchmark -- all
    --delete-temp-output all
    --delete-all-output all
    --cleanup-metadata results/corpus/manifest.json
    -- --dry-run
    --config a=-n
    --report-after-run --report report.zip all
    --cleanup-shadow
    -R train_encoder -t
    --batch all=1/2 -U train_encoder
"""
READING = """
    -np all
    --dryrun --cores 1
    --lint
    --unlock
    --list-target-rules
    --summary
    --report report.zip all
    --dag dot all
    --delete-all-output --dry-run
    -nF all
    --report-after-run --report report.zip -n all
    -S
    -D
    -l
    --list-params-changes
    --archive run.tar.gz
"""


@pytest.mark.parametrize("arguments", ["", *WRITING.strip().splitlines()])
def test_what_makes_or_deletes_results_takes_the_lock(arguments):
    assert writes_results(arguments.split())


@pytest.mark.parametrize("arguments", READING.strip().splitlines())
def test_what_only_reads_does_not_wait_for_a_run(arguments):
    assert not writes_results(arguments.split())


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "results").write_text("a file")
    run = locked(tmp_path, "true")
    assert run.wait(timeout=20) == 1
    assert run.stderr.read() == "Error: results cannot be written to (Not a directory), as a run needs to.\n"


def test_a_command_gives_the_lock_back_when_its_block_ends(tmp_path):
    with locked_results(tmp_path / "results"):
        waiting = locked(tmp_path, "true")
        assert "is at work" in waiting.stderr.readline()
        assert waiting.poll() is None
    assert waiting.wait(timeout=60) == 0
