"""Papers drawn at random for each of many queries, among all that have a text: the candidates of easy negatives.

Each query goes through all papers in an order of its own, a permutation that a Feistel network over the places makes
from the seed and the query (Luby & Rackoff, 1988; Black & Rogaway, 2002, for a domain of any size). So no paper is
drawn twice, and what a query draws depends on no other. Somewhat more are drawn than are asked for, since some turn out
not to be negatives: papers that are found among the query's own are struck out.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.ground.id_sets import member_at, size
from cocite.ground.randomness import priorities
from cocite.triplets.picking import NONE, mixed
from cocite.triplets.sampled import Block

SPARE = 13
"""Papers drawn beyond those asked for. Where a tenth of all papers is near a query, one in 10¹² runs out of them."""
ROUNDS = 4


class Draws(NamedTuple):
    """The papers that some queries drew, queries × draws; `NONE` where all papers are drawn."""

    papers: NDArray[np.int64]
    is_struck: NDArray[np.bool_]


def draw(block: Block, count: int, name: str, *, spare: int = SPARE) -> Draws:
    """Draw `count` papers, and some to spare, for each query of a block; never the query itself."""
    papers = np.full((len(block.queries), count + spare if count else 0), NONE, dtype=np.int64)
    if count:
        keys = priorities(block.seed, name, block.queries)
        _draw(block.queries, keys, block.papers, size(block.papers), papers)
    return drawn(papers)


def drawn(papers: NDArray[np.int64]) -> Draws:
    """These papers as draws, none of them struck out."""
    return Draws(papers=papers, is_struck=papers == NONE)


@njit(nogil=True, cache=True)
def half_bits(papers):  # type: ignore[no-untyped-def]
    """Bits of a half of a place: the network permutes the smallest power of 4 that holds all places."""
    bits = 1
    while 1 << (2 * bits) < papers:
        bits += 1
    return bits


@njit(nogil=True, cache=True)
def permuted(place, key, bits, papers):  # type: ignore[no-untyped-def]
    """Where the permutation of a key sends a place, both below `papers`; a place beyond that is sent on again."""
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
def strike(draws, place, paper):  # type: ignore[no-untyped-def]
    """Strike a paper out of the draws of the query of a place."""
    for number in range(draws.papers.shape[1]):
        if draws.papers[place, number] == paper:
            draws.is_struck[place, number] = True


@njit(nogil=True, cache=True)
def strike_all(draws, place, papers, needed):  # type: ignore[no-untyped-def]
    """Strike out the draws of the query of a place that are among some papers, until `needed` are known not to be."""
    for number in range(draws.papers.shape[1]):
        if needed == 0:
            return
        if draws.is_struck[place, number]:
            continue
        for paper in papers:
            if paper == draws.papers[place, number]:
                draws.is_struck[place, number] = True
                break
        else:
            needed -= 1


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
