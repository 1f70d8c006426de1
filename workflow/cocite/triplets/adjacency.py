"""Papers one and two citations away from the queries, in two readings of all edges and memory for the first alone.

The papers one citation away are held. Those two away are many times more: they stream by, and each query keeps the few
that it picks (`picking`).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cocite.triplets.drawing import Draws, strike, strike_all
from cocite.triplets.ids import Ids, IdSet, contains, place_of, set_of
from cocite.triplets.picking import Picks, offer
from cocite.triplets.sampled import Block

COLUMNS = ("source", "target")


class Adjacent(NamedTuple):
    """The papers one citation away from each query, distinct and rising."""

    papers: Ids
    starts: Ids
    """Where the papers of each query start, and at the end how many there are."""


def adjacent(block: Block, *, directed: bool) -> Adjacent:
    """The papers that queries cite and, undirected, those that cite them."""
    queries = set_of(block.queries)
    found = [np.empty(0, dtype=np.int64)]
    for batch in block.read("edges", COLUMNS):
        ends = tuple(batch.column(name).to_numpy() for name in COLUMNS)
        found.append(_of_members(queries, *ends))
        if not directed:
            found.append(_of_members(queries, *reversed(ends)))
    packed = np.sort(np.concatenate(found))
    places, papers = _unpacked(packed[np.diff(packed, prepend=-1) > 0])
    return Adjacent(papers=papers, starts=np.searchsorted(places, np.arange(len(block.queries) + 1)))


def look_two_away(block: Block, own: Adjacent, hard: Picks, easy: Draws, *, required: bool, directed: bool) -> None:
    """Let queries pick hard negatives among the papers two citations away; strike both kinds out of the easy ones."""
    places = np.repeat(np.arange(len(block.queries)), np.diff(own.starts))
    between = set_of(own.papers)
    # Of each paper in between, in rising order: the places of the queries that it is one citation away from.
    of_papers, queries = _unpacked(np.sort(_packed(own.papers, places)))
    starts = np.append(np.flatnonzero(np.diff(of_papers, prepend=-1)), len(of_papers))
    _strike_adjacent(block.queries, own, easy)
    for batch in block.read("edges", COLUMNS):
        ends = tuple(batch.column(name).to_numpy() for name in COLUMNS)
        for source, target in [ends] if directed else [ends, ends[::-1]]:
            _pass_on(
                (source, target), (between, starts, queries), block.queries, own, block.papers, required, hard, easy
            )


def _packed(high: Ids, low: Ids) -> Ids:
    """Two numbers below 2³¹ in one, in whose order the first comes first."""
    return (high << 32) | low


def _unpacked(packed: Ids) -> tuple[Ids, Ids]:
    return packed >> 32, packed & 0xFFFFFFFF


@njit(nogil=True, cache=True)
def _of_members(members: IdSet, one, other):  # type: ignore[no-untyped-def]
    """The edges whose one end is a member, as its place and the other end, packed."""
    found = np.empty(len(one), dtype=np.int64)
    count = 0
    for edge in range(len(one)):
        if contains(members, one[edge]):
            found[count] = (place_of(members, one[edge]) << 32) | other[edge]
            count += 1
    return found[:count].copy()


@njit(nogil=True, cache=True)
def _strike_adjacent(queries, own, easy):  # type: ignore[no-untyped-def]
    for place in range(len(queries)):
        strike_all(easy, place, own.papers[own.starts[place] : own.starts[place + 1]], easy.papers.shape[1])


@njit(nogil=True, cache=True)
def _pass_on(edges, between, queries, own, listed, required, hard, easy):  # type: ignore[no-untyped-def]
    """Pass the ends of each run of edges on to the queries that their common start is one citation away from."""
    sources, ends = edges
    members, starts, places = between
    first = 0
    while first < len(sources):
        last = first + 1
        while last < len(sources) and sources[last] == sources[first]:
            last += 1
        if contains(members, sources[first]):
            at = place_of(members, sources[first])
            for place in places[starts[at] : starts[at + 1]]:
                near = own.papers[own.starts[place] : own.starts[place + 1]]
                for paper in ends[first:last]:
                    if paper != queries[place] and (not required or contains(listed, paper)):
                        offer(hard, place, queries[place], paper, 0, near)
                        strike(easy, place, paper)
        first = last
