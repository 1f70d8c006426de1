"""The corpus stage from a configuration to merged tables, step by step as the rules call it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cocite.config.configuration import Corpus, resolve
from cocite.config.release_folder import DATASETS
from cocite.config.settings import entry_of
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.accounting import account
from cocite.corpus.ingest.merge import merge
from cocite.corpus.ingest.names import list_names, number_names
from cocite.corpus.ingest.release_shards import ingest
from cocite.corpus.ingest.sentences import merge_contexts
from cocite.corpus.ingest.user_tables import ingest_tables
from cocite.corpus.release.plan import list_shards

Row = dict[str, Any]


@dataclass(frozen=True)
class Made:
    """What a run leaves in `corpus/`."""

    results: Path

    def rows(self, table: str) -> list[Row]:
        return sorted(
            read_table(self.results / "corpus" / table, table).to_pylist(), key=lambda row: [*row.values()][:2]
        )

    @property
    def papers(self) -> dict[int, Row]:
        return {row["corpusid"]: row for row in self.rows("papers")}

    @property
    def pairs(self) -> set[tuple[int, int]]:
        rows = self.rows("citations")
        pairs = {(row["citing"], row["cited"]) for row in rows}
        assert len(pairs) == len(rows)
        return pairs

    @property
    def names(self) -> dict[int, str]:
        table = read_table(self.results / "corpus/names.parquet", "names")
        return dict(zip(table["corpusid"].to_pylist(), table["name"].to_pylist(), strict=True))

    @property
    def named_pairs(self) -> set[tuple[str, str]]:
        return {(self.names[citing], self.names[cited]) for citing, cited in self.pairs}

    def omitted(self, word: str) -> int:
        """What was left out for a reason with this word, in all steps."""
        files = (self.results / "corpus/omissions").glob("*.parquet")
        return sum(row["count"] for file in files for row in pq.read_table(file).to_pylist() if word in row["reason"])


def make_corpus(results: Path, corpus: Row, *, threads: int = 1, release: str = "mine") -> Made:
    """Run the steps from the list of shards to the merged tables; the corpus is a section of a configuration."""
    config = resolve({"release": release, "corpus": corpus, "pathvars": {"results": str(results)}})
    source = entry_of(config["corpus"], Corpus)
    folder, cost = results / "corpus", {"memory_mb": 500, "threads": threads}
    manifest = folder / "manifest.json"
    list_shards(source, release=release, results=results, output=manifest)
    numbering = source.source == "table" and source.ids == "string"
    if numbering:
        for dataset in ("papers", "citations"):
            parts = source.parts(dataset)
            for part in range(parts):
                place = {"manifest": manifest, "part": part, "parts": parts}
                output = folder / f"ingested/{dataset}/names/{part}.parquet"
                list_names(dataset, source.table_of(dataset), **place, **cost, output=output)
        listed = [folder / f"ingested/{dataset}/names" for dataset in ("papers", "citations")]
        number_names(listed, output=folder / "names.parquet", **cost)
    for dataset in DATASETS:
        parts = source.parts(dataset)
        for part in range(parts):
            place = {"manifest": manifest, "part": part, "parts": parts, "buckets": source.buckets}
            written = {
                "output": folder / f"ingested/{dataset}/{part}.parquet",
                "report": folder / f"ingest_report/{dataset}/{part}.parquet",
            }
            if source.source == "table":
                listed_in = "citations" if dataset == "citations" else "papers"
                if numbering:
                    written["listed"] = folder / f"ingested/{listed_in}/names/{part}.parquet"
                    written["names"] = folder / "names.parquet"
                ingest_tables(dataset, source.table_of(dataset), **place, **cost, **written)
            else:
                if source.contexts is not None and dataset == "citations":
                    written["contexts"] = folder / f"ingested/citations/contexts/{part}.parquet"
                shards = source.shards_in_place(dataset)[part].parent
                ingest(dataset, shards=shards, ids="drop", authors=source.authors, **place, **cost, **written)
        omissions = folder / f"omissions/ingest-{dataset}.parquet"
        account(folder / "ingest_report" / dataset, malformed=source.malformed, omissions=omissions)
    for table in ("papers", "citations"):
        for bucket in range(source.buckets):
            omissions = folder / f"omissions/merge-{table}-{bucket}.parquet"
            written = {"output": folder / f"{table}/{bucket}.parquet", "omissions": omissions}
            merge(table, ingested=folder / "ingested", bucket=bucket, **written, **cost)
            if source.contexts is not None and table == "citations":
                written = {"output": folder / f"contexts/{bucket}.parquet", "omissions": results / "omitted.parquet"}
                ingested = folder / "ingested/citations/contexts"
                merge_contexts(source.contexts, ingested=ingested, bucket=bucket, **written, **cost)
    return Made(results)
