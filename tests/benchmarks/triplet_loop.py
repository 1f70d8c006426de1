"""The rival of sampling triplets and materialising them: a loop over Python dictionaries.

Rows are read as dictionaries; texts lie in one by paper, neighbours in one by query, a list each in the order of ranks.
"""

import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

K_POSITIVE, K_NEGATIVE, PER_QUERY = 25, 5000, 7
ROLES = ("query", "positive", "negative")
TRIPLETS_AT_ONCE = 20_000


def main(folder: Path, output: Path) -> None:
    """Sample from bands of neighbours, shuffle by query, join with the texts, and write one Parquet file."""
    texts = {}
    for bucket in sorted((folder / "papers").iterdir()):
        for batch in pq.ParquetFile(bucket).iter_batches(columns=["corpusid", "title", "abstract"]):
            for row in batch.to_pylist():
                if row["title"] and row["abstract"]:
                    texts[row["corpusid"]] = (row["title"], row["abstract"])
    ranked: dict[int, list[int]] = {}
    for batch in pq.ParquetFile(folder / "neighbours/0.parquet").iter_batches(columns=["query", "neighbour"]):
        for row in batch.to_pylist():
            ranked.setdefault(row["query"], []).append(row["neighbour"])
    queries = pq.read_table(folder / "queries.parquet")["corpusid"].to_pylist()
    random.Random(1).shuffle(queries)
    rows: list[dict[str, int | str]] = []
    writer = None
    for query in queries:
        positives = _band(ranked[query], K_POSITIVE, texts)
        negatives = _band(ranked[query], K_NEGATIVE, texts)
        rows += [
            _joined(dict(zip(ROLES, (query, *pair), strict=True)), texts)
            for pair in zip(positives, negatives, strict=False)
        ]
        if len(rows) >= TRIPLETS_AT_ONCE or query == queries[-1]:
            table = pa.Table.from_pylist(rows)
            writer = writer or pq.ParquetWriter(output, table.schema, compression="zstd")
            writer.write_table(table)
            rows = []
    if writer:
        writer.close()


def _band(ranked: list[int], last: int, texts: dict[int, tuple[str, str]]) -> list[int]:
    papers = ranked[last - PER_QUERY : last]
    random.Random(last).shuffle(papers)
    return [paper for paper in papers if paper in texts]


def _joined(triplet: dict[str, int], texts: dict[int, tuple[str, str]]) -> dict[str, int | str]:
    row: dict[str, int | str] = dict(triplet)
    for role in ROLES:
        row[f"{role}_title"], row[f"{role}_abstract"] = texts[triplet[role]]
    return row


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
