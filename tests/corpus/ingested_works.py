"""What ingesting files of works has written, and what merging makes of it."""

from pathlib import Path

import pyarrow.parquet as pq
from tests.corpus.made_openalex import FOLDERS

from cocite.core.tables.files import read_table
from cocite.corpus.ingest.merge import merge

LIMITS = {"memory_mb": 500, "threads": 1}


def merged(folder: Path, buckets=2):
    """The tables papers and citations of what was ingested, and what was left out of them."""
    rows, omissions = {}, {}
    for table in ("papers", "citations"):
        rows[table] = []
        for bucket in range(buckets):
            output, left_out = folder / "merged" / f"{table}-{bucket}", folder / "merged" / f"left-{table}-{bucket}"
            merge(table, ingested=folder, bucket=bucket, output=output, omissions=left_out, **LIMITS)
            rows[table] += read_table(output, table).to_pylist()
            for row in read_table(left_out, "omissions").to_pylist():
                omissions[row["reason"]] = omissions.get(row["reason"], 0) + row["count"]
    return rows, {reason: count for reason, count in omissions.items() if count}


def counts(folder):
    """(dataset, outcome) → how many."""
    report = pq.read_table(folder / "report").to_pylist()
    totals = {}
    for row in report:
        key = row["dataset"], row["outcome"]
        totals[key] = totals.get(key, 0) + row["lines"]
    return {key: count for key, count in totals.items() if count}


def files_of(bucket, layout):
    return sorted(path for path in (bucket / FOLDERS[layout] / "works").rglob("part_*"))
