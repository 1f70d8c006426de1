"""Random choice of papers for each of many queries: picked among candidates, or drawn among all that have a text.

A query picks the candidates whose priorities, hashes of seed, query and paper, are smallest: a uniform sample without
repetition (bottom-k, Cohen & Kaplan, 2007), whatever the order of offers. To draw easy negatives, each query goes
through all papers in its own order, a permutation that a Feistel network over the places makes from the seed and the
query (Luby & Rackoff, 1988; Black & Rogaway, 2002). Some more are drawn than needed, since a query's own are excluded.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import contains, member_at, place_of, size
from cocite.core.randomness import GOLDEN, derive_seed, mix, priorities
from cocite.triplets.sampled import Block

NONE = -1  # no paper
SPARE = 13  # Spare papers drawn. If a tenth of all papers is near a query, one in 10¹² queries has too few.
ROUNDS = 4

mixed: Any = njit(nogil=True, cache=True)(mix)  # the finaliser of SplitMix64, compiled for single numbers


class Picks(NamedTuple):
    """What each of some queries has picked: queries × places, empty places last."""

    papers: NDArray[np.int64]
    ranks: NDArray[np.int32]  # the rank that a paper had when it was offered
    priorities: NDArray[np.uint64]
    state: np.uint64  # the seed of this use of randomness


def picks(queries: int, count: int, seed: int, name: str) -> Picks:
    """Room for `count` papers of each query; `name` distinguishes this use of randomness from others."""
    shape = queries, count
    return Picks(
        papers=np.full(shape, NONE, dtype=np.int64),
        ranks=np.zeros(shape, dtype=np.int32),
        priorities=np.full(shape, np.iinfo(np.uint64).max),
        state=np.uint64(derive_seed(seed, name)),
    )


@njit(nogil=True, cache=True)
def offer(picked, place, query, paper, rank, refused):  # type: ignore[no-untyped-def]
    """Offer a paper to the query of a place, which takes it once if its priority is small and it is not refused."""
    if picked.priorities.shape[1]:
        offer_at(picked, place, paper, rank, refused, priority_of(picked.state, query, paper))


@njit(nogil=True, cache=True)
def offer_at(picked, place, paper, rank, refused, priority):  # type: ignore[no-untyped-def]
    """Offer a paper with a priority, the smallest of which counts if it is offered with several; `refused` rise."""
    priorities = picked.priorities[place]
    spot = last = len(priorities) - 1
    if priority >= priorities[last]:
        return
    while spot > 0 and priorities[spot - 1] >= priority:
        spot -= 1
    if priorities[spot] == priority or is_among(refused, paper):
        return
    for at in range(last):
        if picked.papers[place, at] == paper:  # at another priority, as the two directions of an edge may have
            if at < spot:
                return
            last = at
    for moved in range(last, spot, -1):
        priorities[moved] = priorities[moved - 1]
        picked.papers[place, moved] = picked.papers[place, moved - 1]
        picked.ranks[place, moved] = picked.ranks[place, moved - 1]
    priorities[spot] = priority
    picked.papers[place, spot] = paper
    picked.ranks[place, spot] = rank


@njit(nogil=True, cache=True)
def is_among(ids, paper):  # type: ignore[no-untyped-def]
    """Whether a paper is among ids in rising order."""
    place = np.searchsorted(ids, paper)
    return place < len(ids) and ids[place] == paper


@njit(nogil=True, cache=True)
def priority_of(state, query, paper):  # type: ignore[no-untyped-def]
    """The hash that `randomness.priorities` gives to a query and a paper."""
    return mixed(mixed(state + GOLDEN + np.uint64(query)) + GOLDEN + np.uint64(paper))


class Draws(NamedTuple):
    """The papers that some queries drew, queries × draws; `NONE` where all papers are drawn."""

    papers: NDArray[np.int64]
    is_excluded: NDArray[np.bool_]


def draw(block: Block, count: int, name: str, *, spare: int = SPARE) -> Draws:
    """Draw `count` papers, and some to spare, for each query of a block; never the query itself."""
    papers = np.full((len(block.queries), count + spare if count else 0), NONE, dtype=np.int64)
    if count:
        keys = priorities(block.seed, name, block.queries)
        _draw(block.queries, keys, block.papers, size(block.papers), papers)
    return drawn(papers)


def drawn(papers: NDArray[np.int64]) -> Draws:
    """These papers as draws, none of them struck out."""
    return Draws(papers=papers, is_excluded=papers == NONE)


@njit(nogil=True, cache=True)
def half_bits(papers):  # type: ignore[no-untyped-def]
    """Half the bits of a place: the network permutes the smallest power of 4 that covers all places."""
    bits = 1
    while 1 << (2 * bits) < papers:
        bits += 1
    return bits


@njit(nogil=True, cache=True)
def permuted(place, key, bits, papers):  # type: ignore[no-untyped-def]
    """The image of a place under the permutation of a key, both below `papers`; larger images are permuted again."""
    mask = np.uint64((1 << bits) - 1)
    shift = np.uint64(bits)
    at = np.uint64(place)
    while True:
        left, right = at >> shift, at & mask
        for number in range(ROUNDS):
            left, right = right, left ^ (mixed(key + (np.uint64(number) << np.uint64(62)) + right) & mask)
        at = (left << shift) | right
        if at < np.uint64(papers):
            return np.int64(at)


@njit(nogil=True, cache=True)
def exclude(draws, place, paper):  # type: ignore[no-untyped-def]
    """Strike a paper out of the draws of the query of a place."""
    for number in range(draws.papers.shape[1]):
        if draws.papers[place, number] == paper:
            draws.is_excluded[place, number] = True


@njit(nogil=True, cache=True)
def exclude_all(draws, place, papers, needed):  # type: ignore[no-untyped-def]
    """Strike out the draws of the query of a place that are among some papers, until `needed` are known not to be."""
    for number in range(draws.papers.shape[1]):
        if needed > 0 and not draws.is_excluded[place, number]:
            for paper in papers:
                if paper == draws.papers[place, number]:
                    draws.is_excluded[place, number] = True
                    break
            else:
                needed -= 1


@njit(nogil=True, cache=True)
def offer_ends(edges, listed, required, positives, easy):  # type: ignore[no-untyped-def]
    """Offer each query the paper at the other end of an edge (place, paper, priority); it is no easy negative then."""
    places, papers, keys = edges
    for row in range(len(places)):
        exclude(easy, places[row], papers[row])
        if not required or contains(listed, papers[row]):
            offer_at(positives, places[row], papers[row], 0, papers[:0], keys[row])


@njit(nogil=True, cache=True)
def offer_cocited(pairs, queries, listed, min_count, required, offered, is_known):  # type: ignore[no-untyped-def]
    """Offer each query among a pair's papers the other one: a positive or, if co-cited less often than `min_count`, a
    hard negative, the sooner the less often."""
    papers, others, counts = pairs
    positives, hard, easy = offered
    for row in range(len(papers)):
        for query, paper in ((papers[row], others[row]), (others[row], papers[row])):
            place = place_of(queries, query)
            if place < 0:
                continue
            is_known[place] = True
            exclude(easy, place, paper)
            if required and not contains(listed, paper):
                continue
            if counts[row] >= min_count:
                offer(positives, place, query, paper, 0, papers[:0])
            elif hard.papers.shape[1]:
                chance = priority_of(hard.state, query, paper) >> np.uint64(16)
                offer_at(hard, place, paper, 0, papers[:0], np.uint64(counts[row]) << np.uint64(48) | chance)


@njit(nogil=True, cache=True)
def offer_cited(positives, elsewhere, easy, texts, cited, bounds, listed):  # type: ignore[no-untyped-def]
    """Offer each sentence what it cites, and what its paper cites in others; these and its paper are not easy ones."""
    queries, citing = texts
    for place in range(len(queries)):
        own = cited[bounds[place, 0] : bounds[place, 1]]
        of_paper = cited[bounds[place, 2] : bounds[place, 3]]
        exclude(easy, place, citing[place])
        exclude_all(easy, place, of_paper, easy.papers.shape[1])
        for paper in own:
            if contains(listed, paper):
                offer(positives, place, queries[place], paper, 0, own[:0])
        for paper in of_paper:
            if contains(listed, paper):
                offer(elsewhere, place, queries[place], paper, 0, own)


@njit(nogil=True, cache=True)
def _draw(queries, keys, listed, total, papers):  # type: ignore[no-untyped-def]
    bits = half_bits(total)
    for place in range(len(queries)):
        number = step = 0
        while number < papers.shape[1] and step < total:
            paper = member_at(listed, permuted(step, keys[place], bits, total))
            step += 1
            if paper != queries[place]:
                papers[place, number] = paper
                number += 1
