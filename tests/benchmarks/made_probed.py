"""Vectors of papers, and triplets among some of them, for a probe: made in a process of its own, as they are large."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.benchmarks.made_triplets import PER_QUERY

from cocite.core.tables.files import vector_column, write_table

QUERIES, DIMENSION = 3000, 384
IN_TRIPLETS = 30_000
"""Papers that documents of triplets are drawn from."""


def write_set(folder: Path, papers: int) -> None:
    """Vectors of so many papers, and triplets among the first of them."""
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((papers, DIMENSION), dtype=np.float32)
    table = pa.table({"corpusid": np.arange(papers), "vector": vector_column(vectors)})
    write_table(folder / "papers/0.parquet", "paper_embeddings", table)
    query = np.repeat(np.arange(QUERIES), PER_QUERY)
    others = draw.integers(QUERIES, IN_TRIPLETS, (2, len(query), 1))
    columns = {"query": query, "positives": others[0].tolist(), "negatives": others[1].tolist()}
    write_table(folder / "examples.parquet", "training_examples", pa.table(columns))


if __name__ == "__main__":
    write_set(Path(sys.argv[1]), int(sys.argv[2]))
