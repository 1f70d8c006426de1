"""Move one bucket of an ingested release to a newer one: what the diffs replace or delete goes, what they bring comes.

A row stays unless a later diff names its key; the rows of the older release are from before all diffs, and no diff
names a key both as updated and as deleted. A key is looked for in the changes of all buckets, since an update can move
a citation to another citing paper, and a deletion of a citation tells no paper at all. What comes out is what ingest
gives for the newer release, in another order.
"""

from pathlib import Path

import duckdb

from cocite.corpus.ingest.records import BUCKET_KEYS
from cocite.corpus.release.manifest import Manifest, read_manifest
from cocite.ground.database import connect
from cocite.ground.errors import InputError
from cocite.tables import PRIMARY_KEYS, TABLES
from cocite.tables.files import scan_table, write_omissions, write_table

ROWS_IN_BATCH = {"papers": 20_000, "abstracts": 20_000, "citations": 100_000}
"""Rows that are written at once, as when they are merged."""


def check_base(base: Path, manifest: Manifest) -> None:
    """Raise `InputError` unless the results in `base` are of the release that the listed diffs lead on from."""
    older = read_manifest(base / "manifest.json").release
    if older != manifest.since:
        raise InputError(
            f"{base} holds the release {older}, but the diffs that were listed lead on from {manifest.since}."
        )


def update(
    dataset: str,
    base: Path,
    changes: Path,
    *,
    bucket: int,
    buckets: int,
    output: Path,
    omissions: Path,
    memory_mb: int,
    threads: int,
) -> None:
    """Write one bucket of a dataset's ingested rows as the newer release has them, and how many rows were dropped.

    `base` is the folder of the older release's ingested rows, `changes` that of what the diffs change. Raises
    `InputError` where the older rows were cut into another number of buckets, or have no key.
    """
    table = f"ingested_{dataset}"
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        connection.read_parquet(scan_table(base, table).files).create_view("older")
        connection.read_parquet(scan_table(changes, f"changed_{dataset}").files).create_view("changes")
        columns = ", ".join(TABLES[table].columns)
        connection.execute(f"""
            CREATE VIEW candidates AS
            SELECT {columns}, 0::USMALLINT AS step FROM older WHERE bucket = {bucket}
            UNION ALL
            SELECT {columns}, step FROM changes WHERE bucket = {bucket}
        """)
        _check(connection, dataset, base, bucket=bucket, buckets=buckets)
        key = PRIMARY_KEYS[dataset]
        newest = connection.sql(f"""
            SELECT {columns} FROM candidates
            ANTI JOIN changes ON changes.{key} = candidates.{key} AND changes.step > candidates.step
        """)
        written = write_table(output, table, newest.to_arrow_reader(ROWS_IN_BATCH[dataset]))
        dropped = _count(connection, "candidates") - written
        write_omissions(omissions, {"rows that a later diff replaced or deleted": dropped})


def _check(connection: duckdb.DuckDBPyConnection, dataset: str, base: Path, *, bucket: int, buckets: int) -> None:
    """Check over all buckets together that each row has a key and lies in the bucket that this run looks for it in."""
    if _count(connection, f"older WHERE bucket = {bucket} AND {PRIMARY_KEYS[dataset]} IS NULL"):
        raise InputError(
            f"{base}: holds {dataset} without a {PRIMARY_KEYS[dataset]}, as releases of 2023 have them; diffs name by "
            "it what they change, so the newer release must be ingested whole (without corpus.base)."
        )
    # DuckDB reads no more of other buckets than the footers of the files, which tell that none is too high.
    misplaced = f"bucket >= {buckets} OR bucket = {bucket} AND {BUCKET_KEYS[dataset]} % {buckets} <> {bucket}"
    if _count(connection, f"older WHERE {misplaced}"):
        raise InputError(f"{base}: was not ingested into {buckets} buckets; set corpus.buckets to the number it has.")


def _count(connection: duckdb.DuckDBPyConnection, rows: str) -> int:
    ((number,),) = connection.execute(f"SELECT count(*) FROM {rows}").fetchall()
    return int(number)
