"""One run at a time in a folder of results, whose locks end with it; jobs that run side by side take different GPUs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cocite.core import gpus
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
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def locked(folder: Path, *command: str, results: str = "results") -> subprocess.Popen:
    """A process that runs a command while it holds the lock of some results, as Snakemake runs steps."""
    under_lock, pipe = [sys.executable, "-c", UNDER_LOCK, results, *command], subprocess.PIPE
    return subprocess.Popen(under_lock, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


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
    while not any(file.path.endswith("steps.lock") for file in psutil.Process(step).open_files()):
        assert at_work(step)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert locked(tmp_path, "true").wait(timeout=20) == 0
    assert not at_work(step)


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


def test_what_makes_or_deletes_results_takes_the_lock_and_what_only_reads_does_not_wait_for_a_run():
    for written, takes_it in ((WRITING, True), (READING, False), ("\n", True)):
        for arguments in written.strip().splitlines() or [""]:
            assert (arguments, writes_results(arguments.split())) == (arguments, takes_it)


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
