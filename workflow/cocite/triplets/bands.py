"""Bands of ranked neighbours: which ranks of a query belong to them, and what is picked there.

The neighbours of all queries are read once, those of each query in the order of their ranks; each thread reads its own
row groups. Where papers without a text are left out before ranking, ranks are counted among those that have one.
"""

from collections.abc import Iterator
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import contains
from cocite.triplets.picking import Draws, Picks, exclude_all, is_among, offer
from cocite.triplets.sampled import Block


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
        query, neighbour, *distance = (column.to_numpy() for column in rows.columns)
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


@njit(nogil=True, cache=True)
def _pick(columns, queries, listed, bands, picked, easy, needed, required, is_known):  # type: ignore[no-untyped-def]
    """Pick for the queries of some rows: query, neighbour and distance, which is empty where no band needs it.

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
