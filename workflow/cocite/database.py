"""DuckDB as the stages use it: a connection that lives within a job's memory and threads and spills to disk."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

SHARE_OF_MEMORY = 0.75
"""DuckDB's share of a job's memory; Arrow buffers, Python and the allocator live on the rest."""


@contextmanager
def connect(*, memory_mb: int, threads: int, spill_to: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database that keeps below `memory_mb` (MB, of the whole process) and spills beside `spill_to`."""
    spill_to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".spill-", dir=spill_to) as spill:
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
        finally:
            connection.close()
