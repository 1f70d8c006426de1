"""Papers picked at random for each of many queries, while their candidates are read in any order.

A query picks the papers whose priorities, hashes of seed, query and paper, are smallest: a uniform sample without
repetition (bottom-k, Cohen & Kaplan, 2007) in memory that depends on its size alone, and the same whatever the order,
however often a paper is offered, and whichever other queries there are. The picks are in the order of their priorities,
so the first n of them are a sample as well.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.ground.id_sets import Ids, contains
from cocite.ground.randomness import GOLDEN, derive_seed, mix

NONE = -1
"""Stands for no paper."""

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)

mixed: Any = njit(nogil=True, cache=True)(mix)
"""The finaliser of SplitMix64, compiled for single numbers."""


class Picks(NamedTuple):
    """What each of some queries has picked: queries × places, empty places last."""

    papers: NDArray[np.int64]
    ranks: NDArray[np.int32]
    """The rank that a paper had when it was offered."""
    priorities: NDArray[np.uint64]
    state: np.uint64
    """The seed of this use of randomness."""


def picks(queries: int, count: int, seed: int, name: str) -> Picks:
    """Room for `count` papers of each query; `name` distinguishes this use of randomness from others."""
    shape = queries, count
    return Picks(
        papers=np.full(shape, NONE, dtype=np.int64),
        ranks=np.zeros(shape, dtype=np.int32),
        priorities=np.full(shape, _EMPTY, dtype=np.uint64),
        state=np.uint64(derive_seed(seed, name)),
    )


@njit(nogil=True, cache=True)
def offer(picked, place, query, paper, rank, refused):  # type: ignore[no-untyped-def]
    """Offer a paper to the query of a place, which takes it if its priority is small and it is not among the refused.

    `refused` is in rising order. A paper that is offered again is not taken twice.
    """
    priorities = picked.priorities[place]
    last = len(priorities) - 1
    if last < 0:
        return
    priority = priority_of(picked.state, query, paper)
    if priority >= priorities[last]:
        return
    spot = last
    while spot > 0 and priorities[spot - 1] >= priority:
        spot -= 1
    if priorities[spot] == priority or is_among(refused, paper):
        return
    for moved in range(last, spot, -1):
        priorities[moved] = priorities[moved - 1]
        picked.papers[place, moved] = picked.papers[place, moved - 1]
        picked.ranks[place, moved] = picked.ranks[place, moved - 1]
    priorities[spot] = priority
    picked.papers[place, spot] = paper
    picked.ranks[place, spot] = rank


@njit(nogil=True, cache=True)
def offer_each(picked, queries, starts, papers, listed, required):  # type: ignore[no-untyped-def]
    """Offer to each query its papers, from `starts` of its place on; if text is required, only those with one."""
    for place in range(len(queries)):
        for paper in papers[starts[place] : starts[place + 1]]:
            if not required or contains(listed, paper):
                offer(picked, place, queries[place], paper, 0, papers[:0])


@njit(nogil=True, cache=True)
def is_among(ids, paper):  # type: ignore[no-untyped-def]
    """Whether a paper is among ids in rising order."""
    place = np.searchsorted(ids, paper)
    return place < len(ids) and ids[place] == paper


@njit(nogil=True, cache=True)
def priority_of(state, query, paper):  # type: ignore[no-untyped-def]
    """The hash that `randomness.priorities` gives to a query and a paper."""
    return mixed(mixed(state + GOLDEN + np.uint64(query)) + GOLDEN + np.uint64(paper))


def without(picked: Picks, is_left_out: NDArray[np.bool_]) -> tuple[Ids, NDArray[np.int32]]:
    """Papers and ranks without those that are left out, moved up in each row; empty places hold `NONE`."""
    is_out = is_left_out | (picked.papers == NONE)
    order = np.argsort(is_out, axis=1, kind="stable")
    papers = np.take_along_axis(np.where(is_out, NONE, picked.papers), order, axis=1)
    return papers, np.take_along_axis(picked.ranks, order, axis=1)
