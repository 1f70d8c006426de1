"""Write what the benchmark of mining reads: vectors in clusters, queries with a positive each, and right negatives.

The positive of a query is its tenth neighbour. The right negatives, by products in float64, are the nearest papers
whose cosine is below that of the positive by the margin.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.benchmarks.clustered_vectors import GAP
from tests.benchmarks.clustered_vectors import main as write_vectors
from tests.benchmarks.made_papers import required_schema

from cocite.core.tables.files import read_table, vectors_of, write_table

RANK_OF_POSITIVE, NEGATIVES, RELATIVE_MARGIN = 10, 5, 0.005
NEAREST, AT_ONCE = 5000, 50
"""Papers among which the right negatives are looked for, and queries whose products are in memory together."""
ROWS = 4096
"""Vectors of a row group, as many as embedding writes."""


def main(folder: Path, papers: int, dimension: int, queries: int) -> None:
    """Write `papers/0.parquet`, `paper_embeddings.parquet`, `queries.parquet`, `triplets.parquet` and `true.npy`."""
    write_vectors(folder, papers, dimension, queries)
    table = read_table(folder / "graph_embeddings.parquet", "graph_embeddings")
    vectors = table.combine_chunks()
    write_table(folder / "paper_embeddings.parquet", "paper_embeddings", iter(vectors.to_batches(ROWS)))
    (folder / "graph_embeddings.parquet").unlink()
    _write_papers(folder / "papers" / "0.parquet", papers)
    asked = read_table(folder / "queries.parquet", "queries")["corpusid"].to_numpy()
    held = vectors_of(table)
    held /= np.linalg.norm(held, axis=1, keepdims=True)
    found = [row for places in np.array_split(asked // GAP, -(-queries // AT_ONCE)) for row in _nearest(held, places)]
    positives = np.array([positive for positive, _ in found]) * GAP
    np.save(folder / "true.npy", np.stack([negatives for _, negatives in found]) * GAP)
    _write_triplets(folder / "triplets.parquet", asked, positives)


def _nearest(vectors: np.ndarray, queries: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The positive and the right negatives of some queries; float32 only says which papers are among the nearest."""
    for query, roughly in zip(queries, (vectors @ vectors[queries].T).T, strict=True):
        near = np.argpartition(-roughly, NEAREST)[:NEAREST]
        cosines = vectors[near].astype(np.float64) @ vectors[query].astype(np.float64)
        order = np.lexsort((near, -cosines))
        near, cosines = near[order], cosines[order]
        near, cosines = near[near != query], cosines[near != query]
        is_right = cosines <= cosines[RANK_OF_POSITIVE - 1] * (1 - RELATIVE_MARGIN)
        yield int(near[RANK_OF_POSITIVE - 1]), near[is_right][:NEGATIVES]


def _write_papers(path: Path, papers: int) -> None:
    schema = required_schema()
    told = {
        "corpusid": pa.array(np.arange(papers, dtype=np.int64) * GAP),
        "title": pa.array(["title"] * papers),
        "abstract": pa.array(["abstract"] * papers),
        "has_text": pa.array([True] * papers),
        "fields": pa.array([[]] * papers, schema.field("fields").type),
    }
    columns = [told.get(field.name, pa.nulls(papers, field.type)) for field in schema]
    write_table(path, "papers", pa.table(columns, schema=schema))


def _write_triplets(path: Path, queries: np.ndarray, positives: np.ndarray) -> None:
    rows = {
        "query": queries,
        "positive": positives,
        "negative": positives,
        "split": ["train"] * len(queries),
        "positive_rank": pa.nulls(len(queries), pa.int32()),
        "negative_rank": pa.nulls(len(queries), pa.int32()),
        "negative_kind": ["given"] * len(queries),
    }
    write_table(path, "triplets", pa.table(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
