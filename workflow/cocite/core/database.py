"""DuckDB as the stages use it: a connection that lives within memory and threads and spills to disk; views."""

import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from cocite.core.errors import InputError, explain_full_disk

SHARE_OF_MEMORY = 0.75
"""DuckDB's share of a job's memory; Arrow buffers, Python and the allocator live on the rest."""
SPILL_PREFIX = ".spill-"
LOCK = ".lock"
SECONDS_TO_LOCK = 60.0
"""Age from which a folder that nobody has locked is one that a killed process left."""


@contextmanager
def connect(*, memory_mb: int, threads: int, spill_to: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database that keeps the process below `memory_mb` (MB) and spills to a folder next to `spill_to`.

    Raises `InputError` if the disk is full or the memory too small.
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
            said = f"The {memory_mb} MB of memory that DuckDB was given are too few for this input; give the step more"
            raise InputError(f"{said} (Snakemake's `--set-resources RULE:mem_mb=…`, or --memory-mb).") from None
        finally:
            connection.close()


def number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    """The number that a query gives."""
    ((found,),) = connection.execute(query).fetchall()
    return int(found)


@contextmanager
def spill_folder(beside: Path) -> Iterator[str]:
    """A folder that is gone afterwards; those of killed processes, which no longer lock a file in theirs, go first."""
    # On network disks, all machines see the lock of a file, and only one that of a folder.
    beside.mkdir(parents=True, exist_ok=True)
    for left in beside.glob(f"{SPILL_PREFIX}*"):
        with suppress(OSError):  # It is in use or gone, is another user's, or is on a disk without locks.
            if time.time() - left.stat().st_mtime > SECONDS_TO_LOCK:
                with (left / LOCK).open("w") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
                left.rmdir()  # NFS keeps a file, and so its folder, until it is closed.
    with tempfile.TemporaryDirectory(prefix=SPILL_PREFIX, dir=beside) as folder, Path(folder, LOCK).open("w") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder


READ_BY_TRAINING = """
    CREATE VIEW read_by_training AS
    SELECT citing, cited FROM citations WHERE citing NOT IN (FROM kept_out) AND cited NOT IN (FROM kept_out)
"""
"""The view of the citations that training reads, of the relations citations and kept_out."""


def count_mentions(db: duckdb.DuckDBPyConnection, contexts: duckdb.DuckDBPyRelation | None) -> None:
    """Make the table mentioned: in how many of some contexts a paper cites another; empty without any."""
    db.execute("CREATE TEMP TABLE mentioned (citing BIGINT, cited BIGINT, mentions BIGINT)")
    if contexts is not None:
        contexts.create_view("contexts")
        db.execute("""
            INSERT INTO mentioned SELECT citing, mentioned, count(*)
            FROM (SELECT citing, unnest(cited) AS mentioned FROM contexts) GROUP BY ALL
        """)


def view_citations_of_works(
    db: duckdb.DuckDBPyConnection, records: str, view: str, columns: Mapping[str, str] | None = None
) -> None:
    """Make a view of the citations in a relation, with works in place of their twins.

    Each is there once, and none is within a work that has twins. The relation `twins` has the columns corpusid and
    work. `columns` are further columns and, in SQL, how those of several records are united.
    """
    further = "".join(f", {name}" for name in columns or ())
    united = "".join(f", {how} AS {name}" for name, how in (columns or {}).items())
    db.execute(f"""
        CREATE TABLE members_of_{view} AS SELECT corpusid FROM twins UNION SELECT work FROM twins;
        CREATE TABLE united_in_{view} AS
        SELECT coalesce(of_citing.work, citing) AS citing, coalesce(of_cited.work, cited) AS cited{united}
        FROM {records}
        LEFT JOIN twins AS of_citing ON citing = of_citing.corpusid
        LEFT JOIN twins AS of_cited ON cited = of_cited.corpusid
        WHERE (citing IN (FROM members_of_{view}) OR cited IN (FROM members_of_{view}))
        AND coalesce(of_citing.work, citing) <> coalesce(of_cited.work, cited)
        GROUP BY 1, 2;
        CREATE VIEW {view} AS
        SELECT citing, cited{further} FROM {records}
        WHERE citing NOT IN (FROM members_of_{view}) AND cited NOT IN (FROM members_of_{view})
        UNION ALL FROM united_in_{view}
    """)
