"""The exact search: every vector of the table goes past all queries of a group, read ahead of the products.

A pool takes in most papers before it knows how near k of them are, so a few blocks are searched first to guess it. A
guess that turns out too near leaves a query with fewer than k papers; it is then searched again without one.
"""

from collections.abc import Iterator
from math import ceil, sqrt

import numpy as np

from cocite.ground.ahead import ahead
from cocite.ground.id_sets import Ids
from cocite.ground.progress import progress_bar
from cocite.neighbours.checkpoints import Checkpoint
from cocite.neighbours.distances import FARTHEST, Block, Keys, Metric
from cocite.neighbours.pools import BLOCK, Pools, Workers
from cocite.neighbours.vectors import VectorTable

ROW_GROUPS_SAMPLED = 8
"""Row groups whose first block serves to guess, at most."""


class ExactSearch:
    """Search among all papers of a table."""

    held_mb = 0.0

    def __init__(self, table: VectorTable, metric: Metric) -> None:
        self.table, self.metric = table, metric

    def find(self, ids: Ids, workers: Workers) -> Block:
        """Those of the papers that are searched, with their vectors."""
        return self.table.find(ids, workers)

    def nearest(self, queries: Block, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Keys:
        """The keys of the k nearest papers of each query in rising order, queries × k; the query is not among them.

        Goes on from the row group that the checkpoint knows of, and tells it of each that has gone past. There must be
        more than k papers.
        """
        pools = Pools(queries, self.metric, k)
        met = checkpoint.restore(pools) if checkpoint else 0
        if not met:
            pools.worst[:] = self._guess(queries, k, workers)
        keys = self._search(pools, workers, checkpoint, met)
        short = np.flatnonzero(keys[:, -1] == FARTHEST)
        if len(short):
            keys[short] = self._search(Pools(queries.choose(short), self.metric, k), workers)
        return keys

    def _search(self, pools: Pools, workers: Workers, checkpoint: Checkpoint | None = None, met: int = 0) -> Keys:
        """What the pools keep of all row groups but the first `met`."""
        left = sum(self.table.sizes[met:])
        with progress_bar(of=f"{len(pools.counts):,} queries", unit="vectors", total=left) as bar:
            for row_group, block in ahead(self._blocks(met)):
                if checkpoint and row_group > met:
                    checkpoint.save(pools, row_group)
                    met = row_group
                pools.offer(block, workers)
                bar.update(len(block.numbers))
        return pools.nearest(workers)

    def _guess(self, queries: Block, k: int, workers: Workers) -> Keys:
        """A key for each query that k papers are probably below; `FARTHEST` where a sample cannot tell.

        It is that of a rank in the sample so high that, were the sample random, fewer than k papers would be below it
        once in millions of queries: five standard deviations of the Poisson distribution, and some for small numbers.
        """
        sizes = self.table.sizes
        sampled = range(0, len(sizes), -(-len(sizes) // ROW_GROUPS_SAMPLED))
        papers = sum(min(BLOCK, sizes[row_group]) for row_group in sampled)
        expected = k * papers / sum(sizes)
        rank = ceil(expected + 5 * sqrt(expected) + 10)
        if 2 * rank > papers:
            return np.full(len(queries.numbers), FARTHEST, dtype=np.uint64)
        pools = Pools(queries, self.metric, rank)
        for row_group in sampled:
            for block in self.table.blocks([row_group]):
                pools.offer(block, workers)
                break
        return pools.nearest(workers)[:, -1]

    def _blocks(self, first: int) -> Iterator[tuple[int, Block]]:
        """The blocks of each row group from this one on, with its number."""
        for row_group in self.table.row_groups[first:]:
            for block in self.table.blocks([row_group]):
                yield row_group, block
