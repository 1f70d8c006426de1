"""One run at a time per folder of results, by kernel locks, which the kernel releases when their process ends.

Snakemake's own lock is a file that stays when a run is killed, so `profiles/default` turns it off; the Snakefile takes
ours. Snakemake closes the open files of its jobs, this lock among them. The steps therefore share a second lock, for
which the next run waits: a step that outlives its run would write the same files.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cocite.core.errors import InputError
from cocite.core.progress import report

RUN, STEPS = ".state/run.lock", ".state/steps.lock"
HELD_BY_STEPS = "COCITE_STEPS_LOCK"
"""The environment variable that gives the steps the path of their lock."""
READING = (
    *("dryrun", "unlock", "lint", "list_rules", "list_target_rules", "print_compilation", "containerize", "export_cwl"),
    *("report", "reporter", "generate_unit_tests", "archive", "dag", "rulegraph", "filegraph", "d3dag", "summary"),
    *("detailed_summary", "list_changes", "list_input_changes", "list_params_changes", "list_untracked"),
    *("list_conda_envs", "conda_cleanup_envs", "conda_create_envs_only", "container_cleanup_images"),
)
"""Options of Snakemake for other actions than a run, by the names in its parser."""


def lock_results(results: Path) -> None:
    """Wait until no run is active in a folder of results; keep its lock until this process ends."""
    _take_both(results)
    os.environ[HELD_BY_STEPS] = str((results / STEPS).absolute())


@contextmanager
def locked_results(results: Path) -> Iterator[None]:
    """Wait until no run is active in a folder of results, and keep its lock in the block."""
    lock = _take_both(results)
    try:
        yield
    finally:
        os.close(lock)


def writes_results(arguments: Sequence[str]) -> bool:
    """Whether a call of Snakemake with these arguments makes or deletes results."""
    from snakemake.cli import get_argument_parser

    options, _ = get_argument_parser().parse_known_args(arguments)
    modes = {mode for mode in READING if getattr(options, mode) not in (None, False)}
    return not modes or (options.report_after_run and modes <= {"report", "reporter"})


def hold_steps_lock() -> None:
    """Keep the steps' lock until this process ends, if it is a step of a locked run."""
    if path := os.environ.get(HELD_BY_STEPS):
        with suppress(OSError):  # A disk without locks cannot show who is at work.
            fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_SH)


def _take_both(results: Path) -> int:
    """Wait until neither a run nor its steps have the lock; return the file descriptor of the run's lock."""
    lock = _lock(results / RUN, results)
    os.close(_lock(results / STEPS, results))
    return lock


def _lock(file: Path, results: Path) -> int:
    """Wait until no other process has the lock on a file; return the file descriptor that locks it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{results} cannot be written to ({error.strerror}), as a run needs to.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            report(f"A run, or a step that outlived it, is at work in {results.absolute()}; waiting for it to end.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except KeyboardInterrupt:
            raise InputError(f"Interrupted before {results.absolute()} was free; nothing was done.") from None
    except OSError as error:
        report(f"{results}: its disk knows no locks ({error.strerror}); take care that no other run is at work there.")
    return descriptor
