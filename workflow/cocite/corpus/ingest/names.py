"""Numbers for ids that are texts: the rank of each among all names of a corpus, sorted.

The rank depends only on the set of names, and is dense, which keeps sets of ids small (`core.id_sets`). A first pass
lists the names of each file, one job numbers them all, and a second pass looks the numbers of a file's names up.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import duckdb
import numpy as np
import pyarrow as pa
import typer

from cocite.config.settings import GivenAsJson
from cocite.config.table_files import AnyTable, PaperTable
from cocite.core.database import connect
from cocite.core.options import MemoryMb, Output, Threads
from cocite.core.progress import progress
from cocite.core.tables.files import verified_files, write_table
from cocite.corpus.ingest.cells import Expression, cells_of, cited_in, citing_in, is_refused, paper_in
from cocite.corpus.ingest.user_files import read_rows
from cocite.corpus.release.manifest import DatasetName, ManifestFile, Part, Parts, read_manifest, shards_of_part

NAMES_AT_ONCE = 100_000


def list_names(
    dataset: DatasetName,
    settings: GivenAsJson[AnyTable],
    *,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """List the distinct ids in one part of a table whose ids are texts.

    Raises `InputError` if a file is broken; errors of single rows are reported when they are ingested.
    """
    shards = shards_of_part(read_manifest(manifest), dataset, part=part, parts=parts)
    # The other half is for the rows that are parsed.
    with connect(memory_mb=memory_mb // 2, threads=threads, spill_to=output.parent) as connection:
        connection.execute("CREATE TEMP TABLE found (name VARCHAR)")
        for shard in progress(shards, of="list names", unit="files"):
            path = Path(shard.name)
            ids, columns = _ids(settings, path)
            found = f"INSERT INTO found SELECT DISTINCT unnest({ids}) FROM given"
            read_rows(connection, settings, path, columns, found)
        connection.execute(f"DELETE FROM found WHERE {is_refused('name')}")
        write_table(output, "listed_names", _in_order(connection))


def number_names(
    listed: Annotated[Sequence[Path], typer.Argument(help="Files of the table listed_names, or their folders.")],
    *,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Give each id that is a text its number: its rank among all that were listed."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        files = [file for each in listed for file in verified_files(each, "listed_names")]
        connection.read_parquet(files).create_view("found")
        write_table(output, "names", _ranked(_in_order(connection)))


def look_up_numbers(connection: duckdb.DuckDBPyConnection, listed: Path, names: Path) -> None:
    """Make the table `numbers` (name, corpusid) of the names that were listed."""
    connection.read_parquet(verified_files(listed, "listed_names")).create_view("listed")
    connection.read_parquet(verified_files(names, "names")).create_view("names")
    connection.execute("CREATE TEMP TABLE numbers AS SELECT name, corpusid FROM names SEMI JOIN listed USING (name)")


def _ids(table: AnyTable, path: Path) -> tuple[Expression, list[str]]:
    """All ids of a row, as a list, and the columns that they are in."""
    cells = cells_of(table, path)
    if isinstance(table, PaperTable):
        return f"[{paper_in(table, cells)}]", [table.columns.id]
    ids = f"list_prepend({citing_in(table, cells)}, {cited_in(table, cells)})"
    return ids, [table.columns.citing, table.columns.cited.column]


def _in_order(connection: duckdb.DuckDBPyConnection) -> pa.RecordBatchReader:
    names = connection.sql("SELECT DISTINCT name FROM found WHERE name IS NOT NULL ORDER BY name")
    return names.to_arrow_reader(NAMES_AT_ONCE)


def _ranked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        yield pa.record_batch({"corpusid": np.arange(first, first + len(batch)), "name": batch["name"]})
        first += len(batch)
