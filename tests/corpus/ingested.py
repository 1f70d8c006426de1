"""Lines of shards, the rows that they become, and what ingesting them has written."""

from pathlib import Path

import pyarrow.parquet as pq

from cocite.corpus.ingest.shards import IngestSettings

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
