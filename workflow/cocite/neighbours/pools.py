"""The nearest papers of each query so far: blocks of papers are offered, and the k smallest keys stay.

A pool has room for more than k keys. Once it could overflow, its k smallest are kept and the k-th becomes the worst
that may still come in, so that ever fewer papers pass. What stays depends neither on the order of the blocks, nor on
where they are cut, nor on the number of threads: each thread takes some of the queries, and pools share nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocite.neighbours.distances import (
    FARTHEST,
    Block,
    Keys,
    Metric,
    affinity,
    comparable,
    cuts,
    exact_distance,
    key_of,
)

BLOCK = 4096
"""Papers of a block, at most."""
TILE = 256
"""Queries that a thread takes at once, at most: their products with a block stay in the processor's cache."""
COPIES_OF_BLOCK = 3
"""Copies of a block that a thread holds while it reads."""


class Workers(ThreadPoolExecutor):
    """Threads that multiply matrices, each by itself."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.threads = threads


@contextmanager
def start_workers(threads: int) -> Iterator[Workers]:
    """Start so many threads; libraries start none of their own meanwhile."""
    with threadpool_limits(1), Workers(threads) as started:
        yield started


class Pools:
    """The k nearest papers of some queries among those that were offered."""

    def __init__(self, queries: Block, metric: Metric, k: int) -> None:
        self.queries, self.metric, self.k = queries, metric, k
        self.multiplied = comparable(queries, metric)
        self.keys = np.full((len(queries.numbers), capacity(k)), FARTHEST, dtype=np.uint64)
        self.counts = np.zeros(len(queries.numbers), dtype=np.int64)
        self.worst = np.full(len(queries.numbers), FARTHEST, dtype=np.uint64)

    def offer(self, block: Block, workers: Workers) -> None:
        """Offer a block of at most `BLOCK` papers to all queries."""
        self.offer_each([(block, np.arange(len(self.counts)))], workers)

    def offer_each(self, offers: Sequence[tuple[Block, NDArray[np.int64]]], workers: Workers) -> None:
        """Offer blocks of at most `BLOCK` papers to some queries each, given by their rising places. A thread offers
        all blocks to its own queries: many small blocks keep it busy as long as a large one."""
        shaped = [(block, *affinity(block, self.metric), places) for block, places in offers]

        def take(first: int, end: int) -> None:
            for block, factor, offset, places in shaped:
                own = places[slice(*np.searchsorted(places, [first, end]))]
                for start in range(0, len(own), TILE):
                    tile = own[start : start + TILE]
                    for row in tile[self.counts[tile] > self.keys.shape[1] - len(block.numbers)]:
                        self._shrink(row)
                    products = self.multiplied[tile] @ block.vectors.T
                    cut = cuts(self.worst[tile], self.queries.norms[tile], block, self.metric)
                    offered = (products, factor, offset, cut, block, self.queries, tile, self.metric)
                    take_in(*offered, self.worst, self.keys, self.counts)

        self._share(take, workers)

    def nearest(self, workers: Workers) -> Keys:
        """The k smallest keys of each query in rising order; `FARTHEST` fills up where it was offered fewer papers."""

        def order(first: int, end: int) -> None:
            for row in range(first, end):
                self._shrink(row)
            self.keys[first:end, : self.k].sort(axis=1)

        self._share(order, workers)
        return self.keys[:, : self.k]

    def _share(self, work: Callable[[int, int], None], workers: Workers) -> None:
        """Give each thread its own range of queries."""
        bounds = np.linspace(0, len(self.counts), workers.threads + 1).astype(int)
        list(workers.map(work, bounds[:-1], bounds[1:]))

    def _shrink(self, row: int) -> None:
        """Keep the k smallest keys of a query."""
        count = self.counts[row]
        if count > self.k:
            self.keys[row, :count].partition(self.k - 1)
            self.keys[row, self.k : count] = FARTHEST
            self.counts[row] = self.k
        if count >= self.k:
            self.worst[row] = self.keys[row, : self.k].max()


def capacity(k: int) -> int:
    """Keys that a pool has room for."""
    return k + max(k, BLOCK)


def bytes_of_thread(dimension: int) -> int:
    """Memory that a thread takes for its blocks of vectors, and their products with a tile."""
    return 4 * BLOCK * (COPIES_OF_BLOCK * dimension + TILE)


@njit(nogil=True, cache=True)
def take_in(  # type: ignore[no-untyped-def]
    products, factor, offset, cut, block, queries, tile, metric, worst, keys, counts
):
    """Put into the pools of a tile the keys of the papers whose affinity reaches the cut."""
    near = np.empty(len(block.numbers), dtype=np.int32)
    numbers, vectors, norms = block
    for at in range(len(tile)):
        found = _reach(products[at], factor, offset, cut[at], near)
        row = tile[at]
        query, norm, least = queries.numbers[row], queries.norms[row], worst[row]
        vector = queries.vectors[row].astype(np.float64)
        pool, count = keys[row], counts[row]
        for place in near[:found]:
            key = key_of(numbers[place], exact_distance(vector, norm, vectors[place], norms[place], metric))
            if key < least and numbers[place] != query:
                pool[count] = key
                count += 1
        counts[row] = count


@njit(nogil=True, cache=True)
def _reach(products, factor, offset, cut, near):  # type: ignore[no-untyped-def]
    """Write the places whose affinity is not below the cut to `near`; return how many. It does not branch."""
    found = 0
    for place in range(len(products)):
        near[found] = place
        found += products[place] * factor[place] - offset[place] >= cut
    return found
