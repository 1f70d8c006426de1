"""Easy negatives: papers at random, papers of other clusters, or the farthest of some random ones.

The latter two are in SciNCL's appendix (Ostendorff et al., 2022; both did worse than random ones). They take the graph
embedding that neighbours were searched in, and compare by cosine, whatever the metric of the search: vectors are of
norm 1, so that products are cosines. A random sample of the papers with a text is enough to find clusters and to draw
papers from; it keeps memory from growing with the embedding.

k-means: the clusters other than the query's own are ranked by how near their centroids are to its centroid. Each
negative comes from a different cluster, as long as there are enough in the ranks asked for, and is a random paper of
it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import faiss
import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocite.config.sampler import (
    ClusterNegatives,
    EasyNegatives,
    FarthestNegatives,
    RandomNegatives,
    UnfilteredNegatives,
)
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids, are_in
from cocite.core.randomness import derive_seed, priorities
from cocite.core.tables.files import count_rows, vectors_of
from cocite.triplets.picking import NONE, SPARE, Draws, draw, drawn, half_bits, mixed, permuted
from cocite.triplets.sampled import Block

TABLE, COLUMNS = "graph_embeddings", ("corpusid", "vector")
KNOWN = 50_000
"""About how many papers are in the sample."""
ITERATIONS = 20
"""Iterations of k-means."""
VECTORS_A_CLUSTER = 256
"""Vectors that centroids are found from, a cluster; more do not make them better."""
QUERIES_AT_ONCE = 16
"""Queries that draw the farthest papers at once."""

Keys = NDArray[np.uint64]
"""A hash of each query, which decides what it draws."""
Vectors = NDArray[np.float32]


def draw_easy(block: Block, way: EasyNegatives, count: int) -> Draws:
    """Draw candidates of `count` easy negatives for each query, in the order in which they are preferred."""
    if isinstance(way, RandomNegatives | UnfilteredNegatives) or count == 0:
        return draw(block, count, "easy negatives")
    papers = np.full((len(block.queries), count + SPARE), NONE, dtype=np.int64)
    choose = _choice(block, way, papers.shape[1])
    for batch in block.read(TABLE, COLUMNS, rows=KNOWN):
        places = np.searchsorted(block.queries, batch["corpusid"].to_numpy())
        is_query = block.queries[np.minimum(places, len(block.queries) - 1)] == batch["corpusid"].to_numpy()
        if is_query.any():
            keys = priorities(block.seed, "easy negatives", block.queries[places[is_query]])
            papers[places[is_query]] = choose(keys, _normalised(batch, is_query))
    papers[papers == block.queries[:, None]] = NONE
    return drawn(papers)


def _choice(block: Block, way: ClusterNegatives | FarthestNegatives, width: int) -> Callable[[Keys, Vectors], Ids]:
    """What draws `width` papers for queries of some hashes and vectors."""
    known = known_vectors(block)
    if isinstance(way, FarthestNegatives):
        return lambda keys, vectors: draw_farthest(known, keys, vectors, drawn=way.drawn, width=width)
    if len(known.ids) < way.clusters:
        raise InputError(
            f"Setting clusters is {way.clusters}, but only {len(known.ids)} papers with a text have a vector."
        )
    clusters = find_clusters(known, way.clusters, block.seed)
    return lambda keys, vectors: draw_from_clusters(clusters, keys, vectors, ranks=way.ranks, width=width)


@dataclass(frozen=True, kw_only=True)
class Known:
    """A random sample of the papers with a text, in rising order."""

    ids: Ids
    vectors: Vectors
    """Papers × dimension."""


def known_vectors(block: Block) -> Known:
    """The papers whose hashes are small enough; the sample depends on the seed and on how many vectors there are."""
    share = KNOWN / max(1, count_rows(block.files(TABLE)))
    largest = np.uint64(min(1.0, share) * (2**64 - 2**12))
    ids, vectors = [], []
    for batch in block.read(TABLE, COLUMNS, rows=KNOWN):
        papers = batch["corpusid"].to_numpy()
        is_chosen = are_in(block.papers, papers) & (priorities(block.seed, "known vectors", papers) <= largest)
        ids.append(papers[is_chosen])
        vectors.append(_normalised(batch, is_chosen))
    return Known(ids=np.concatenate(ids), vectors=np.concatenate(vectors))


def _normalised(batch: pa.RecordBatch, is_chosen: NDArray[np.bool_]) -> Vectors:
    vectors = vectors_of(pa.Table.from_batches([batch.filter(pa.array(is_chosen))]))
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=vectors.copy(), where=norms > 0)


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
    """Draw papers of other clusters for each query of these hashes and vectors; queries × width."""
    papers = np.full((len(keys), width), NONE, dtype=np.int64)
    others = clusters.ranked[:, ranks[0] - 1 : ranks[1]]
    _draw_from_others(_nearest(vectors, clusters.centroids), keys, np.ascontiguousarray(others), clusters, papers)
    return papers


def _nearest(vectors: Vectors, centroids: Vectors) -> NDArray[np.int64]:
    return np.argmax(_products(vectors, centroids), axis=1)


def _products(vectors: Vectors, others: Vectors) -> Vectors:
    """The products of all pairs; unlike those of BLAS, they do not depend on how many there are."""
    return np.einsum("vd,od->vo", vectors, others)


@njit(nogil=True, cache=True)
def _draw_from_others(own, keys, others, clusters, papers):  # type: ignore[no-untyped-def]
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


def draw_farthest(known: Known, keys: Keys, vectors: Vectors, *, drawn: int, width: int) -> Ids:
    """Draw papers for each query of these hashes and vectors, the least similar first; queries × width."""
    drawn = min(drawn, len(known.ids))
    papers = np.full((len(keys), width), NONE, dtype=np.int64)
    for first in range(0, len(keys), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        candidates = _candidates(keys[some], drawn, len(known.ids), half_bits(len(known.ids)))
        similarities = np.einsum("qcd,qd->qc", known.vectors[candidates], vectors[some])
        order = np.argsort(similarities, axis=1, kind="stable")[:, :width]
        papers[some, : order.shape[1]] = known.ids[np.take_along_axis(candidates, order, axis=1)]
    return papers


@njit(nogil=True, cache=True)
def _candidates(keys, drawn, papers, bits):  # type: ignore[no-untyped-def]
    """Random places, queries × drawn."""
    candidates = np.empty((len(keys), drawn), dtype=np.int64)
    for row in range(len(keys)):
        for number in range(drawn):
            candidates[row, number] = permuted(number, keys[row], bits, papers)
    return candidates
