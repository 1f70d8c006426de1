"""What the sampler `neighbours` picks from bands of ranked neighbours, and the easy negatives that it draws.

Easy negatives are random papers, papers of other clusters, or the farthest of some random ones. The latter two are in
SciNCL's appendix (Ostendorff et al., 2022; both did worse), and use the cosine in the graph embedding. Clusters and
papers come from a random sample of the papers with a text, so that memory does not grow with the embedding.
"""

from typing import NamedTuple

import faiss
import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocite.config.sampler import ClusterNegatives, EasyNegatives, RandomNegatives, UnfilteredNegatives
from cocite.core.errors import InputError
from cocite.core.id_sets import are_in, contains
from cocite.core.randomness import derive_seed, priorities
from cocite.core.tables.files import count_rows, vectors_of
from cocite.core.written_ids import Ids, look_up
from cocite.triplets import picking
from cocite.triplets.picking import NONE, SPARE, Draws, Picks, exclude_all, half_bits, is_among, mixed, offer, permuted
from cocite.triplets.sampled import Block

TABLE, COLUMNS = "graph_embeddings", ("corpusid", "vector")
SAMPLED = 50_000  # about how many papers are in the sample
QUERIES_AT_ONCE = 16  # queries that draw the farthest papers at once

Vectors = NDArray[np.float32]


class Band(NamedTuple):
    """Ranks from `first` to `last` or, by distance, the `width` ranks that end with the last one within a distance."""

    first: int
    last: int
    width: int
    within: np.float32  # the distance; not a number for a band by ranks


def band(k: int | tuple[int, int] | None, within: float | None, picked: int) -> Band:
    """The band to pick so many from: it ends with rank `k` or spans the two ranks `k`, or ends with a distance."""
    if within is not None:
        return Band(1, 0, picked, np.float32(within))
    first, last = k if isinstance(k, tuple) else ((k or 0) - picked + 1, k or 0)
    return Band(max(1, first), last, picked, np.float32(np.nan))


def pick_from_bands(
    block: Block, bands: tuple[Band, Band], picked: tuple[Picks, Picks], easy: Draws, *, needed: int, required: bool
) -> NDArray[np.bool_]:
    """Let queries pick positives and hard negatives from their bands; return which have neighbours. Papers of the band
    of positives are no negatives. Easy negatives that are neighbours are struck out, until `needed` of a query are
    known not to be neighbours."""
    is_known = np.zeros(len(block.queries), dtype=bool)
    names = ["query", "neighbour", *([] if all(np.isnan(each.within) for each in bands) else ["distance"])]
    for rows in block.read_by_query("neighbours", names):
        query, neighbour, *more = (column.to_numpy() for column in rows.columns)
        distance = more[0] if more else np.empty(0, dtype=np.float32)
        if len(block.twins.papers):  # the nearest record of each work, and none of the query's own
            neighbour = block.twins.works_of(neighbour)
            touched = np.flatnonzero(np.isin(neighbour, block.twins.works))
            nearest = np.unique(np.stack([query[touched], neighbour[touched]]), axis=1, return_index=True)[1]
            is_kept = query != neighbour
            is_kept[np.delete(touched, nearest)] = False
            query, neighbour, distance = query[is_kept], neighbour[is_kept], distance[is_kept[: len(distance)]]
        columns = query, neighbour, distance
        _pick(columns, block.queries, block.papers, bands, picked, easy, needed, required, is_known)
    return is_known


@njit(nogil=True, cache=True)
def _pick(columns, queries, listed, bands, picked, easy, needed, required, is_known):  # type: ignore[no-untyped-def]
    """Pick for the queries of some rows, by rank: query, neighbour and distance, which is empty if no band needs it."""
    query, neighbours, distances = columns
    start = 0
    while start < len(query):
        end = start + np.searchsorted(query[start:], query[start], "right")
        if is_among(queries, query[start]):
            place = np.searchsorted(queries, query[start])
            is_known[place] = True
            own, rank = neighbours[start:end], 0
            ranks = np.zeros(len(own), dtype=np.int32)  # of all papers or, if required, among those with a text
            for row in range(len(own)):
                if not required or contains(listed, own[row]):
                    rank += 1
                    ranks[row] = rank
            first, last = _limits(bands[0], ranks, distances[start:end])
            _offer_band(picked[0], place, query[start], own, ranks, first, last)
            exclude_all(easy, place, own[(ranks >= first) & (ranks <= last)], easy.papers.shape[1])
            first, hard_last = _limits(bands[1], ranks, distances[start:end])
            _offer_band(picked[1], place, query[start], own, ranks, max(first, last + 1), hard_last)
            exclude_all(easy, place, own, needed)
        start = end


@njit(nogil=True, cache=True)
def _limits(band, ranks, distances):  # type: ignore[no-untyped-def]
    """First and last rank of a band; none where all neighbours are within its distance, and so perhaps more papers."""
    if np.isnan(band.within):
        return band.first, band.last
    last = 0
    for row in range(len(ranks)):
        if distances[row] > band.within:
            return max(1, last - band.width + 1), last
        last = max(last, ranks[row])
    return 1, 0


@njit(nogil=True, cache=True)
def _offer_band(picked, place, query, papers, ranks, first, last):  # type: ignore[no-untyped-def]
    for row in range(len(ranks)):
        if ranks[row] > last:
            break
        if ranks[row] >= first:
            offer(picked, place, query, papers[row], ranks[row], papers[:0])


