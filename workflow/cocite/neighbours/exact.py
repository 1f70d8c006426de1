"""What every search offers, and the exact search.

The exact search compares every vector with all queries of a group. A pool takes in most papers before it knows how near
k of them are, so a few blocks are searched first to guess that; a query that a wrong guess leaves with fewer than k
papers is searched again without one.

Unlike `faiss.knn` on each block and a merge, whose products in float32 put near ties into another order, distances and
order are the same bit for bit whatever the blocks, groups and threads, and a killed search resumes. On two threads it
takes half the time of the command with FAISS (`tests/benchmarks/searching.py`).
"""

from collections.abc import Iterable, Iterator
from math import ceil, sqrt

import numpy as np

from cocite.core.id_sets import Ids
from cocite.core.progress import ahead, progress_bar
from cocite.neighbours.distances import FARTHEST, Block, Keys, Metric
from cocite.neighbours.pools import BLOCK, Pools, Workers
from cocite.neighbours.query_groups import Checkpoint
from cocite.neighbours.vectors import VectorFiles

ROW_GROUPS_SAMPLED = 8
"""Row groups whose first block serves to guess, at most."""
TIMES_RANK = 4
"""The first documents that a guess is made from are so many times the rank that is guessed at."""


class Search:
    """A way to search the papers of a table: here among all of them, exactly."""

    held_mb = 0.0
    """Memory that it takes besides the queries, their pools and blocks of vectors."""

    def __init__(self, table: VectorFiles, metric: Metric) -> None:
        self.table, self.metric = table, metric

    def find(self, ids: Ids, workers: Workers) -> Block:
        """Those of the papers that are searched, with their vectors."""
        return self.table.choose(ids, workers)

    def nearest(self, queries: Block, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Keys:
        """The keys of the k nearest papers of each query in rising order, queries × k; the query is not among them.

        `FARTHEST` fills up the rows of queries with fewer papers. Only the exact search resumes from a checkpoint.
        """
        return search_exactly(self.table, queries, self.metric, k, workers, checkpoint)


def search_exactly(
    documents: VectorFiles,
    queries: Block,
    metric: Metric,
    k: int,
    workers: Workers,
    checkpoint: Checkpoint | None = None,
) -> Keys:
    """The keys of the k nearest documents of each query in rising order, queries × k; the query is not among them.

    The search resumes from the row group in the checkpoint and offers it the pools after each row group. `FARTHEST`
    fills up the rows of queries where there are fewer documents than k.
    """
    pools = Pools(queries, metric, k)
    met = checkpoint.restore(pools) if checkpoint else 0
    if not met:
        pools.worst[:] = _guess(documents, queries, metric, k, workers)
    keys = _search(documents, pools, workers, checkpoint, met)
    short = np.flatnonzero(keys[:, -1] == FARTHEST)
    if len(short):
        keys[short] = _search(documents, Pools(queries.choose(short), metric, k), workers)
    return keys


def _search(
    documents: VectorFiles, pools: Pools, workers: Workers, checkpoint: Checkpoint | None = None, met: int = 0
) -> Keys:
    """The keys that the pools keep after all row groups but the first `met`, which they hold already."""
    sizes = documents.sizes
    with progress_bar(of=f"{len(pools.counts):,} queries", unit="vectors", total=sum(sizes[met:])) as bar:
        for row_group, block in ahead(_blocks(documents, range(met, len(sizes)))):
            if checkpoint and row_group > met:
                checkpoint.save(pools, row_group)
                met = row_group
            pools.offer(block, workers)
            bar.update(len(block.numbers))
    return pools.nearest(workers)


def _guess(documents: VectorFiles, queries: Block, metric: Metric, k: int, workers: Workers) -> Keys:
    """A key for each query that k documents are probably below; `FARTHEST` where the sample is too small to guess.

    It is the key at a high rank of the sample: if the sample were random, fewer than k documents would be below it
    once in millions of queries (five standard deviations of the Poisson distribution, and some for small numbers).
    """
    sizes = documents.sizes
    sampled = range(0, len(sizes), max(1, -(-len(sizes) // ROW_GROUPS_SAMPLED)))
    met = sum(min(BLOCK, sizes[row_group]) for row_group in sampled)
    expected = k * met / max(1, sum(sizes))
    rank = ceil(expected + 5 * sqrt(expected) + 10)
    if 2 * rank > met:
        return np.full(len(queries.numbers), FARTHEST, dtype=np.uint64)
    pools = Pools(queries, metric, rank)
    for row_group in sampled:
        for block in documents.blocks([row_group]):
            if row_group == 0:  # Before the pools know any limit, each document that is offered is compared exactly.
                pools.offer(block.choose(slice(0, TIMES_RANK * rank)), workers)
                pools.nearest(workers)
                block = block.choose(slice(TIMES_RANK * rank, None))
            if len(block.numbers):
                pools.offer(block, workers)
            break
    return pools.nearest(workers)[:, -1]


def _blocks(documents: VectorFiles, row_groups: Iterable[int]) -> Iterator[tuple[int, Block]]:
    """The blocks of each row group, with its number."""
    for row_group in row_groups:
        for block in documents.blocks([row_group]):
            yield row_group, block
