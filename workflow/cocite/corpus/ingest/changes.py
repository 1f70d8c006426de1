"""Ingest shards of diffs: what they change, step by step, for `update` to apply to the rows of an older release.

A diff replaces and deletes records by primary key. Each of its records becomes a row with a key and the number of the
step alone: all that was known of this key before the step is void. Each update becomes a further row, as it does in a
whole release, if that keeps it. The keys are read in a pass of their own, because an update can also turn a record that
was kept into one that is left out, such as a citation of an unknown paper.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.corpus.ingest.documents import read_documents
from cocite.corpus.ingest.records import KEYS
from cocite.corpus.ingest.shards import IngestSettings, find_shard, read_shard
from cocite.corpus.ingest.tally import Tally, tallies_as_table
from cocite.corpus.ingest.unpacking import unpack
from cocite.corpus.release.manifest import DiffShard, Shard
from cocite.ground.errors import InputError
from cocite.ground.progress import progress
from cocite.tables import PRIMARY_KEYS, TABLES, empty_schema
from cocite.tables.files import write_table


def ingest_changes(settings: IngestSettings, folder: Path, shards: list[Shard], *, output: Path, report: Path) -> None:
    """Write what some shards of diffs change in a dataset, and the table `ingest_report` about them.

    Raises `InputError` for a shard that is missing, of another size than listed, or not a whole gzip file.
    """
    paths = [find_shard(folder, shard) for shard in shards]
    tallies = [Tally(dataset=settings.dataset, shard=path.name) for path in paths]
    named = zip(shards, progress(paths, of=f"ingest {settings.dataset}", unit="shards"), tallies, strict=True)
    changes = (
        _as_changes(batch, settings.dataset, shard.step)
        for shard, path, tally in named
        if isinstance(shard, DiffShard)
        for batch in _read_diff(settings, path, tally, deletes=shard.deletes, spill=output.parent)
    )
    write_table(output, f"changed_{settings.dataset}", changes)
    write_table(report, "ingest_report", tallies_as_table(tallies))


def _read_diff(
    settings: IngestSettings, path: Path, tally: Tally, *, deletes: bool, spill: Path
) -> Iterator[pa.RecordBatch]:
    """The keys of a shard, then the rows of its updates; its lines are counted once."""
    keys_tally = tally if deletes else Tally(dataset=tally.dataset, shard=tally.shard)
    yield from _read_keys(settings, path, keys_tally, spill)
    if deletes:
        return
    for batches in read_shard(replace(settings, keep_ids=True), path, tally, spill):
        for batch in batches:
            if batch.column(PRIMARY_KEYS[settings.dataset]).null_count:
                raise InputError(
                    f"{path}: holds {settings.dataset} without a {PRIMARY_KEYS[settings.dataset]}, which no diff can "
                    "be without."
                )
            yield batch


def _read_keys(settings: IngestSettings, path: Path, tally: Tally, spill: Path) -> Iterator[pa.RecordBatch]:
    """The primary key of every record, by the reader that also reads the rows, so that both take the same lines."""
    if settings.dataset == "citations":
        from cocite.corpus.ingest.citations import read_citation_ids

        for ids in read_citation_ids(unpack(path), tally):
            yield pa.record_batch({PRIMARY_KEYS["citations"]: ids})
        return
    keys = KEYS[settings.dataset]
    cost = {"memory_mb": settings.memory_mb, "threads": settings.threads}
    for batches in read_documents(unpack(path), tally, keys, buckets=1, spill=spill, **cost):
        for batch in batches:
            yield batch.select([*keys.columns])


def _as_changes(batch: pa.RecordBatch, dataset: str, step: int) -> pa.RecordBatch:
    """The columns of the table of changes; what a batch of keys lacks of them is null."""
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    given["step"] = pa.array(np.full(len(batch), step, dtype=np.uint16))
    schema = empty_schema(TABLES[f"changed_{dataset}"])
    return pa.record_batch(
        [given[field.name] if field.name in given else pa.nulls(len(batch), field.type) for field in schema],
        names=schema.names,
    )
