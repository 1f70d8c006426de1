"""Nearest neighbours that are certain: FAISS proposes candidates, their distances are computed again, exactly.

FAISS computes in float32 and, depending on the number of queries and threads, by different code with different
rounding. Taken as they are, its distances would order near ties by chance, and a tie at rank k would be cut by
chance. So it is asked for some more than k; the candidates' distances are computed in float64, each by the same
operations in the same order, rounded to the float32 that is stored, and sorted by distance, then corpus id.

That this is the true result is proven for each query: every paper that was not proposed has a FAISS score no better
than the worst proposed one, and the error of a score is bounded. Where the k-th neighbour is not further from that
worst score than the bound, more candidates are asked for.
"""

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

SPARE = 32
"""Candidates beyond k that are asked for at first."""

Vectors = NDArray[np.float32]
Distances = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Index:
    """The papers that are searched: rising corpus ids, their vectors, and the FAISS index of them, by row."""

    ids: NDArray[np.int64]
    vectors: Vectors
    metric: str
    flat: Any
    longest: float
    """Largest norm of a vector in the index."""


def build_index(ids: NDArray[np.int64], vectors: Vectors, metric: str) -> Index:
    """A flat index: inner product of normalised vectors for `cosine`, squared Euclidean distance for `l2`."""
    flat = faiss.IndexFlatIP(vectors.shape[1]) if metric == "cosine" else faiss.IndexFlatL2(vectors.shape[1])
    flat.add(_as_indexed(vectors, metric))
    longest = float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max()))
    return Index(ids=ids, vectors=vectors, metric=metric, flat=flat, longest=longest)


def nearest(index: Index, rows: Rows, k: int) -> tuple[Rows, Distances]:
    """The k nearest rows of each of the given rows, and their distances, each len(rows) × k; itself is left out.

    Distances are 1 − cosine or squared Euclidean. k must be smaller than the number of papers in the index.
    """
    found = np.empty((len(rows), k), dtype=np.int64)
    distances = np.empty((len(rows), k), dtype=np.float32)
    open_, spare = np.arange(len(rows)), SPARE
    while len(open_):
        wanted = min(k + 1 + spare, len(index.ids))
        scores, candidates = index.flat.search(_as_indexed(index.vectors[rows[open_]], index.metric), wanted)
        certain = np.ones(len(open_), dtype=bool)
        for at, place in enumerate(open_):
            found[place], distances[place] = _sorted(index, rows[place], candidates[at], k)
            worst = 1 - scores[at, -1] if index.metric == "cosine" else scores[at, -1]
            limit = float(worst) - _error(index, rows[place])
            certain[at] = wanted == len(index.ids) or distances[place, -1] < limit
        open_, spare = open_[~certain], spare * 8
    return found, distances


def exact_distances(query: Vectors, others: Vectors, metric: str) -> Distances:
    """Distances of one vector to each row of others: computed in float64, rounded to float32.

    Sums along the rows, unlike a product of matrices, are the same whatever other rows there are.
    """
    one, many = query.astype(np.float64), others.astype(np.float64)
    if metric == "l2":
        return np.square(many - one).sum(axis=1).astype(np.float32)
    lengths = np.sqrt(np.square(many).sum(axis=1) * np.square(one).sum())
    cosines = (many * one).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny)
    return (1 - cosines).astype(np.float32)


def _sorted(index: Index, row: int, candidates: Rows, k: int) -> tuple[Rows, Distances]:
    others = candidates[candidates != row]
    distances = exact_distances(index.vectors[row], index.vectors[others], index.metric)
    order = np.lexsort((others, distances))[:k]
    return others[order], distances[order]


def _as_indexed(vectors: Vectors, metric: str) -> Vectors:
    if metric == "l2":
        return np.ascontiguousarray(vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)


def _error(index: Index, row: int) -> float:
    """Bound of the rounding errors of a FAISS distance and of the stored one.

    A float32 sum of d products errs by at most d·u·Σ|x||y| with u = 2⁻²⁴ (Higham 2002, section 3.1): for a cosine
    Σ|x||y| ≤ 1, and the squared distance is taken as |x|² + |y|² − 2xy. The 16 is for normalising and storing.
    """
    size = 1.0 if index.metric == "cosine" else (float(np.linalg.norm(index.vectors[row])) + index.longest) ** 2
    return (index.vectors.shape[1] + 16) * 2.0**-24 * size
