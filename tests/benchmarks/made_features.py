"""Vectors of papers and a graph over them, made by a process of its own: each paper cites ten earlier ones."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.core.tables.files import vector_column, write_table

DIMENSION, CITED = 100, 10
AT_ONCE = 10_000


def main(folder: Path, papers: int) -> None:
    """Write a bucket of vectors and one of edges; citations grow with their square, so that early papers have most."""
    write_table(folder / "vectors.parquet", "baseline_paper_embeddings", _vectors(papers))
    write_table(folder / "edges.parquet", "edges", _edges(papers))


def _vectors(papers: int) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(1)
    for start in range(0, papers, AT_ONCE):
        ids = np.arange(start + 1, min(start + AT_ONCE, papers) + 1)
        vectors = draw.standard_normal((len(ids), DIMENSION)).astype(np.float32)
        yield pa.record_batch({"corpusid": ids, "vector": vector_column(vectors)})


def _edges(papers: int) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(2)
    for start in range(1, papers, AT_ONCE):
        citing = np.repeat(np.arange(start + 1, min(start + AT_ONCE, papers) + 1), CITED)
        cited = 1 + ((citing - 1) * draw.random(len(citing)) ** 2).astype(np.int64)
        pairs = np.unique(np.stack([citing, cited], axis=1), axis=0)
        yield pa.record_batch(
            {"source": pairs[:, 0], "target": pairs[:, 1], "weight": np.ones(len(pairs), dtype=np.float32)}
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
