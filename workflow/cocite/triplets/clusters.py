"""Easy negatives by k-means: papers of clusters that are not the query's own (SciNCL's appendix).

The clusters other than its own are ranked by how near their centroids are to that of the query's cluster. Each negative
comes from a cluster of its own, as long as there are enough in the ranks asked for, and is a random paper of it.
"""

from typing import NamedTuple

import faiss
import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocite.ground.id_sets import Ids
from cocite.ground.randomness import derive_seed
from cocite.triplets.drawing import half_bits, permuted
from cocite.triplets.picking import NONE, mixed
from cocite.triplets.vectors import Keys, Known, Vectors

ITERATIONS = 20
VECTORS_A_CLUSTER = 256
"""Vectors that centroids are found from, a cluster; more do not make them better."""


class Clusters(NamedTuple):
    """Clusters of papers."""

    centroids: Vectors
    ranked: NDArray[np.int64]
    """The other clusters of each cluster, the nearest first."""
    papers: Ids
    """The papers, cluster after cluster."""
    starts: Ids
    """Where the papers of each cluster start, and at the end how many there are."""


def find_clusters(known: Known, clusters: int, seed: int) -> Clusters:
    """Group papers by spherical k-means over their vectors."""
    means = faiss.Kmeans(
        known.vectors.shape[1],
        clusters,
        niter=ITERATIONS,
        seed=derive_seed(seed, "k-means") % 2**31,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=VECTORS_A_CLUSTER,
    )
    with threadpool_limits(1):  # sums over threads come out differently with their number
        means.train(known.vectors)
    centroids = np.asarray(means.centroids)
    cluster = _nearest(known.vectors, centroids)
    order = np.argsort(cluster, kind="stable")
    similarities = _products(centroids, centroids)
    np.fill_diagonal(similarities, np.inf)
    return Clusters(
        centroids=centroids,
        ranked=np.argsort(-similarities, axis=1, kind="stable")[:, 1:],
        papers=known.ids[order],
        starts=np.searchsorted(cluster[order], np.arange(clusters + 1)),
    )


def draw_from_clusters(clusters: Clusters, keys: Keys, vectors: Vectors, *, ranks: tuple[int, int], width: int) -> Ids:
    """Draw papers for each query of these hashes and vectors; queries × width."""
    papers = np.full((len(keys), width), NONE, dtype=np.int64)
    others = clusters.ranked[:, ranks[0] - 1 : ranks[1]]
    _draw(_nearest(vectors, clusters.centroids), keys, np.ascontiguousarray(others), clusters, papers)
    return papers


def _nearest(vectors: Vectors, centroids: Vectors) -> NDArray[np.int64]:
    return np.argmax(_products(vectors, centroids), axis=1)


def _products(vectors: Vectors, others: Vectors) -> Vectors:
    """The products of all pairs; unlike those of BLAS, they do not depend on how many there are."""
    products: Vectors = np.einsum("vd,od->vo", vectors, others)
    return products


@njit(nogil=True, cache=True)
def _draw(own, keys, others, clusters, papers):  # type: ignore[no-untyped-def]
    """Go through the clusters in a random order, and again for as long as they have papers left."""
    count = others.shape[1]
    for row in range(len(keys)):
        number = turn = 0
        has_more = True
        while number < papers.shape[1] and has_more:
            has_more = False
            for step in range(count):
                other = others[own[row], permuted(step, keys[row], half_bits(count), count)]
                size = clusters.starts[other + 1] - clusters.starts[other]
                if turn < size and number < papers.shape[1]:
                    key = mixed(keys[row] + np.uint64(other))
                    papers[row, number] = clusters.papers[
                        clusters.starts[other] + permuted(turn, key, half_bits(size), size)
                    ]
                    number += 1
                    has_more = True
            turn += 1
