"""DuckDB as the stages use it: a connection that lives within a job's memory and threads and spills to disk."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from cocite.ground.errors import InputError
from cocite.ground.space import explain_full_disk

SHARE_OF_MEMORY = 0.75
"""DuckDB's share of a job's memory; Arrow buffers, Python and the allocator live on the rest."""
SPILL_PREFIX = ".spill-"
SECONDS_TO_LOCK = 60.0
"""Age from which a folder that nobody has locked is one that a killed process left."""


@contextmanager
def connect(*, memory_mb: int, threads: int, spill_to: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database that keeps below `memory_mb` (MB, of the whole process) and spills beside `spill_to`.

    Raises `InputError` where the disk is full, or the memory too small.
    """
    with explain_full_disk(spill_to), spill_folder(spill_to) as spill:
        connection = duckdb.connect(
            config={
                "memory_limit": f"{int(memory_mb * SHARE_OF_MEMORY)}MB",
                "threads": threads,
                "temp_directory": spill,
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        try:
            yield connection
        except duckdb.OutOfMemoryException:
            raise InputError(
                f"The {memory_mb} MB of memory that DuckDB was given are too few for this input; give the step more "
                "(`--set-resources RULE:mem_mb=…` of Snakemake, or --memory-mb by hand)."
            ) from None
        finally:
            connection.close()


@contextmanager
def spill_folder(beside: Path) -> Iterator[str]:
    """A folder that is gone afterwards; folders of killed processes are removed first.

    A folder in use is locked. The kernel releases the lock when its process ends, however it ends.
    """
    beside.mkdir(parents=True, exist_ok=True)
    for left in beside.glob(f"{SPILL_PREFIX}*"):
        with suppress(BlockingIOError, FileNotFoundError):
            if time.time() - left.stat().st_mtime > SECONDS_TO_LOCK:
                with _locked(left):
                    shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=SPILL_PREFIX, dir=beside) as folder, _locked(Path(folder)):
        yield folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
