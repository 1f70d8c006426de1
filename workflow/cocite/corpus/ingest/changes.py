"""Move an ingested release to a newer one by diffs, bucket after bucket.

Each record of a diff becomes a row of its primary key and the number of the step, which voids every earlier row of this
key; each update also becomes a row as in a whole release. Keys are read in a separate pass, since an update can turn a
kept record into an omitted one, and looked up in the changes of all buckets, since it can move a citation to another
citing paper.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Threads
from cocite.core.tables import PRIMARY_KEYS, TABLES, empty_schema
from cocite.core.tables.files import verified_files, write_omissions, write_table
from cocite.corpus.ingest.accounting import Tally
from cocite.corpus.ingest.citations import read_citation_ids
from cocite.corpus.ingest.merge import BUCKET_KEYS, ROWS_IN_BATCH
from cocite.corpus.ingest.records import Records, read_documents, sql_of_id
from cocite.corpus.ingest.release_shards import IngestSettings, read_shard
from cocite.corpus.ingest.unpacking import unpack
from cocite.corpus.release.manifest import DatasetName, DiffShard, ManifestFile, read_manifest


def read_diff(
    settings: IngestSettings, shard: DiffShard, path: Path, tally: Tally, spill: Path
) -> Iterator[pa.RecordBatch]:
    """The keys of a shard of a diff, then the rows of its updates; its lines are counted once. Keys are read by the
    reader that also reads the rows, so that both take the same lines."""
    dataset, key = settings.dataset, PRIMARY_KEYS[settings.dataset]
    of_keys = tally if shard.deletes else Tally(dataset=tally.dataset, shard=tally.shard)
    if dataset == "citations":
        keys = (pa.record_batch({key: ids}) for ids in read_citation_ids(unpack(path), of_keys))
    else:
        records = Records(structure={key: "VARCHAR"}, columns={key: sql_of_id(f"record.{key}")})
        cost = {"memory_mb": settings.memory_mb, "threads": settings.threads}
        documents = read_documents(unpack(path), of_keys, records, buckets=1, spill=spill, **cost)
        keys = (batch.select([key]) for batch in documents)
    updates = () if shard.deletes else read_shard(replace(settings, keep_ids=True), path, tally, spill)
    for batch in chain(keys, updates):
        if batch.column(key).null_count:
            raise InputError(f"{path}: has {dataset} without a {key}, which a diff needs.")
        schema = empty_schema(TABLES[f"changed_{dataset}"])
        columns = {field.name: pa.nulls(len(batch), field.type) for field in schema}
        columns |= dict(zip(batch.schema.names, batch.columns, strict=True))
        yield pa.record_batch({**columns, "step": pa.array(np.full(len(batch), shard.step, dtype=np.uint16))})


def update(
    dataset: DatasetName,
    *,
    manifest: ManifestFile,
    base: Annotated[Path, typer.Option(help="Folder corpus of the results of an earlier release.")],
    changes: Annotated[Path, typer.Option(help="Folder of the rows of the diffs since then.")],
    bucket: Bucket,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Move a bucket of ingested rows to a newer release: drop what diffs replaced or deleted, add what they contain.

    Raises `InputError` if the base is another release than the one the diffs start from, or if its rows have another
    number of buckets or no key.
    """
    older, since = read_manifest(base / "manifest.json").release, read_manifest(manifest).since
    if older != since:
        raise InputError(f"{base} contains the release {older}, but the listed diffs start from {since}.")
    ingested, table = base / "ingested" / dataset, f"ingested_{dataset}"
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        connection.read_parquet(verified_files(ingested, table, bucket=bucket)).create_view("older")
        connection.read_parquet(verified_files(changes, f"changed_{dataset}", bucket=bucket)).create_view("changes")
        columns = ", ".join(name for name, column in TABLES[table].columns.items() if not column.optional)
        connection.execute(f"""
            CREATE VIEW candidates AS
            SELECT {columns}, 0::USMALLINT AS step FROM older WHERE bucket = {bucket}
            UNION ALL
            SELECT {columns}, step FROM changes WHERE bucket = {bucket}
        """)
        key = PRIMARY_KEYS[dataset]
        count_older = "SELECT count(*) FROM older WHERE"
        if number(connection, f"{count_older} bucket = {bucket} AND {key} IS NULL"):
            remedy = "diffs identify changes by it, so the newer release must be ingested whole (without corpus.base)"
            raise InputError(f"{ingested}: has {dataset} without a {key}, as releases of 2023 do; {remedy}.")
        # Of other buckets DuckDB reads only the footers of the files, which show that none is too high.
        misplaced = f"bucket >= {buckets} OR bucket = {bucket} AND {BUCKET_KEYS[dataset]} % {buckets} <> {bucket}"
        if number(connection, f"{count_older} {misplaced}"):
            remedy = "set corpus.buckets to their number"
            raise InputError(f"{ingested}: was not ingested into {buckets} buckets; {remedy}.")
        newest = connection.sql(f"""
            SELECT {columns} FROM candidates
            ANTI JOIN changes ON changes.{key} = candidates.{key} AND changes.step > candidates.step
        """)
        written = write_table(output, table, newest.to_arrow_reader(ROWS_IN_BATCH[dataset]))
        dropped = number(connection, "SELECT count(*) FROM candidates") - written
        write_omissions(omissions, {"rows that a later diff replaced or deleted": dropped})
