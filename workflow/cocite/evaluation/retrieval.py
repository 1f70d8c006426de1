"""Searching whole collections: the hits of each query by vectors or words, exact and in blocks of documents.

The vectors of a collection stream past those of the queries, so that memory does not grow with it. Equal scores at the
end of a list are cut at random, the same way each time and whatever the blocks: where BM25 finds no word, all scores
are equal.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.ranking import score_ranked
from cocite.evaluation.scored import Run, Scored, count_missing
from cocite.evaluation.vectors import Vectors
from cocite.ground.progress import progress

DEPTH = 100
"""Hits of each query that are kept: as deep as the deepest measure looks."""
Block = tuple[Sequence[str], Iterable[NDArray[np.floating]]]
"""Documents, and for each query the similarity of all of them; more is nearer."""


class Hits(NamedTuple):
    """The best documents of one query so far, in no order."""

    documents: NDArray[Any]
    similarities: NDArray[Any]
    ties: NDArray[Any]
    """Digests of the documents' names."""

    def best(self, depth: int) -> "Hits":
        """The best of them; of equal ones those whose names have the smallest digests."""
        if len(self.documents) <= depth:
            return self
        least = np.partition(self.similarities, -depth)[-depth]
        above, equal = np.flatnonzero(self.similarities > least), np.flatnonzero(self.similarities == least)
        chosen = np.concatenate([above, equal[np.argsort(self.ties[equal])][: depth - len(above)]])
        return Hits(*(part[chosen] for part in self))


NO_HITS = Hits(np.empty(0, np.object_), np.empty(0), np.empty(0, np.uint64))


def score_search(task: Task, benchmark: Benchmark, queries: Vectors, blocks: Iterable[Vectors], run: Run) -> Scored:
    """Score the search of a collection by minus the Euclidean distance.

    Raises `UnscorableError` where a larger share of the queries and the collection than the run allows has no vector.
    """
    asked = [query for query in benchmark.judgements[task.name] if query in queries.rows]
    seen = set(asked)
    with threadpool_limits(1):  # The last bits of products of matrices depend on how many threads there are.
        found = best_hits(task, asked, by_distance(queries.of(asked), blocks, seen))
    scored = count_missing(task, benchmark, seen, run)
    score_ranked(scored, benchmark, found)
    return scored


def by_distance(queries: NDArray[np.float64], blocks: Iterable[Vectors], seen: set[str]) -> Iterator[Block]:
    """Minus the squared distance of each query to each document; add the documents to those that were seen."""
    for block in progress(blocks, of="Searched", unit="block"):
        names = list(block.rows)
        seen.update(names)
        if names and len(queries):
            documents = block.of(names)
            squares = (queries**2).sum(axis=1)[:, None] + (documents**2).sum(axis=1)[None, :]
            yield names, 2 * queries @ documents.T - squares


def best_hits(
    task: Task, queries: Sequence[str], blocks: Iterable[Block], depth: int = DEPTH
) -> dict[str, dict[str, float]]:
    """The best documents of each query with their similarity. No query finds the document with its own id."""
    hits = [NO_HITS] * len(queries)
    own = [query.removeprefix(f"{task.query_namespace}:") for query in queries]
    for documents, similarities in blocks:
        names = np.array(documents, dtype=np.object_)
        ties = np.array([_digest(name) for name in documents], dtype=np.uint64)
        place = {name.removeprefix(f"{task.texts_folder}:"): number for number, name in enumerate(documents)}
        for number, row in enumerate(similarities):
            allowed = np.arange(len(names)) != place.get(own[number], -1)
            block = Hits(names[allowed], row[allowed], ties[allowed]).best(depth)
            hits[number] = Hits(*map(np.concatenate, zip(hits[number], block, strict=True))).best(depth)
    return {
        query: dict(zip(found.documents.tolist(), found.similarities.tolist(), strict=True))
        for query, found in zip(queries, hits, strict=True)
        if len(found.documents)
    }


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
