"""What the sampler `neighbours` picks from bands of ranked neighbours, and the easy negatives that it draws.

The neighbours of all queries are read once, those of each query by rank; each thread reads its own row groups. If
papers without a text are left out before ranking, only papers with text have ranks.

Easy negatives are random papers, papers of other clusters, or the farthest of some random ones. The latter two are in
SciNCL's appendix (Ostendorff et al., 2022; both did worse than random ones). They use the graph embedding in which
neighbours were searched, and the cosine, whatever the metric of the search. Clusters and papers come from a random
sample of the papers with a text, so that memory does not grow with the embedding.

k-means: the clusters other than the query's own are ranked by the distance of their centroids to its centroid. Each
negative is a random paper of a different cluster, as long as the requested ranks have enough clusters.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple

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
from cocite.triplets.picking import (
    NONE,
    SPARE,
    Draws,
    Picks,
    draw,
    drawn,
    exclude_all,
    half_bits,
    is_among,
    mixed,
    offer,
    permuted,
)
from cocite.triplets.sampled import Block

TABLE, COLUMNS = "graph_embeddings", ("corpusid", "vector")
SAMPLED = 50_000
"""About how many papers are in the sample."""
QUERIES_AT_ONCE = 16
"""Queries that draw the farthest papers at once."""

Keys = NDArray[np.uint64]
"""A hash of each query, which decides what it draws."""
Vectors = NDArray[np.float32]


class Band(NamedTuple):
    """Ranks from `first` to `last` or, by distance, the `width` ranks that end with the last one within a distance."""

    first: int
    last: int
    width: int
    within: np.float32
    """The distance; not a number for a band by ranks."""


def band(k: int | tuple[int, int] | None, within: float | None, picked: int) -> Band:
    """The band to pick so many from: it ends with rank `k` or spans the two ranks `k`, or ends with a distance."""
    if within is not None:
        return Band(1, 0, picked, np.float32(within))
    first, last = k if isinstance(k, tuple) else ((k or 0) - picked + 1, k or 0)
    return Band(max(1, first), last, picked, np.float32(np.nan))


def pick_from_bands(
    block: Block, bands: tuple[Band, Band], picked: tuple[Picks, Picks], easy: Draws, *, needed: int, required: bool
) -> NDArray[np.bool_]:
    """Let each query pick positives and hard negatives from their bands; return which queries have neighbours.

    Papers of the band of positives are no negatives. Easy negatives that are neighbours are struck out, until `needed`
    of a query are known not to be neighbours.
    """
    is_known = np.zeros(len(block.queries), dtype=bool)
    names = ["query", "neighbour", *([] if all(np.isnan(each.within) for each in bands) else ["distance"])]

    def pick(rows: pa.RecordBatch | pa.Table) -> None:
        query, neighbour, *distance = _of_works(block, [column.to_numpy() for column in rows.columns])
        columns = query, neighbour, distance[0] if distance else np.empty(0, dtype=np.float32)
        _pick(columns, block.queries, block.papers, bands, picked, easy, needed, required, is_known)

    def pick_within(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Pick for the queries within each batch; return the rows of its first and last, which others may continue."""
        edges = []
        for batch in batches:
            query = batch["query"].to_numpy()
            first, last = int(np.searchsorted(query, query[0], "right")), int(np.searchsorted(query, query[-1]))
            pick(batch.slice(first, max(0, last - first)))
            ends = [np.arange(first), np.arange(last, len(query))] if last > 0 else [np.arange(first)]
            edges += [batch.take(pa.array(end)) for end in ends]  # These are copies: the batch need not be kept.
        return edges

    edges = chain.from_iterable(block.map_row_groups("neighbours", names, pick_within, query="query"))
    for _, parts in groupby(edges, lambda rows: rows["query"][0].as_py()):
        pick(pa.Table.from_batches(list(parts)))
    return is_known


def _of_works(block: Block, columns: list[Any]) -> list[Any]:
    """The neighbours of queries, query, neighbour and more, with works in place of their twins: the nearest record of
    each, and none of the query's own work."""
    if len(block.twins.papers) == 0:
        return columns
    query, neighbour, *more = columns
    neighbour = block.twins.works_of(neighbour)
    touched = np.flatnonzero(np.isin(neighbour, block.twins.works))
    is_kept = np.ones(len(query), dtype=bool)
    is_kept[touched] = False
    pairs = np.stack([query[touched], neighbour[touched]])
    is_kept[touched[np.unique(pairs, axis=1, return_index=True)[1]]] = True
    is_kept &= query != neighbour
    return [column[is_kept] for column in (query, neighbour, *more)]


@njit(nogil=True, cache=True)
def _pick(columns, queries, listed, bands, picked, easy, needed, required, is_known):  # type: ignore[no-untyped-def]
    """Pick for the queries of some rows: query, neighbour and distance, which is empty if no band needs it.

    A query's rows come by rank, from 1, so that ranks need not be read.
    """
    query, neighbours, distances = columns
    start = 0
    while start < len(query):
        end = start + np.searchsorted(query[start:], query[start], "right")
        if is_among(queries, query[start]):
            place = np.searchsorted(queries, query[start])
            is_known[place] = True
            own = neighbours[start:end]
            ranks = _ranks(own, listed, required)
            first, last = _limits(bands[0], ranks, distances[start:end])
            _offer_band(picked[0], place, query[start], own, ranks, first, last)
            first, hard_last = _limits(bands[1], ranks, distances[start:end])
            _offer_band(picked[1], place, query[start], own, ranks, max(first, last + 1), hard_last)
            exclude_all(easy, place, own, needed)
        start = end


