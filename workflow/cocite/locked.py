"""One run at a time, and no stale lock: `python -m cocite.locked COMMAND…` runs a command under a lock of the kernel.

Snakemake's own lock is a file that outlives a run killed hard, and has to be removed by hand. A lock on an open file
goes with the last process of the run that holds it, however that ends; so Snakemake runs with `--nolock` under it.
A step that outlived its run keeps the lock until it is done, and no second run disturbs it.
"""

import fcntl
import os
import sys
from pathlib import Path

LOCK_FILE = Path(".cocite.lock")


def main(command: list[str]) -> None:
    """Take the lock in the working folder and become the command. Exits with 1 if another run holds it."""
    descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"Error: another run is at work in {Path.cwd()}; wait for it, or end it first.")
    os.set_inheritable(descriptor, True)
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
