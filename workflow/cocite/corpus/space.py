"""A disk that runs full gets one sentence that names the folder and what is free, instead of a traceback."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from cocite.errors import InputError


@contextmanager
def explain_full_disk(folder: Path) -> Iterator[None]:
    """Turn "no space left" in the block into an `InputError` about `folder`, where the block writes."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        if getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT) and "No space left" not in str(error):
            raise
        free = shutil.disk_usage(_existing(folder)).free
        raise InputError(
            f"The disk is full: {folder} has {free / 1e9:.1f} GB free; make room there and run again."
        ) from error


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
