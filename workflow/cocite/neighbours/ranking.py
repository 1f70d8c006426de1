"""What every ranking of documents for mined negatives is given and gives back, and the ranking by vectors.

Documents are ranked by distances, which are what scores are minus or one minus of. The ranking by vectors is the exact
search (`exact.py`): scores and order are the same bit for bit whatever the blocks, groups and threads.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import Ids
from cocite.neighbours.distances import (
    FARTHEST,
    Block,
    Keys,
    Metric,
    Numbers,
    Vectors,
    block_of,
    exact_distance,
    numbers_in,
)
from cocite.neighbours.exact import search_exactly
from cocite.neighbours.pools import Workers, bytes_of_thread, capacity
from cocite.neighbours.query_groups import Checkpoint
from cocite.neighbours.vectors import Documents, VectorFiles

Scores = NDArray[np.float32]


class Asked(NamedTuple):
    """Queries, rising, and the positives of each."""

    queries: Ids
    positives: Ids
    """The positives of each query, rising, one query after the other."""
    starts: Ids
    """Where the positives of each query start, and at the end how many there are."""

    def slice(self, first: int, end: int) -> "Asked":
        """The queries from one place to before another."""
        starts = self.starts[first : min(end, len(self.queries)) + 1]
        return Asked(self.queries[first:end], self.positives[starts[0] : starts[-1]], starts - starts[0])

    @property
    def query_of_positive(self) -> Ids:
        """The place of the query of each positive."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.starts))

    @property
    def most_positives(self) -> int:
        """Positives of a query at most."""
        return int(np.diff(self.starts).max(initial=0))


class Ranked(NamedTuple):
    """The best documents of each query, their positives among them."""

    keys: Keys
    """Queries × k, in the order of rank; `FARTHEST` where there are fewer."""
    positives: Scores
    """The score of each positive."""
    likeness: Scores
    """The likeness of each of the documents, queries × k."""


class Ranking(ABC):
    """A way to rank documents."""

    documents: Documents
    metric = Metric.INNER_PRODUCT
    """How scores follow from distances."""

    @abstractmethod
    def rank(self, asked: Asked, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Ranked:
        """The k best documents of each query; the query is not among them. Raises `InputError` where a query or a
        positive is not known."""

    @abstractmethod
    def bytes_of_query(self, k: int, positives: float) -> float:
        """Memory that a query takes with so many positives."""

    @abstractmethod
    def prepare(self, folder: Path, workers: Workers, memory_mb: float) -> float:
        """Do what is done once, before queries are ranked; return how much of the memory it takes, MB. The folder is
        the ranking's own."""


class VectorRanking(Ranking):
    """Ranks by vectors."""

    def __init__(self, vectors: VectorFiles, metric: Metric) -> None:
        self.vectors, self.metric, self.documents = vectors, metric, vectors.documents

    def prepare(self, folder: Path, workers: Workers, memory_mb: float) -> float:
        """Read all vectors into memory, if they take no more than half of it; else they are read again and again."""
        blocks = workers.threads * bytes_of_thread(self.vectors.dimension) / 1e6
        if self.vectors.size_mb > memory_mb / 2:
            return blocks
        self.vectors.hold(workers)
        return blocks + self.vectors.size_mb

    def bytes_of_query(self, k: int, positives: float) -> float:
        """Pools, results, two copies of the query's vector and one of each positive's."""
        return 8 * (capacity(k) + 2 * k) + 4 * self.vectors.dimension * (3 + positives)

    def rank(self, asked: Asked, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Ranked:
        """Search exactly, then compare the documents that were found with the positives."""
        named = np.unique(np.concatenate([asked.queries, asked.positives]))
        given = block_of(named, self.vectors.find(named, workers))
        own, positives = np.searchsorted(named, asked.queries), np.searchsorted(named, asked.positives)
        numbers = self.documents.numbers_of(asked.queries)
        queries = Block(numbers, given.vectors[own], given.norms[own])
        keys = search_exactly(self.vectors, queries, self.metric, k, workers, checkpoint)
        distances = _distances(given.vectors, given.norms, own[asked.query_of_positive], positives, int(self.metric))
        likeness = self._likeness(keys, given, own, positives, asked.starts, workers)
        return Ranked(keys=keys, positives=scores_of(distances, self.metric), likeness=likeness)

    def _likeness(self, keys: Keys, given: Block, own: Ids, positives: Ids, starts: Ids, workers: Workers) -> Scores:
        """The largest cosine of each document that was found to the query and its positives."""
        likeness = np.full(keys.shape, -1, dtype=np.float32)
        places, found = found_in(keys)

        def compare(group: int) -> None:
            for block in self.vectors.blocks([group]):
                bounds = np.searchsorted(found, block.numbers), np.searchsorted(found, block.numbers, side="right")
                _compare(block, *bounds, places, given, own, positives, starts, keys.shape[1], likeness.ravel())

        list(workers.map(compare, self.vectors.row_groups))
        return likeness


def scores_of(distances: NDArray[np.float64], metric: Metric) -> Scores:
    """Scores of distances: higher is nearer."""
    return (1 - distances if metric is Metric.COSINE else 0 - distances).astype(np.float32)


def found_in(keys: Keys) -> tuple[Ids, Numbers]:
    """Where the documents in the keys stand among all keys, row after row, and their numbers, rising."""
    places = np.flatnonzero(keys.ravel() != FARTHEST)
    numbers = numbers_in(keys.ravel()[places])
    order = np.argsort(numbers, kind="stable")
    return places[order], numbers[order]


@njit(nogil=True, cache=True)
def _distances(vectors: Vectors, norms, queries, positives, metric):  # type: ignore[no-untyped-def]
    """The distances of pairs, rounded as keys hold them."""
    distances = np.empty(len(queries))
    for pair in range(len(queries)):
        one, other = queries[pair], positives[pair]
        query = vectors[one].astype(np.float64)
        distances[pair] = np.float32(exact_distance(query, norms[one], vectors[other], norms[other], metric))
    return distances


@njit(nogil=True, cache=True)
def _compare(  # type: ignore[no-untyped-def]
    block, first, end, places, given, own, positives, starts, k, likeness
):
    """Write the likeness of the documents of a block where they were found."""
    _, vectors, norms = given
    for row in range(len(block.numbers)):
        if first[row] == end[row]:
            continue
        document, norm = block.vectors[row].astype(np.float64), block.norms[row]
        for place in places[first[row] : end[row]]:
            query = place // k
            at = own[query]
            nearest = exact_distance(document, norm, vectors[at], norms[at], 2)
            for at in positives[starts[query] : starts[query + 1]]:
                nearest = min(nearest, exact_distance(document, norm, vectors[at], norms[at], 2))
            likeness[place] = 1 - nearest
