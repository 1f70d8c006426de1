"""The nearest papers of each query among those that were offered: exact distances, and pools of the nearest so far.

A product of matrices in float32 is fast, but its rounding depends on its shape and on the threads: near ties would be
ordered at random. So it only determines which papers may be near enough, with a margin for its error. The distance is
computed in float64, always by the same operations in the same order, and rounded to the float32 that is stored. With
the number of a paper it makes one whole number, the key: neighbours are the smallest keys, and ties are broken by id.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

UNIT_ROUNDOFF = 2.0**-24
"""Of float32."""
SHORTEST = 1e-30
"""Vectors below this norm, of queries or papers, are always compared exactly: products with them may vanish."""
FARTHEST = np.uint64(2**64 - 1)
"""A key that is larger than that of any neighbour."""
BLOCK = 4096
"""Largest number of papers of a block."""
TILE = 256
"""Queries that a thread takes at once, at most: their products with a block stay in the processor's cache."""
COPIES_OF_BLOCK = 3
"""Copies of a block that a thread needs while it reads."""

Numbers = NDArray[np.int64]
"""Numbers of papers, from 0 to 2³² − 1."""
Vectors = NDArray[np.float32]
Keys = NDArray[np.uint64]


class Metric(IntEnum):
    """How far two vectors are from each other."""

    L2 = 0
    """The squared Euclidean distance, as FAISS has it."""
    INNER_PRODUCT = 1
    COSINE = 2
    """1 − cosine; 1 if a vector is 0."""


class Block(NamedTuple):
    """Some papers with their vectors."""

    numbers: Numbers
    """Their numbers, rising."""
    vectors: Vectors
    norms: NDArray[np.float64]
    """Squared Euclidean norms."""

    def choose(self, places: slice | NDArray[np.bool_] | NDArray[np.int64]) -> "Block":
        """The papers at these places."""
        return Block(self.numbers[places], self.vectors[places], self.norms[places])


def block_of(numbers: Numbers, vectors: Vectors) -> Block:
    """Papers with their vectors and the norms of these."""
    return Block(numbers, vectors, squared_norms(vectors))


def comparable(block: Block, metric: Metric) -> Vectors:
    """The vectors for matrix products: for `COSINE` with norm 1, or shorter if they are almost 0."""
    if metric is not Metric.COSINE:
        return block.vectors
    return (block.vectors / np.maximum(np.sqrt(block.norms), SHORTEST)[:, None]).astype(np.float32)


def affinity(block: Block, metric: Metric) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Factor and offset of affinities, product × factor − offset, which fall as distances rise: for `L2` the product
    less half the squared norm, for `COSINE` the product with the normalised vector."""
    lengths = np.sqrt(block.norms)
    factor = 1 / np.maximum(lengths, SHORTEST) if metric is Metric.COSINE else np.ones(len(lengths))
    offset = block.norms / 2 if metric is Metric.L2 else np.zeros(len(lengths))
    offset[lengths < SHORTEST] = -np.inf
    return factor.astype(np.float32), offset.astype(np.float32)


def cuts(worst: Keys, norms: NDArray[np.float64], block: Block, metric: Metric) -> NDArray[np.float32]:
    """The affinity of each query below which no paper of the block can have a smaller key than the worst. `norms` are
    the squared norms of the queries. The margin is for rounding: a sum of d products in float32, in any order, errs by
    at most d·u·|x||y| with u = 2⁻²⁴ (Higham 2002, section 3.1); the 16 is for the other operations, and |x||y| ≤
    (|x| + |y|)² / 4."""
    limit = distances_in(worst)
    error = (block.vectors.shape[1] + 16) * UNIT_ROUNDOFF
    lengths, longest = np.sqrt(norms), float(np.sqrt(block.norms.max()))
    if metric is Metric.L2:
        cut = (norms - limit) / 2 - error * (lengths + longest) ** 2
    elif metric is Metric.COSINE:
        cut = 1 - limit - error
    else:
        cut = -limit - error * lengths * longest
    cut = np.where(lengths < SHORTEST, -np.inf, cut - SHORTEST)
    return np.nextafter(cut.astype(np.float32), np.float32(-np.inf))


def distances_in(keys: Keys) -> NDArray[np.float64]:
    """The distance of each key; infinite for `FARTHEST`."""
    bits = (keys >> np.uint64(32)).astype(np.uint32)
    bits ^= np.where(bits >> np.uint32(31), np.uint32(0x80000000), np.uint32(0xFFFFFFFF))
    return np.where(keys == FARTHEST, np.inf, bits.view(np.float32).astype(np.float64))


def numbers_in(keys: Keys) -> Numbers:
    """The number of the paper of each key."""
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


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
    """The k nearest papers of some queries among those that were offered. A pool has room for more than k keys. Before
    it overflows, its k smallest are kept, and the k-th becomes the upper bound for further ones."""

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
        """The k smallest keys of each query in rising order; padded with `FARTHEST` if there were fewer papers."""

        def order(first: int, end: int) -> None:
            for row in range(first, end):
                self._shrink(row)
            self.keys[first:end, : self.k].sort(axis=1)

        self._share(order, workers)
        return self.keys[:, : self.k]

    def _share(self, work: Callable[[int, int], None], workers: Workers) -> None:
        bounds = np.linspace(0, len(self.counts), workers.threads + 1).astype(int)
        list(workers.map(work, bounds[:-1], bounds[1:]))

    def _shrink(self, row: int) -> None:
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
def squared_norms(vectors):  # type: ignore[no-untyped-def]
    """Squared Euclidean norm of each row, float64."""
    norms = np.empty(len(vectors))
    for row in range(len(vectors)):
        norms[row] = _dot(vectors[row].astype(np.float64), vectors[row])
    return norms


@njit(nogil=True, cache=True)
def key_of(number, distance):  # type: ignore[no-untyped-def]
    """The key of a paper at a distance: the bits of its float32, made to rise with it, then the paper's number."""
    bits = np.float32(distance + 0.0).view(np.uint32)
    bits ^= np.uint32(0xFFFFFFFF) if bits >> np.uint32(31) else np.uint32(0x80000000)
    return (np.uint64(bits) << np.uint64(32)) | np.uint64(number)


@njit(nogil=True, cache=True)
def exact_distance(one, one_norm, other, other_norm, metric):  # type: ignore[no-untyped-def]
    """Distance of two vectors with these squared norms, float64; the order of its operations is always the same. `one`
    is float64, so that it is converted once for many others, which are float32."""
    if metric == 0:
        return _squared_difference(one, other)
    product = _dot(one, other)
    if metric == 1:
        return 0.0 - product
    lengths = np.sqrt(one_norm * other_norm)
    return max(0.0, 1.0 - product / lengths) if lengths > 0 else 1.0


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _dot(one, other):  # type: ignore[no-untyped-def]
    total = 0.0
    for at in range(len(one)):
        total += one[at] * np.float64(other[at])
    return total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _squared_difference(one, other):  # type: ignore[no-untyped-def]
    total = 0.0
    for at in range(len(one)):
        difference = one[at] - np.float64(other[at])
        total += difference * difference
    return total


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
