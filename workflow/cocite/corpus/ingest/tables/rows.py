"""From the files of a table to the ingested tables of a dataset: every row is counted as the lines of a release are.

The cells of a file become the record of a release, which the same expressions turn into columns. They are gathered by
DuckDB, which spills, are given the numbers of their ids, and leave cut by bucket.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import duckdb
import pyarrow as pa
import typer

from cocite.config.settings import GivenAsJson
from cocite.config.table_files import AnyTable, JsonLinesFormat, PaperTable, TableFiles, named_columns
from cocite.core.database import connect
from cocite.core.options import Buckets, MemoryMb, Output, Threads
from cocite.corpus.ingest.accounting import MALFORMED, MalformedError, Tally, parse_record
from cocite.corpus.ingest.documents import SHARE_IN_MEMORY, cut_by_bucket, gather
from cocite.corpus.ingest.merge import ROWS_IN_BATCH
from cocite.corpus.ingest.records import BUCKET_KEYS
from cocite.corpus.ingest.shards import IngestSettings, check_filled, write_ingested
from cocite.corpus.ingest.tables.files import NOT_UTF8, read_rows
from cocite.corpus.ingest.tables.names import look_up_numbers
from cocite.corpus.ingest.tables.queries import Rows, rows_of
from cocite.corpus.options import Dataset, ManifestFile, Names, Part, Parts, Report
from cocite.corpus.release.manifest import Shard, read_manifest, shards_of_part

Numbering = tuple[Path, Path]
"""The tables `listed_names` of the files at hand, and `names` of all."""


def ingest_tables(
    dataset: Dataset,
    settings: GivenAsJson[AnyTable],
    *,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    report: Report,
    listed: Annotated[Path | None, typer.Option(help="Table listed_names of these files, where ids are texts.")] = None,
    names: Names = None,
) -> None:
    """Convert the files of one part of a table, whose columns the settings name, to Parquet, sorted by bucket.

    Raises `InputError` for a file that is missing, of another size than listed, empty or broken. Malformed rows are
    left to `account`.
    """
    how = IngestSettings(
        dataset=dataset,
        buckets=buckets,
        keep_ids=False,
        memory_mb=memory_mb,
        threads=threads,
        authors=isinstance(settings, PaperTable) and settings.columns.authors is not None,
    )
    read = partial(_read_file, settings, (listed, names) if listed and names else None)
    shards = shards_of_part(read_manifest(manifest), dataset, part=part, parts=parts)
    write_ingested(f"ingested_{dataset}", read, how, Path(), shards, output=output, report=report)


def _read_file(
    table: AnyTable,
    numbering: Numbering | None,
    settings: IngestSettings,
    shard: Shard,
    path: Path,
    tally: Tally,
    spill: Path,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a batch a bucket, some at a time; every row is counted."""
    rows = rows_of(table, path, settings.dataset, with_names=numbering is not None)
    columns = [name for key, name in named_columns(table) if key in rows.columns]
    # The rest is for the rows that are parsed, and for those that are written.
    with connect(memory_mb=settings.memory_mb // 3, threads=settings.threads, spill_to=spill) as connection:
        connection.execute(f"CREATE TEMP TABLE cells ({rows.schema})")
        read_rows(connection, table, path, columns, f"INSERT INTO cells {rows.cells}")
        if numbering:
            look_up_numbers(connection, *numbering)
        connection.execute(f"CREATE TEMP TABLE found AS {rows.query}")
        connection.execute("DROP TABLE cells")
        _count(connection, rows, table, path, tally)
        kept = connection.sql("SELECT * EXCLUDE (place, fault, why, outcome) FROM found WHERE outcome = 0")
        batches = kept.to_arrow_reader(ROWS_IN_BATCH[settings.dataset])
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        for gathered in gather(tables, SHARE_IN_MEMORY * settings.memory_mb * 1e6 / 2):
            yield from cut_by_bucket(BUCKET_KEYS[settings.dataset], settings.buckets, gathered)
    check_filled(path, tally)


def _count(connection: duckdb.DuckDBPyConnection, rows: Rows, table: TableFiles, path: Path, tally: Tally) -> None:
    """Count the rows that were found by what becomes of them, and note the first that is malformed."""
    counts = dict(connection.execute("SELECT outcome, count(*) FROM found GROUP BY outcome").fetchall())
    first = connection.execute(
        f"SELECT place, fault, why FROM found WHERE outcome = {rows.outcomes.index(MALFORMED)} ORDER BY place LIMIT 1"
    ).fetchall()
    for place, fault, why in first:
        tally.note_malformed(place, _in_words(fault, why, table, path))
        counts[rows.outcomes.index(MALFORMED)] -= 1
    tally.outcomes.update({name: counts.get(number, 0) for number, name in enumerate(rows.outcomes)})


def _in_words(fault: str | None, why: str | None, table: TableFiles, path: Path) -> str:
    """What is wrong with a row; the fault of a row of JSON Lines is the line."""
    if fault is None:
        return str(why)
    if not isinstance(table.format_of(str(path)), JsonLinesFormat) or fault == NOT_UTF8:
        return fault
    try:
        parse_record(fault.encode(), (), null_ids=True)
    except MalformedError as error:
        return str(error)
    return "is not JSON that can be read"
