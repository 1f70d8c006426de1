"""One run at a time, and no stale lock: `python -m cocite.locked COMMAND…` runs a command under a lock of the kernel.

Snakemake's own lock is a file that outlives a run killed hard, and has to be removed by hand. A lock on an open file
goes with the last process of the run that holds it, however that ends; so Snakemake runs with `--nolock` under it.
A step that outlives its run, be it for the moment that a killed process takes to end, keeps the lock until it is gone;
the next run waits for it.
"""

import fcntl
import os
import sys
from pathlib import Path

from cocite.progress import report

LOCK_FILE = Path(".cocite.lock")


def main(command: list[str]) -> None:
    """Take the lock in the working folder, as soon as no other run holds it, and become the command."""
    descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        report(f"A run, or a step that outlived its run, is at work in {Path.cwd()}; waiting for it to end.")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.set_inheritable(descriptor, True)
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
