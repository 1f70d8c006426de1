"""Graphs as tables `edges`, or as an import leaves them, each made by a process of its own, whose memory is not
that of what is measured.

Communities have 10 to 500 papers, small ones more often. Four edges of five lead to a paper of the same community, the
others to any, so that link prediction can be learned but not perfectly. Targets within a community are drawn unevenly:
some papers are cited far more often than others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.tables.files import write_table

EDGES_A_PAPER = 8
LARGEST_ID = 280_000_000
SOURCES_AT_ONCE = 50_000
SMALLEST, LARGEST = 10, 500
WITHIN = 0.8
NEW = 0.1
GAP = 7
"""Corpus ids are multiples of it, since those of real papers have gaps as well."""
BUCKETS = 10
SPREAD = 2_654_435_761
"""A prime that spreads the most cited papers over all communities."""
HELD_OUT = 5000
BLOCK = 4_000_000


def write_random(path: Path, edges: int) -> None:
    """Write a directed graph of so many edges, less those drawn twice."""
    write_table(path, "edges", _random_edges(edges))


def _random_edges(edges: int) -> Iterator[pa.RecordBatch]:
    drawn = np.random.default_rng(1)
    papers = np.unique(drawn.integers(1, LARGEST_ID, edges // EDGES_A_PAPER))
    left = edges
    for start in range(0, len(papers), SOURCES_AT_ONCE):
        sources = papers[start : start + SOURCES_AT_ONCE]
        count = min(left, -(-edges * len(sources) // len(papers)))
        pairs = np.unique(drawn.choice(sources, count) << 32 | drawn.choice(papers, count))
        left -= count
        yield weightless(pairs >> 32, pairs & 0xFFFFFFFF)


def write_communities(path: Path, papers: int, edges: int, older: bool = False) -> None:
    """Write about so many edges between the papers of communities: those drawn twice, and those from a paper to itself,
    are not there.

    With `older` it is the release before: a tenth of the papers, drawn from all, is not there yet, and neither are
    their edges.
    """
    drawn = np.random.default_rng(1)
    pairs = draw_edges(drawn, papers, edges)
    if older:
        there = drawn.random(papers) >= NEW
        pairs = pairs[there[pairs].all(axis=1)]
    write_pairs(path, GAP * (pairs + 1))


def write_cited(folder: Path, papers: int, edges: int, queries: int) -> None:
    """Write about so many edges in buckets, a bucket at a time, with papers that very many cite, and random queries.

    Edges to any paper lead to the r-th most cited one in proportion to r^(−2/3), so that the numbers of citations have
    a heavy tail (their density falls with the power 2.5).
    """
    drawn = np.random.default_rng(1)
    firsts = first_papers(drawn, papers)
    asked = np.sort(drawn.choice(papers, queries, replace=False))
    table = pa.table({"corpusid": GAP * (asked + 1), "split": ["train"] * queries})
    write_table(folder / "queries.parquet", "queries", table)
    for bucket in range(BUCKETS):
        source = bucket + BUCKETS * drawn.integers(papers // BUCKETS, size=edges // BUCKETS)
        near = near_papers(drawn, firsts, source)
        far = (papers * drawn.random(len(source)) ** 3).astype(np.int64) * SPREAD % papers
        pairs = distinct(source, np.where(drawn.random(len(source)) < WITHIN, near, far), papers)
        write_pairs(folder / "edges" / f"{bucket}.parquet", GAP * (pairs + 1))


def write_pairs(path: Path, pairs: NDArray[np.int64]) -> None:
    write_table(path, "edges", [weightless(*pairs.T)])


def weightless(source: Any, target: Any) -> pa.RecordBatch:
    """Edges that all weigh the same."""
    return pa.record_batch({"source": source, "target": target, "weight": np.ones(len(source), dtype=np.float32)})


def draw_edges(drawn: np.random.Generator, papers: int, edges: int) -> NDArray[np.int64]:
    """Distinct edges between different papers 0, 1, …, in order; edges × 2."""
    firsts = first_papers(drawn, papers)
    source = drawn.integers(papers, size=edges)
    near = near_papers(drawn, firsts, source)
    target = np.where(drawn.random(edges) < WITHIN, near, drawn.integers(papers, size=edges))
    return distinct(source, target, papers)


def near_papers(drawn: np.random.Generator, firsts: NDArray[np.int64], source: NDArray[np.int64]) -> NDArray[np.int64]:
    """A paper of the community of each source, the first ones more often."""
    community = np.searchsorted(firsts, source, side="right") - 1
    size = firsts[community + 1] - firsts[community]
    return firsts[community] + (size * drawn.random(len(source)) ** 2).astype(np.int64)


def distinct(source: NDArray[np.int64], target: NDArray[np.int64], papers: int) -> NDArray[np.int64]:
    """The distinct edges between different papers, in order; edges × 2."""
    pairs = np.unique(source * papers + target)
    found = np.stack([pairs // papers, pairs % papers], axis=1)
    return found[found[:, 0] != found[:, 1]]


def first_papers(drawn: np.random.Generator, papers: int) -> NDArray[np.int64]:
    """Number of the first paper of each community, and of papers; sizes are spread evenly over their logarithm."""
    sizes = np.exp(drawn.uniform(np.log(SMALLEST), np.log(LARGEST), papers // SMALLEST + 1)).astype(np.int64)
    firsts = np.cumsum(sizes)
    return np.concatenate([[0], firsts[firsts < papers], [papers]])


def write_imported(folder: Path, papers: int, edges: int, partitions: int) -> None:
    """Write a graph of random edges as an import leaves it, in random order: so many to train on, and
    `HELD_OUT` more."""
    from cocite.embeddings.edges import HOLDOUT, TRAINING
    from cocite.embeddings.imported import partition_starts, write_edges, write_papers

    starts = partition_starts(papers, partitions)
    write_papers(folder, np.arange(papers), starts)
    for seed, (side, count) in enumerate({TRAINING: edges, HOLDOUT: HELD_OUT}.items()):
        write_edges(folder, side, starts, _blocks(np.random.default_rng(seed), papers, count))


def _blocks(drawn: np.random.Generator, papers: int, edges: int) -> Iterator[tuple[Any, Any, None]]:
    for start in range(0, edges, BLOCK):
        lhs, rhs = drawn.integers(papers, size=(2, min(BLOCK, edges - start)), dtype=np.int32)
        yield lhs, rhs, None
