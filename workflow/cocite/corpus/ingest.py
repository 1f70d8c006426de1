"""Turn the shards of a part of a dataset into Parquet, one file a bucket, straight from the `.gz`.

Unpacking is what costs time here, so each shard is read once: DuckDB unpacks and parses it line by line and keeps the
few columns that count, spilling to disk what does not fit. Rows leave sorted by bucket and key, so that one pass writes
all buckets. A citation stands once; everything that is left out is counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from cocite.corpus.intents import list_of_mask
from cocite.corpus.malformed import UNUSABLE, first_unusable_line
from cocite.corpus.manifest import Shard
from cocite.corpus.records import CITATIONS, RECORDS, Records
from cocite.database import connect
from cocite.errors import InputError
from cocite.files import atomic_path, write_omissions, write_table
from cocite.progress import progress
from cocite.tables import TABLES

DUPLICATES = "further copies of a citation within a part"
ROWS_IN_BATCH = 20_000
"""Abstracts come at about 1.3 kB; a batch of them, and its copies on the way to Parquet, must stay small."""


@dataclass(frozen=True, kw_only=True)
class IngestSettings:
    """How a part of a dataset is ingested."""

    dataset: str
    """papers, abstracts or citations."""
    buckets: int
    """Files that the rows are sharded into, by id modulo this number."""
    malformed: float
    """Largest share of the part's lines that may be unusable."""
    memory_mb: int
    """Memory that the step may use, MB."""
    threads: int
    """Threads that the step may use."""


def ingest(settings: IngestSettings, folder: Path, shards: list[Shard], *, output: Path, omissions: Path) -> None:
    """Write `output`/{bucket}.parquet for each bucket, and what was left out.

    Raises `InputError` for a shard that is missing, of another size than listed, empty, or not a whole gzip file, and
    for more unusable lines than `settings.malformed` allows; that error names the first one.
    """
    records = RECORDS[settings.dataset]
    paths = [_find(folder, shard) for shard in shards]
    cost = {"memory_mb": settings.memory_mb, "threads": settings.threads}
    with connect(**cost, spill_to=output.parent) as connection:
        _create_rows(connection, records)
        _read_shards(connection, records, paths, settings.malformed)
        counts, kept = _count(connection, records)
        written = _write_buckets(connection, records, settings.buckets, output)
        if records is CITATIONS:
            counts[DUPLICATES] = kept - written
        write_omissions(omissions, counts)


def _find(folder: Path, shard: Shard) -> Path:
    path = folder / shard.name
    if not path.is_file():
        raise InputError(f"{path} does not exist, but the manifest lists it; download it, or list the release again.")
    size = path.stat().st_size
    if size != shard.bytes:
        raise InputError(f"{path} has {size} bytes, but {shard.bytes} in the manifest; download it again.")
    if size == 0:
        raise InputError(f"{path} is empty; a shard is a gzip file with at least one record.")
    return path


def _select(records: Records, lines: str) -> str:
    """Query for the columns of the records in `lines` (a relation of `json`), and why a row is `omitted`, if it is."""
    columns = ", ".join(f"{expression} AS {name}" for name, expression in records.columns.items())
    reasons = enumerate([records.unusable, *records.omissions.values()])
    omitted = " ".join(f"WHEN {condition} THEN {number}" for number, condition in reasons)
    return f"""
        SELECT {", ".join(records.columns)}, (CASE {omitted} END)::UTINYINT AS omitted
        FROM (
            SELECT json, record, {columns}
            FROM (SELECT json, json_transform(json, '{records.structure}') AS record FROM {lines})
        )
    """


def _create_rows(connection: duckdb.DuckDBPyConnection, records: Records) -> None:
    connection.execute(f"CREATE TABLE rows AS {_select(records, '(SELECT NULL::JSON AS json)')} LIMIT 0")


def _read_shards(connection: duckdb.DuckDBPyConnection, records: Records, paths: list[Path], allowed: float) -> None:
    lines = unusable = 0
    first = None
    for path in progress(paths, of=records.table.replace("ed_", " "), unit="shards"):
        lines += _read_shard(connection, records, path)
        unusable = _number(connection, "SELECT count(*) FROM rows WHERE omitted = 0")
        first = first or (path if unusable else None)
        if first and allowed == 0:
            raise first_unusable_line(first, records)
    if first and unusable > allowed * lines:
        cause = first_unusable_line(first, records)
        raise InputError(
            f"{unusable} of {lines} lines are unusable, more than a share of {allowed}; the first: {cause}"
        )


def _read_shard(connection: duckdb.DuckDBPyConnection, records: Records, path: Path) -> int:
    """Add the rows of a shard; return its number of lines."""
    lines = "read_ndjson_objects($path, ignore_errors = true)"
    try:
        added = _number(connection, f"INSERT INTO rows {_select(records, lines)}", {"path": str(path)})
    except duckdb.IOException as error:
        if "GZIP" not in str(error):
            raise
        raise InputError(f"{path} is cut short or no gzip file ({error}); download it again.") from None
    if added == 0:
        raise InputError(f"{path} is empty; a shard is a gzip file with at least one record.")
    return added


def _count(connection: duckdb.DuckDBPyConnection, records: Records) -> tuple[dict[str, int], int]:
    """What is left out or empty, by reason; and the number of rows that are kept."""
    by_number = dict(connection.execute("SELECT omitted, count(*) FROM rows GROUP BY omitted").fetchall())
    counts = {reason: by_number.get(number, 0) for number, reason in enumerate([UNUSABLE, *records.omissions])}
    for reason, condition in records.empty.items():
        counts[reason] = _number(connection, f"SELECT count(*) FROM rows WHERE omitted IS NULL AND {condition}")
    return counts, by_number.get(None, 0)


def _number(connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, str] | None = None) -> int:
    ((number,),) = connection.execute(query, parameters).fetchall()
    return int(number)


def _write_buckets(connection: duckdb.DuckDBPyConnection, records: Records, buckets: int, output: Path) -> int:
    """Write every bucket, also the empty ones; return the number of rows."""
    key = TABLES[records.table].key
    kept = f"SELECT *, {key[0]} % {buckets} AS bucket FROM ({_distinct(records)}) ORDER BY bucket, {', '.join(key)}"
    rows = connection.sql(kept).to_arrow_reader(ROWS_IN_BATCH)
    with atomic_path(output) as temporary:
        written = {
            bucket: write_table(temporary / f"{bucket}.parquet", records.table, (batch for _, batch in batches))
            for bucket, batches in groupby(_cut_by_bucket(rows), key=itemgetter(0))
        }
        for bucket in set(range(buckets)) - set(written):
            write_table(temporary / f"{bucket}.parquet", records.table, [])
    return sum(written.values())


def _distinct(records: Records) -> str:
    if records is CITATIONS:
        return f"""
            SELECT citing, cited, bool_or(influential) AS influential, {list_of_mask("bit_or(intents)")} AS intents
            FROM rows WHERE omitted IS NULL GROUP BY citing, cited
        """
    return "SELECT * EXCLUDE omitted FROM rows WHERE omitted IS NULL"


def _cut_by_bucket(batches: pa.RecordBatchReader) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Pieces of one bucket each, from batches that are sorted by the column `bucket`; that column is dropped."""
    for batch in batches:
        bucket = batch.column("bucket").to_numpy()
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(bucket)], strict=True):
            yield int(bucket[start]), batch.slice(start, stop - start).drop_columns("bucket")