@njit(nogil=True, cache=True)
def _ranks(papers, listed, required):  # type: ignore[no-untyped-def]
    """Ranks of all papers or, if required, among those with a text, and 0 for the others."""
    ranks = np.zeros(len(papers), dtype=np.int32)
    rank = 0
    for row in range(len(papers)):
        if not required or contains(listed, papers[row]):
            rank += 1
            ranks[row] = rank
    return ranks


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
        return draw(block, count, "easy negatives")
    papers = np.full((len(block.queries), count + SPARE), NONE, dtype=np.int64)
    ids, vectors = _sample(block)
    choose: Callable[[Keys, Vectors, int], Ids]
    if isinstance(way, ClusterNegatives):
        if len(ids) < way.clusters:
            said = f"but only {len(ids)} of the papers that are sampled have a text and a vector"
            raise InputError(f"Setting clusters is {way.clusters}, {said}.")
        choose = partial(_draw_from_clusters, _find_clusters(ids, vectors, way.clusters, block.seed))
    else:
        choose = partial(_draw_farthest, ids, vectors, min(way.drawn, len(ids)))
    for batch in block.read(TABLE, COLUMNS, rows=SAMPLED):
        places, is_query = look_up(block.queries, batch["corpusid"].to_numpy())
        if is_query.any():
            keys = priorities(block.seed, "easy negatives", block.queries[places[is_query]])
            papers[places[is_query]] = choose(keys, _normalised(batch, is_query), papers.shape[1])
    papers[papers == block.queries[:, None]] = NONE
    return drawn(papers)


def _sample(block: Block) -> tuple[Ids, Vectors]:
    """The papers with a text whose hashes are small enough, rising, and their vectors.

    The sample depends on the seed and on how many vectors there are.
    """
    share = SAMPLED / max(1, count_rows(block.files(TABLE)))
    largest = np.uint64(min(1.0, share) * (2**64 - 2**12))
    ids, vectors = [], []
    for batch in block.read(TABLE, COLUMNS, rows=SAMPLED):
        papers = batch["corpusid"].to_numpy()
        is_chosen = are_in(block.papers, papers) & (priorities(block.seed, "known vectors", papers) <= largest)
        ids.append(papers[is_chosen])
        vectors.append(_normalised(batch, is_chosen))
    return np.concatenate(ids), np.concatenate(vectors)


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
    """Start of the papers of each cluster, and at the end their number."""


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
    cluster = _nearest(vectors, centroids)
    order = np.argsort(cluster, kind="stable")
    similarities = _products(centroids, centroids)
    np.fill_diagonal(similarities, np.inf)
    return Clusters(
        centroids=centroids,
        ranked=np.argsort(-similarities, axis=1, kind="stable")[:, 1:],
        papers=ids[order],
        starts=np.searchsorted(cluster[order], np.arange(clusters + 1)),
    )


def _draw_from_clusters(clusters: Clusters, keys: Keys, vectors: Vectors, width: int) -> Ids:
    """Draw papers of other clusters for each query of these hashes and vectors; queries × width."""
    papers = np.full((len(keys), width), NONE, dtype=np.int64)
    _draw_from_others(_nearest(vectors, clusters.centroids), keys, clusters, papers)
    return papers


def _nearest(vectors: Vectors, centroids: Vectors) -> NDArray[np.int64]:
    return np.argmax(_products(vectors, centroids), axis=1)


def _products(vectors: Vectors, others: Vectors) -> Vectors:
    """The products of all pairs; unlike those of BLAS, they do not depend on how many there are."""
    return np.einsum("vd,od->vo", vectors, others)


@njit(nogil=True, cache=True)
def _draw_from_others(own, keys, clusters, papers):  # type: ignore[no-untyped-def]
    """Go through the clusters in a random order, and again for as long as they have papers left."""
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


def _draw_farthest(ids: Ids, known: Vectors, count: int, keys: Keys, vectors: Vectors, width: int) -> Ids:
    """Draw `count` papers for each query of these hashes and vectors; the least similar, queries × width."""
    papers = np.full((len(keys), width), NONE, dtype=np.int64)
    for first in range(0, len(keys), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        candidates = _candidates(keys[some], count, len(ids), half_bits(len(ids)))
        similarities = np.einsum("qcd,qd->qc", known[candidates], vectors[some])
        order = np.argsort(similarities, axis=1, kind="stable")[:, :width]
        papers[some, : order.shape[1]] = ids[np.take_along_axis(candidates, order, axis=1)]
    return papers


@njit(nogil=True, cache=True)
def _candidates(keys, drawn, papers, bits):  # type: ignore[no-untyped-def]
    """Random places, queries × drawn."""
    candidates = np.empty((len(keys), drawn), dtype=np.int64)
    for row in range(len(keys)):
        for number in range(drawn):
            candidates[row, number] = permuted(number, keys[row], bits, papers)
    return candidates