def draw_easy(block: Block, way: EasyNegatives, count: int) -> Draws:
    """Draw candidates of `count` easy negatives for each query, in the order in which they are preferred."""
    if isinstance(way, RandomNegatives | UnfilteredNegatives) or count == 0:
        return picking.draw(block, count, "easy negatives")
    papers = np.full((len(block.queries), count + SPARE), NONE, dtype=np.int64)
    # The sample: papers with a text whose hashes are small enough, rising, and their vectors.
    share = SAMPLED / max(1, count_rows(block.files(TABLE)))
    largest = np.uint64(min(1.0, share) * (2**64 - 2**12))
    of_batches = []
    for batch in block.read(TABLE, COLUMNS, rows=SAMPLED):
        of_batch = batch["corpusid"].to_numpy()
        is_chosen = are_in(block.papers, of_batch) & (priorities(block.seed, "known vectors", of_batch) <= largest)
        of_batches.append((of_batch[is_chosen], _normalised(batch, is_chosen)))
    ids, vectors = map(np.concatenate, zip(*of_batches, strict=True))
    if isinstance(way, ClusterNegatives):
        if len(ids) < way.clusters:
            said = f"but only {len(ids)} of the papers that are sampled have a text and a vector"
            raise InputError(f"Setting clusters is {way.clusters}, {said}.")
        clusters = _find_clusters(ids, vectors, way.clusters, block.seed)
    for batch in block.read(TABLE, COLUMNS, rows=SAMPLED):
        places, is_query = look_up(block.queries, batch["corpusid"].to_numpy())
        keys = priorities(block.seed, "easy negatives", block.queries[places[is_query]])
        of_queries = _normalised(batch, is_query)
        rows = papers[places[is_query]]  # a copy, which is filled and then written back
        if isinstance(way, ClusterNegatives):
            _draw_from_others(np.argmax(_products(of_queries, clusters.centroids), axis=1), keys, clusters, rows)
        else:
            _draw_farthest(ids, vectors, min(way.drawn, len(ids)), keys, of_queries, rows)
        papers[places[is_query]] = rows
    papers[papers == block.queries[:, None]] = NONE
    return picking.drawn(papers)


def _normalised(batch: pa.RecordBatch, is_chosen: NDArray[np.bool_]) -> Vectors:
    vectors = vectors_of(pa.Table.from_batches([batch.filter(pa.array(is_chosen))]))
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=vectors.copy(), where=norms > 0)


class Clusters(NamedTuple):
    """Clusters of papers."""

    centroids: Vectors
    ranked: NDArray[np.int64]  # the other clusters of each cluster, the nearest first
    papers: Ids  # the papers, cluster after cluster
    starts: Ids  # start of the papers of each cluster, and at the end their number


def _find_clusters(ids: Ids, vectors: Vectors, clusters: int, seed: int) -> Clusters:
    """Group papers by spherical k-means over their vectors."""
    means = faiss.Kmeans(
        vectors.shape[1],
        clusters,
        niter=20,
        seed=derive_seed(seed, "k-means") % 2**31,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=256,  # more do not make centroids better
    )
    with threadpool_limits(1):  # sums over threads come out differently with their number
        means.train(vectors)
    centroids = np.asarray(means.centroids)
    cluster = np.argmax(_products(vectors, centroids), axis=1)
    order = np.argsort(cluster, kind="stable")
    similarities = _products(centroids, centroids)
    np.fill_diagonal(similarities, np.inf)
    return Clusters(
        centroids=centroids,
        ranked=np.argsort(-similarities, axis=1, kind="stable")[:, 1:],
        papers=ids[order],
        starts=np.searchsorted(cluster[order], np.arange(clusters + 1)),
    )


def _products(vectors: Vectors, others: Vectors) -> Vectors:
    """The products of all pairs; unlike those of BLAS, they do not depend on how many there are."""
    return np.einsum("vd,od->vo", vectors, others)


@njit(nogil=True, cache=True)
def _draw_from_others(own, keys, clusters, papers):  # type: ignore[no-untyped-def]
    """Go through the other clusters in a random order, and again for as long as they have papers left."""
    count = clusters.ranked.shape[1]
    for row in range(len(keys)):
        number = turn = 0
        has_more = True
        while number < papers.shape[1] and has_more:
            has_more = False
            for step in range(count):
                other = clusters.ranked[own[row], permuted(step, keys[row], half_bits(count), count)]
                size = clusters.starts[other + 1] - clusters.starts[other]
                if turn < size and number < papers.shape[1]:
                    place = permuted(turn, mixed(keys[row] + np.uint64(other)), half_bits(size), size)
                    papers[row, number] = clusters.papers[clusters.starts[other] + place]
                    number += 1
                    has_more = True
            turn += 1


def _draw_farthest(
    ids: Ids, known: Vectors, count: int, keys: NDArray[np.uint64], vectors: Vectors, papers: Ids
) -> None:
    """Draw `count` papers for each query of these hashes and vectors; the least similar fill `papers`."""
    for first in range(0, len(keys), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        candidates = _candidates(keys[some], count, len(ids), half_bits(len(ids)))
        similarities = np.einsum("qcd,qd->qc", known[candidates], vectors[some])
        order = np.argsort(similarities, axis=1, kind="stable")[:, : papers.shape[1]]
        papers[some, : order.shape[1]] = ids[np.take_along_axis(candidates, order, axis=1)]


@njit(nogil=True, cache=True)
def _candidates(keys, drawn, papers, bits):  # type: ignore[no-untyped-def]
    """Random places, queries × drawn."""
    candidates = np.empty((len(keys), drawn), dtype=np.int64)
    for row in range(len(keys)):
        for number in range(drawn):
            candidates[row, number] = permuted(number, keys[row], bits, papers)
    return candidates
