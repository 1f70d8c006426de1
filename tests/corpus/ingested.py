"""What ingesting shards or files of works has written: lines, the rows that they become, and what is merged of them."""

from pathlib import Path

import pyarrow.parquet as pq
from tests.corpus.made_openalex import FOLDERS

from cocite.core.tables.files import read_table
from cocite.corpus.ingest.merge import merge
from cocite.corpus.ingest.release_shards import IngestSettings

SHARD = "20260101_000000_00000_x.gz"


def settings(dataset: str, **options) -> IngestSettings:
    usual = {"buckets": 1, "keep_ids": False, "memory_mb": 500, "threads": 1}
    return IngestSettings(dataset=dataset, **(usual | options))


class Ingested:
    """What one run of `ingest` wrote."""

    def __init__(self, folder: Path) -> None:
        self.rows = pq.read_table(folder / "out").to_pylist()
        self.buckets = [row.pop("bucket") for row in self.rows]
        self.report = pq.read_table(folder / "report").to_pylist()

    def lines(self, word: str) -> int:
        """Lines with an outcome that holds the word, over all shards."""
        return sum(row["lines"] for row in self.report if word in row["outcome"])


def citation(citing, cited, influential=False, intents=None, **more) -> dict:
    return {"citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": influential, "intents": intents, **more}


def row(citing, cited, *traits, citationid=None) -> dict:
    bits = {"background": 1, "methodology": 2, "result": 4, "influential": 8, "unknown": 16}
    return {"citationid": citationid, "citing": citing, "cited": cited, "traits": sum(bits[trait] for trait in traits)}


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
