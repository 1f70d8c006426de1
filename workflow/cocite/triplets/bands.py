"""Bands of ranked neighbours: which ranks of a query belong to them, and what is picked there.

The neighbours of all queries stream by once, each query's in the order of their ranks. Where papers without a text are
left out before ranking, ranks are counted among those that have one.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.errors import InputError
from cocite.triplets.drawing import Draws, strike_all
from cocite.triplets.ids import contains
from cocite.triplets.picking import Picks, is_among, offer
from cocite.triplets.sampled import Block

Columns = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.float32]]
"""Query, rank, neighbour and distance of some rows."""


class Band(NamedTuple):
    """Ranks from `first` to `last` or, by distance, the `width` ranks that end with the last one within a distance."""

    first: int
    last: int
    width: int
    by_distance: bool
    within: np.float32


NOWHERE = Band(1, 0, 0, False, np.float32(0))


def band(name: str, k: int | tuple[int, int] | None, within: float | None, picked: int) -> Band:
    """The band of positives or negatives to pick so many from: the last ranks up to k, ranks k, or up to a distance."""
    if picked == 0:
        return NOWHERE
    if within is not None:
        return Band(1, 0, picked, True, np.float32(within))
    if k is None:
        raise InputError(f"--settings: one of the keys k_{name} and distance_{name} is needed.")
    first, last = k if isinstance(k, tuple) else (k - picked + 1, k)
    return Band(max(1, first), last, picked, False, np.float32(0))


def pick_from_bands(
    block: Block, bands: tuple[Band, Band], picked: tuple[Picks, Picks], easy: Draws, *, needed: int, required: bool
) -> NDArray[np.bool_]:
    """Let each query pick positives and hard negatives from their bands; tell which queries have neighbours.

    Papers of the band of positives are no negatives. Of the easy negatives, those that are neighbours are struck out,
    until `needed` of a query are known not to be.
    """
    is_known = np.zeros(len(block.queries), dtype=bool)
    for columns in _whole_queries(_columns(block, with_distance=any(each.by_distance for each in bands))):
        _pick(columns, block.queries, block.papers, bands, picked, easy, needed, required, is_known)
    return is_known


def _columns(block: Block, *, with_distance: bool) -> Iterator[Columns]:
    """The neighbours of a block's queries, and perhaps others; distances only where they are asked for."""
    columns = ["query", "rank", "neighbour"]
    for batch in block.read("neighbours", [*columns, "distance"] if with_distance else columns, query="query"):
        query, rank, neighbour = (batch.column(name).to_numpy() for name in columns)
        distance = batch.column("distance").to_numpy() if with_distance else np.empty(0, dtype=np.float32)
        yield query, rank, neighbour, distance


def _whole_queries(batches: Iterator[Columns]) -> Iterator[Columns]:
    """The same rows in batches that end with the end of a query; only the rows of queries in two batches are copied."""
    left: list[Columns] = []
    for columns in batches:
        query = columns[0]
        start, last = 0, int(np.searchsorted(query, query[-1]))
        if left:
            start = int(np.searchsorted(query, query[0], "right")) if query[0] == left[0][0][0] else 0
            left.append(_part(columns, slice(0, start)))
            if start == len(query):
                continue
            yield _joined(left)
        if start < last:
            yield _part(columns, slice(start, last))
        left = [_part(columns, slice(last, None))]
    if left:
        yield _joined(left)


def _part(columns: Columns, rows: slice) -> Columns:
    query, rank, neighbour, distance = columns
    return query[rows], rank[rows], neighbour[rows], distance[rows]


def _joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    query, rank, neighbour, distance = (np.concatenate(column) for column in zip(*parts, strict=True))
    return query, rank, neighbour, distance


@njit(nogil=True, cache=True)
def _pick(columns, queries, listed, bands, picked, easy, needed, required, is_known):  # type: ignore[no-untyped-def]
    query, ranks, neighbours, distances = columns
    start = 0
    while start < len(query):
        end = start + np.searchsorted(query[start:], query[start], "right")
        if is_among(queries, query[start]):
            place = np.searchsorted(queries, query[start])
            is_known[place] = True
            own = neighbours[start:end]
            at = _ranks_with_text(own, listed) if required else ranks[start:end]
            limits = _limits(bands, at, distances[start:end])
            for number in range(2):
                rows = (0, len(own)) if required else _rows_of(limits[number], at)
                _offer_band(picked[number], place, query[start], own, at, limits[number], rows)
            strike_all(easy, place, own, needed)
        start = end


@njit(nogil=True, cache=True)
def _ranks_with_text(papers, listed):  # type: ignore[no-untyped-def]
    """Ranks among the papers with a text; 0 for the others."""
    ranks = np.zeros(len(papers), dtype=np.int32)
    rank = 0
    for row in range(len(papers)):
        if contains(listed, papers[row]):
            rank += 1
            ranks[row] = rank
    return ranks


@njit(nogil=True, cache=True)
def _limits(bands, ranks, distances):  # type: ignore[no-untyped-def]
    """First and last rank of both bands; the second starts after the first."""
    first, last = _limits_of(bands[0], ranks, distances)
    hard_first, hard_last = _limits_of(bands[1], ranks, distances)
    return (first, last), (max(hard_first, last + 1), hard_last)


@njit(nogil=True, cache=True)
def _limits_of(band, ranks, distances):  # type: ignore[no-untyped-def]
    """First and last rank of a band; none where all neighbours are within its distance, and so perhaps more papers."""
    if not band.by_distance:
        return band.first, band.last
    last = 0
    for row in range(len(ranks)):
        if distances[row] > band.within:
            return max(1, last - band.width + 1), last
        last = max(last, ranks[row])
    return 1, 0


@njit(nogil=True, cache=True)
def _rows_of(limits, ranks):  # type: ignore[no-untyped-def]
    """First row of a band, and the one behind it, where ranks rise."""
    return np.searchsorted(ranks, limits[0]), np.searchsorted(ranks, limits[1], "right")


@njit(nogil=True, cache=True)
def _offer_band(picked, place, query, papers, ranks, limits, rows):  # type: ignore[no-untyped-def]
    for row in range(rows[0], rows[1]):
        if limits[0] <= ranks[row] <= limits[1]:
            offer(picked, place, query, papers[row], ranks[row], papers[:0])
