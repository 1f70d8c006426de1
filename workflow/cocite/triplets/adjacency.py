"""Papers near the queries in a graph: one or two citations away, or cited together with them.

The papers one citation away are held in memory. Those two away, and pairs of co-cited papers, are many times more: they
are read in passing, and each query keeps the few that it picks (`picking`).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import GrowingIdSet, Ids, IdSet, contains, members_at, place_of, places_of, set_of
from cocite.triplets.picking import Draws, Picks, offer, offer_at, priority_of, strike, strike_all
from cocite.triplets.sampled import Block

COLUMNS = ("source", "target")


class Adjacent(NamedTuple):
    """The papers one citation away from each query, distinct and rising."""

    papers: Ids
    starts: NDArray[np.int64]
    """Where the papers of each query start, and at the end how many there are."""
    between: IdSet
    """The papers one citation away from any of the queries."""


def adjacent(block: Block, *, directed: bool) -> Adjacent:
    """The papers that queries cite and, undirected, those that cite them."""
    queries, growing = set_of(block.queries), GrowingIdSet()
    found = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for batch in block.read("edges", COLUMNS):
        ends = tuple(batch.column(name).to_numpy() for name in COLUMNS)
        for one, other in [ends] if directed else [ends, ends[::-1]]:
            found.append(_of_members(queries, one, other))
            growing.add(found[-1][1])
    between = growing.finish()
    packed = np.concatenate([_packed(places, places_of(between, papers)) for places, papers in found])
    packed.sort()
    places, papers = _unpacked(packed[np.diff(packed, prepend=-1) > 0])
    starts = np.searchsorted(places, np.arange(len(block.queries) + 1))
    return Adjacent(papers=members_at(between, papers), starts=starts, between=between)


def look_two_away(block: Block, own: Adjacent, hard: Picks, easy: Draws, *, required: bool, directed: bool) -> None:
    """Let queries pick hard negatives among the papers two citations away; strike both kinds out of the easy ones."""
    places = np.repeat(np.arange(len(block.queries)), np.diff(own.starts))
    # Of each paper in between, in rising order: the places of the queries that it is one citation away from.
    of_papers, queries = _unpacked(np.sort(_packed(places_of(own.between, own.papers), places)))
    starts = np.append(np.flatnonzero(np.diff(of_papers, prepend=-1)), len(of_papers))
    _strike_adjacent(block.queries, own, easy)
    for batch in block.read("edges", COLUMNS):
        ends = tuple(batch.column(name).to_numpy() for name in COLUMNS)
        for source, target in [ends] if directed else [ends, ends[::-1]]:
            _pass_on((source, target), (starts, queries), block.queries, own, block.papers, required, hard, easy)


def _packed(high: NDArray[Any], low: NDArray[Any]) -> NDArray[np.int64]:
    """Two places, below 2³¹, in one number, in whose order the first comes first."""
    return (high.astype(np.int64) << 32) | low


def _unpacked(packed: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return packed >> 32, packed & 0xFFFFFFFF


@njit(nogil=True, cache=True)
def _of_members(members: IdSet, one, other):  # type: ignore[no-untyped-def]
    """The edges whose one end is a member: the places of these ends, and the other ends."""
    places, others = np.empty(len(one), dtype=np.int64), np.empty(len(one), dtype=np.int64)
    count = 0
    for edge in range(len(one)):
        place = place_of(members, one[edge])
        if place >= 0:
            places[count], others[count] = place, other[edge]
            count += 1
    return places[:count].copy(), others[:count].copy()


@njit(nogil=True, cache=True)
def _strike_adjacent(queries, own, easy):  # type: ignore[no-untyped-def]
    for place in range(len(queries)):
        strike_all(easy, place, own.papers[own.starts[place] : own.starts[place + 1]], easy.papers.shape[1])


@njit(nogil=True, cache=True)
def _pass_on(edges, of_papers, queries, own, listed, required, hard, easy):  # type: ignore[no-untyped-def]
    """Pass the ends of each run of edges on to the queries that their common start is one citation away from."""
    sources, ends = edges
    starts, places = of_papers
    first = 0
    while first < len(sources):
        last = first + 1
        while last < len(sources) and sources[last] == sources[first]:
            last += 1
        at = place_of(own.between, sources[first])
        if at >= 0:
            for place in places[starts[at] : starts[at + 1]]:
                near = own.papers[own.starts[place] : own.starts[place + 1]]
                for paper in ends[first:last]:
                    if paper != queries[place] and (not required or contains(listed, paper)):
                        offer(hard, place, queries[place], paper, 0, near)
                        strike(easy, place, paper)
        first = last


@njit(nogil=True, cache=True)
def offer_cocited(pairs, queries, listed, min_count, required, offered, is_known):  # type: ignore[no-untyped-def]
    """Offer each query among a pair's papers the other one, which is no easy negative of it then.

    A paper that is co-cited less often than `min_count` is a hard negative, the sooner the less often.
    """
    papers, others, counts = pairs
    positives, hard, easy = offered
    for row in range(len(papers)):
        for query, paper in ((papers[row], others[row]), (others[row], papers[row])):
            place = place_of(queries, query)
            if place < 0:
                continue
            is_known[place] = True
            strike(easy, place, paper)
            if required and not contains(listed, paper):
                continue
            if counts[row] >= min_count:
                offer(positives, place, query, paper, 0, papers[:0])
            elif hard.papers.shape[1]:
                chance = priority_of(hard.state, query, paper) >> np.uint64(16)
                offer_at(hard, place, paper, 0, papers[:0], np.uint64(counts[row]) << np.uint64(48) | chance)
