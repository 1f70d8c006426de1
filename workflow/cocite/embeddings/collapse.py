"""Refuse a graph embedding whose vectors have collapsed: zeros, or the same vector for many papers.

Neighbours among equal vectors would be in order of id, and look like any others. A sample of the papers with an edge
to train on is compared. Papers with the same neighbours may have the same vector: `fastrp` gives one to all papers
that have only one neighbour, and the same one. So may papers with the same neighbours that are each other's.
"""

import numpy as np
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.randomness import generator, mix
from cocite.embeddings.edges import TRAINING, Rows
from cocite.embeddings.imported import ImportedFolder

SAMPLED = 10_000
VALUES_SAMPLED = 8_000_000
SHARE = 0.1
"""Share of the papers that may have the vector of a paper with other neighbours, as short vectors may by chance."""
STEPS = 2**16
"""Vectors are equal if their directions and lengths are, in steps of this part of their length."""


def check_distinct(graph: ImportedFolder, rows: Rows, vectors: NDArray[np.float32], remedy: str) -> None:
    """Raise `InputError` if too many of the vectors, of papers in these rows of the graph, are equal.

    `remedy` ends the message: what to change in the settings.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))[:, None]
    directions = np.divide(vectors, lengths, where=lengths > 0, out=np.zeros(vectors.shape))
    steps = np.hstack([directions, np.log(lengths, where=lengths > 0, out=np.zeros(lengths.shape))]) * STEPS
    equal = len(rows) - len(np.unique(np.rint(steps).astype(np.int32), axis=0))
    if equal <= SHARE * len(rows):
        return
    equal -= _count_twins(graph, rows)
    if equal <= SHARE * len(rows):
        return
    zeros = int((~vectors.any(axis=1)).sum())
    raise InputError(
        f"The graph embedding has collapsed: of {len(rows):,} papers, {equal:,} have the vector of another paper that "
        f"has other neighbours in the graph ({zeros:,} vectors are zeros); {remedy}."
    )


def sample_of(rows: Rows, dimension: int) -> Rows:
    """The rows of the papers that are compared, rising."""
    size = min(len(rows), SAMPLED, max(1, VALUES_SAMPLED // dimension))
    return np.sort(generator(1, "collapse").choice(rows, size, replace=False))


def _count_twins(graph: ImportedFolder, rows: Rows) -> int:
    """How many of the papers in these rows, rising, have the neighbours of another one before them.

    They have the same neighbours in the edges to train on, without or with themselves among them.
    """
    papers = int(graph.starts()[-1])
    place = np.full(papers, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    found = [np.empty(0, dtype=np.int64)]
    for ends in graph.edges(TRAINING):
        for paper, other in (ends, ends[::-1]):
            chosen = place[paper] >= 0
            found.append(place[paper[chosen]] * papers + other[chosen])
    pairs = np.unique(np.concatenate(found))
    sums = np.zeros(len(rows), dtype=np.uint64)
    np.add.at(sums, pairs // papers, mix((pairs % papers).astype(np.uint64)))
    with_themselves = sums + mix(rows.astype(np.uint64))
    return sum(len(rows) - len(np.unique(each)) for each in (sums, with_themselves))
