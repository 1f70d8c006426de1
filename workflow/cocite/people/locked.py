"""One run at a time in a folder of results: `python -m cocite.people.locked COMMAND…` runs it under a lock.

Snakemake's own lock is a file that stays when a run is killed, and has to be removed by hand. A lock of the kernel ends
with the process that holds it, however that ends, so Snakemake runs with `--nolock` under such a lock. Each results
folder has its own, so that runs in different folders do not wait for each other.

Snakemake closes the open files of its jobs, this lock among them. The steps therefore share a second lock, and the next
run waits for it: a step that outlives its run would write the same files as the next one.
"""

import argparse
import fcntl
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cocite.ground.errors import InputError
from cocite.ground.progress import report

RUN, STEPS = ".state/run.lock", ".state/steps.lock"
HELD_BY_STEPS = "COCITE_STEPS_LOCK"
"""The environment variable that gives the steps the path of their lock."""


def main(command: list[str]) -> None:
    """Wait for the lock of the results that the command makes, take it, and become the command."""
    results = results_of(command)
    run = _taken(results / RUN, results)
    os.close(_taken(results / STEPS, results))
    os.set_inheritable(run, True)
    os.environ[HELD_BY_STEPS] = str((results / STEPS).absolute())
    os.execvp(command[0], command)  # noqa: S606


def results_of(command: Sequence[str]) -> Path:
    """The folder of results of a Snakemake command, from the configuration that it names."""
    from cocite.config.configuration import results_folder
    from cocite.config.yaml_files import written_configuration

    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--configfile", "--configfiles", nargs="+", default=["config.yaml"])
    options.add_argument("--directory", "-d", default=".")
    given, _ = options.parse_known_args(command)
    folder = Path(given.directory)
    results = folder / results_folder({})
    for file in given.configfile:
        with suppress(InputError):  # Snakemake says what is wrong with a configuration.
            config = written_configuration(Path(file))
            results = folder / results_folder(config) if "results" in (config.get("pathvars") or {}) else results
    return results


def hold_steps_lock() -> None:
    """Hold the steps' lock until this process ends, if it is a step of a locked run."""
    path = os.environ.get(HELD_BY_STEPS)
    if path is not None:
        with suppress(OSError):  # A disk without locks cannot show who is at work.
            fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_SH)


def _taken(file: Path, results: Path) -> int:
    """Wait until no other process holds the lock on a file; return a file descriptor that holds it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{results} cannot be written to ({error.strerror}), as a run needs to.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        report(f"A run, or a step that outlived its run, is at work in {results.absolute()}; waiting for it to end.")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        report(f"{results}: its disk knows no locks ({error.strerror}); take care that no other run is at work there.")
    return descriptor


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"Error: {error}")
