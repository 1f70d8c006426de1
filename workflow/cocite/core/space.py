"""A full disk gets one sentence that names the folder and the free space, instead of a traceback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cocite.core.errors import FULL, InputError

TEMPORARY = ".tmp"
FULL_DISK = "No space left"
"""What the system says of a full disk, and libraries that quote it."""


@contextmanager
def explain_full_disk(folder: Path) -> Iterator[None]:
    """Turn "no space left" in the block into an `InputError` about `folder`, where the block writes.

    Libraries have errors of their own for it, DuckDB for one; all of them quote the system.
    """
    try:
        yield
    except Exception as error:
        if getattr(error, "errno", None) not in FULL and FULL_DISK not in str(error):
            raise
        there = existing_folder(folder)
        free = shutil.disk_usage(there).free
        raise InputError(
            f"The disk is full: {there} has {free / 1e9:.1f} GB free; make room there and run again."
        ) from error


def existing_folder(folder: Path) -> Path:
    """The folder, or the nearest above it that exists and is not temporary (a temporary one is soon removed)."""
    above = (folder.absolute(), *folder.absolute().parents)
    return next(path for path in above if path.is_dir() and path.suffix != TEMPORARY)
