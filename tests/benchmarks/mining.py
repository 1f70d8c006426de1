"""Mining hard negatives: ours against sentence-transformers' `mine_hard_negatives`, with vectors that are ready.

Like for like are whole commands from the same tables of vectors. Ours searches, compares what it finds with the
positives, and writes the candidates and the set with its mined negatives; the rival searches with the options that
mean the same, by products and `torch.topk` or by FAISS. The seconds of its function alone, and of our ranking, with all
vectors in memory and without imports, are reported as well. Both are compared with a brute force in float64: the share
of its negatives that they found.

The positive of a query is its tenth neighbour. The right negatives, by products in float64, are the nearest papers
whose cosine is below that of the positive by the margin.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from tests.benchmarks.clustered_vectors import GAP
from tests.benchmarks.clustered_vectors import main as write_vectors
from tests.benchmarks.measuring import Cost, answer, cocite, compare, python, run, say, spread_of
from tests.papers import papers_table

from cocite.core.tables.files import read_table, vectors_of, write_table

PAPERS, DIMENSION, QUERIES, THREADS = 500_000, 384, 1000, 2
LAST_RANK = 100
MEMORY_MB = 4000
"""As the workflow gives a job with so many vectors."""
ROUNDS = 3
RANK_OF_POSITIVE, NEGATIVES, RELATIVE_MARGIN = 10, 5, 0.005
NEAREST, AT_ONCE = 5000, 50
"""Papers among which the right negatives are looked for, and queries whose products are in memory together."""
ROWS = 4096
"""Vectors of a row group, as many as embedding writes."""


def main(folder: Path) -> None:
    run(python(write_tables, folder, PAPERS, DIMENSION, QUERIES))
    for by in ("topk", "faiss"):
        given = (folder, by, THREADS, NEGATIVES, LAST_RANK, RELATIVE_MARGIN)
        rival = python("mining_rival:mine", *given)
        title = f"Mining for {QUERIES:,} queries in {PAPERS:,} vectors, to mine_hard_negatives by {by}"
        cost, _ = compare(title, lambda: _ours(folder), rival, "wall", ROUNDS)
        alone = [
            (answer(rank, folder, THREADS, LAST_RANK)[1], answer("mining_rival:mine", *given)[1]) for _ in range(ROUNDS)
        ]
        ours, theirs = (median(pair[side] for pair in alone) for side in (0, 1))
        say(
            f"With vectors in memory, our ranking to its function: {ours / theirs:.2f} × ({ours:.2f} s to "
            f"{theirs:.2f} s; {spread_of(mine / other for mine, other in alone)})."
        )
        say(f"Peak memory {cost.peak_mb:.0f} MB to {run(rival).peak_mb:.0f} MB.")
        say(f"Recall of its negatives: {_recall(folder, np.load(folder / f'{by}.npy')):.4f}.")
    mined = read_table(folder / "mined.parquet", "sampled_examples").to_pylist()
    pairs = np.array([(row["query"], paper) for row in mined for paper in row["negatives"]])
    say(f"Recall of ours: {_recall(folder, pairs):.4f}.")


def _ours(folder: Path) -> Cost:
    settings = {"by": {"kind": "encoder", "name": "ready"}, "ranks": [1, LAST_RANK]}
    same = {"papers": folder / "papers", "queries": folder / "queries.parquet", "threads": THREADS}
    triplets = folder / "triplets.parquet"
    candidates, positives = folder / "candidates.parquet", folder / "positives.parquet"
    made = {"candidates": candidates, "positives": positives, "omissions": folder / "missing.parquet"}
    limits = {"settings": settings, "memory_mb": MEMORY_MB, "state": folder / "state"}
    search = cocite("neighbours", "mine", triplets, folder / "paper_embeddings.parquet", **same, **limits, **made)
    picked = {"sampler": "mined", "of": "set", "negatives": NEGATIVES, "relative_margin": RELATIVE_MARGIN}
    made = {"output": folder / "mined.parquet", "omissions": folder / "left-out.parquet"}
    made |= {"written_settings": folder / "settings.json", "settings": {**settings, **picked, "duplicates": None}}
    sample = cocite("triplets", "sample", triplets, candidates, positives, **same, **made, seed=1)
    return run(search) + run(sample)


def rank(folder: Path, threads: int, last_rank: int) -> float:
    """The seconds of our ranking of documents with all vectors in memory."""
    from cocite.neighbours.mining import VectorRanking, read_asked, read_documents
    from cocite.neighbours.nearest import Metric, start_workers
    from cocite.neighbours.vectors import VectorFiles

    asked = read_asked(folder / "triplets.parquet")
    documents = read_documents("papers", folder / "papers", folder / "queries.parquet", [])
    vectors = VectorFiles([folder / "paper_embeddings.parquet"], documents)
    with start_workers(threads) as workers:
        vectors.hold(workers)
        ranking = VectorRanking(vectors, Metric.COSINE)
        start = time.perf_counter()
        ranking.rank(asked, last_rank + int(np.diff(asked.starts).max()), workers)
        return time.perf_counter() - start


def _recall(folder: Path, pairs: np.ndarray) -> float:
    """The share of the right negatives that are among pairs of a query and a negative."""
    queries = read_table(folder / "queries.parquet", "queries")["corpusid"].to_numpy()
    right = {
        (query, paper) for query, papers in zip(queries, np.load(folder / "true.npy"), strict=True) for paper in papers
    }
    return len(right & set(map(tuple, pairs.tolist()))) / len(right)


def write_tables(folder: Path, papers: int, dimension: int, queries: int) -> None:
    """Write `papers/0.parquet`, `paper_embeddings.parquet`, `queries.parquet`, `triplets.parquet` and `true.npy`."""
    write_vectors(folder, papers, dimension, queries)
    table = read_table(folder / "graph_embeddings.parquet", "graph_embeddings")
    vectors = table.combine_chunks()
    write_table(folder / "paper_embeddings.parquet", "paper_embeddings", iter(vectors.to_batches(ROWS)))
    (folder / "graph_embeddings.parquet").unlink()
    texts = dict.fromkeys(range(0, papers * GAP, GAP), ("title", "abstract"))
    write_table(folder / "papers" / "0.parquet", "papers", papers_table(texts))
    asked = read_table(folder / "queries.parquet", "queries")["corpusid"].to_numpy()
    held = vectors_of(table)
    held /= np.linalg.norm(held, axis=1, keepdims=True)
    found = [row for places in np.array_split(asked // GAP, -(-queries // AT_ONCE)) for row in _nearest(held, places)]
    positives = np.array([positive for positive, _ in found]) * GAP
    np.save(folder / "true.npy", np.stack([negatives for _, negatives in found]) * GAP)
    nothing = pa.nulls(queries, pa.int32())
    rows = {"query": asked, "positive": positives, "negative": positives, "split": ["train"] * queries}
    rows |= {"positive_rank": nothing, "negative_rank": nothing, "negative_kind": ["given"] * queries}
    write_table(folder / "triplets.parquet", "triplets", pa.table(rows))


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
