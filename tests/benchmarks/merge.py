"""Uniting the copies of citations: 100 million rows, and four times as many within the same memory."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.measuring import Cost, cocite, run, say

from cocite.core.tables.files import write_table

ROWS = 100_000_000
BUCKETS = 8
MEMORY_MB = 2800
SHARE_OF_COPIES = 0.45
_ROWS_AT_ONCE = 4_000_000
_REFERENCES = 20
_PAPERS = 280_000_000


def main(folder: Path) -> None:
    once, fourfold = (_merge_all(folder, rows) for rows in (ROWS, 4 * ROWS))
    say(f"Merging four times the rows: {fourfold / once:.2f} × the time.")


def _merge_all(folder: Path, rows: int) -> float:
    write_copies(folder / "ingested/citations", rows=rows, shards=8, buckets=BUCKETS)
    merged = [folder / "merged" / f"{bucket}.parquet" for bucket in range(BUCKETS)]
    cost = sum((_merge(folder, bucket, output) for bucket, output in enumerate(merged)), Cost(wall=0, cpu=0, peak_mb=0))
    distinct = sum(pq.read_metadata(path).num_rows for path in merged)
    shutil.rmtree(folder / "ingested")
    say(
        f"Merging {rows:,} rows, {SHARE_OF_COPIES:.0%} of them copies, to {distinct:,} citations in {BUCKETS} buckets: "
        f"{cost}."
    )
    return cost.wall


def _merge(folder: Path, bucket: int, output: Path) -> Cost:
    limits = {"memory_mb": MEMORY_MB, "threads": 2, "output": output, "omissions": output.with_suffix(".omissions")}
    return run(cocite("corpus", "merge", "citations", ingested=folder / "ingested", bucket=bucket, **limits))


def write_copies(folder: Path, *, rows: int, shards: int, buckets: int) -> None:
    """Write so many rows, each copy of a citation drawn at random among the distinct ones; deterministic."""
    rng = np.random.default_rng(rows)
    distinct = rows - int(rows * SHARE_OF_COPIES)
    for shard in range(shards):
        first, last = rows * shard // shards, rows * (shard + 1) // shards
        write_table(folder / f"{shard}.parquet", "ingested_citations", _rows(rng, first, last, distinct, buckets))


def _rows(rng: np.random.Generator, first: int, last: int, distinct: int, buckets: int) -> Iterator[pa.RecordBatch]:
    for start in range(first, last, _ROWS_AT_ONCE):
        places = np.arange(start, min(start + _ROWS_AT_ONCE, last))
        citation = np.where(places < distinct, places, rng.integers(0, distinct, len(places)))
        citing = citation // _REFERENCES * 2_654_435_761 % _PAPERS
        bucket = (citing % buckets).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        traits = np.where(rng.random(len(places)) < 0.3, rng.integers(0, 16, len(places)), 0).astype(np.uint8)
        batch = pa.record_batch(
            {
                "bucket": bucket[order],
                "citationid": pa.nulls(len(places), pa.int64()),
                "citing": citing[order],
                "cited": _scattered(citation[order]),
                "traits": traits,
            }
        )
        starts = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
        yield from (batch.slice(start, stop - start) for start, stop in pairwise(starts))


def _scattered(citation: np.ndarray) -> np.ndarray:
    """An id of 28 bits for each citation (Fibonacci hashing)."""
    return (citation.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(36)).astype(np.int64)
