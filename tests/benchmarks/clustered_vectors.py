"""Write a table `graph_embeddings` of vectors that lie in clusters as those of papers do, and queries among them.

Forty fields hold 4,000 topics, whose sizes are log-normal (σ = 1); a paper is its topic and noise, a topic its field
and noise, and every vector has norm 1. Of the variance, a half comes from the field, a third from the topic and the
rest from the paper. The larger of two tables begins with the smaller one.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.core.randomness import generator
from cocite.core.tables.files import vector_column, write_table

FIELDS, TOPICS, ROWS = 40, 4000, 50_000
GAP = 3
"""Ids are this far from one another."""


def main(folder: Path, papers: int, dimension: int, queries: int, gap: int = GAP) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "graph_embeddings.parquet", "graph_embeddings", batches(papers, dimension, gap))
    ids = np.sort(generator(1, "queries").choice(papers, queries, replace=False)) * gap
    write_table(folder / "queries.parquet", "queries", pa.table({"corpusid": ids, "split": ["train"] * queries}))


def batches(papers: int, dimension: int, gap: int) -> Iterator[pa.RecordBatch]:
    """The rows of the table, `ROWS` at a time."""
    drawn = generator(1, "topics")
    fields = drawn.normal(size=(FIELDS, dimension))
    topics = fields[drawn.integers(0, FIELDS, TOPICS)] + 0.8 * drawn.normal(size=(TOPICS, dimension))
    sizes = drawn.lognormal(size=TOPICS)
    for first in range(0, papers, ROWS):
        drawn = generator(1, "papers", first)
        rows = min(ROWS, papers - first)
        vectors = topics[drawn.choice(TOPICS, rows, p=sizes / sizes.sum())].astype(np.float32)
        vectors += np.float32(0.6) * drawn.standard_normal((rows, dimension), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        ids = np.arange(first, first + rows, dtype=np.int64) * gap
        yield pa.record_batch({"corpusid": ids, "vector": vector_column(vectors)})
