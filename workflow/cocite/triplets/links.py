"""Papers linked with the queries, whichever of the two cites the other, and why; and papers two citations away.

What is asked for has a row for each query and aspect, a *seat*: the picks of all aspects of a block lie in one array,
those of a query one after the other. The links of the queries are held in memory, eight bytes each and one for their
traits. The references of references are many times more: they are read in passing, and each seat keeps the
few that it picks (see `picking`).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from cocite.config.aspects import ASPECTS, INTENTS, MISCELLANEOUS
from cocite.core.id_sets import GrowingIdSet, Ids, IdSet, contains, members_at, place_of, places_of, set_of, size
from cocite.core.randomness import priorities
from cocite.triplets.picking import Draws, Picks, offer, picks, strike, strike_all
from cocite.triplets.sampled import Block

IS_CITED = np.uint8(1 << len(INTENTS))
"""The trait of a link whose paper the query cites; the bits below are the intents."""
KNOWN = np.uint8(IS_CITED - 1)
"""The traits that are intents."""

Traits = NDArray[np.uint8]


class Links(NamedTuple):
    """The papers linked with each query, distinct and rising."""

    papers: Ids
    traits: Traits
    """The intents of all citations between the two, as bits, and whether the query cites the paper."""
    starts: NDArray[np.int64]
    """Where the papers of each query start, and at the end how many there are."""
    intents: int
    """How many citations of the graph have an intent."""


class Seats(NamedTuple):
    """What is asked for: a row for each query and aspect of a block."""

    queries: Ids
    """The query of each seat."""
    bits: Traits
    """The bit of the intent of each seat; 0 for links without one; every bit where no aspect is asked for."""
    keys: Ids
    """A hash of query and aspect, in place of the query in what is drawn for each aspect by itself."""
    aspects: int
    """Seats of a query."""


def links_of(block: Block) -> Links:
    """The links of the queries of a block, from the table `edges` of a directed citation graph."""
    queries, linked = set_of(block.queries), GrowingIdSet()
    found: list[tuple[Ids, Ids, Traits]] = []
    with_intent = 0
    for source, target, intents in _edges(block):
        with_intent += int(np.count_nonzero(intents))
        for one, other, traits in ((source, target, intents | IS_CITED), (target, source, intents)):
            places, papers, kept = _of_members(queries, one, other, traits)
            found.append((places, papers, kept))
            linked.add(papers)
    members = linked.finish()
    packed = np.concatenate([np.empty(0, np.int64), *(p << 32 | places_of(members, o) for p, o, _ in found)])
    traits = np.concatenate([np.empty(0, np.uint8), *(kept for _, _, kept in found)])
    order = np.argsort(packed)
    packed = packed[order]
    first = np.flatnonzero(np.diff(packed, prepend=-1))
    united = np.bitwise_or.reduceat(traits[order], first) if len(first) else traits
    packed = packed[first]
    starts = np.searchsorted(packed >> 32, np.arange(len(block.queries) + 1))
    papers = members_at(members, packed & 0xFFFFFFFF)
    return Links(papers=papers, traits=united, starts=starts, intents=with_intent)


def seats_for(block: Block, aspects: Sequence[str]) -> Seats:
    """A seat of each query for each aspect; one that stands for any link where there are no aspects."""
    bits = [np.uint8(1 << INTENTS.index(name) if name != MISCELLANEOUS else 0) for name in aspects] or [KNOWN]
    numbers = [1 + ASPECTS.index(name) for name in aspects] or [0]
    queries = np.repeat(block.queries, len(bits))
    return Seats(
        queries=queries,
        bits=np.tile(np.array(bits, dtype=np.uint8), len(block.queries)),
        keys=priorities(block.seed, "seat", queries, np.tile(numbers, len(block.queries))).view(np.int64),
        aspects=len(bits),
    )


def pick_linked(block: Block, links: Links, seats: Seats, count: int, name: str, *, opposed: bool) -> Picks:
    """Let each seat pick among the papers with a text that are linked with its query by its aspect.

    `opposed`, among those that are linked by another aspect and not by that one.
    """
    picked = picks(len(seats.queries), count, block.seed, name)
    _offer_links(picked, seats, links, block.papers, opposed)
    return picked


def look_at_references(block: Block, links: Links, seats: Seats, count: int, easy: Draws, *, any_aspect: bool) -> Picks:
    """Let each seat pick among the references of the query's references that are not linked with the query.

    Those count whose citation, the second one, has another aspect and not that of the seat; with `any_aspect`, all. All
    of them, and all links, are struck out of the easy negatives.
    """
    picked = picks(len(seats.queries), count, block.seed, "negatives two citations away")
    _strike_linked(easy, links)
    is_cited = links.traits & IS_CITED > 0
    cited = links.papers[is_cited]
    places = np.repeat(np.arange(len(block.queries)), np.diff(links.starts))[is_cited]
    between = set_of(cited)
    # Of each paper in between, in rising order: the places of the queries that cite it.
    packed = np.sort(places_of(between, cited).astype(np.int64) << 32 | places)
    starts = np.searchsorted(packed >> 32, np.arange(size(between) + 1))
    for edges in _edges(block):
        _pass_on(edges, between, (starts, packed & 0xFFFFFFFF), seats, links, block.papers, any_aspect, picked, easy)
    return picked


def _edges(block: Block) -> Iterator[tuple[Ids, Ids, Traits]]:
    """The citations of a graph: who cites, who is cited, and the intents as bits."""
    for batch in block.read("edges", ("source", "target", "intents")):
        yield batch["source"].to_numpy(), batch["target"].to_numpy(), _bits_of(batch["intents"])


def _bits_of(intents: pa.ListArray) -> Traits:
    """Lists of intents as sets of bits."""
    of_each = pc.list_parent_indices(intents).to_numpy()
    place = pc.index_in(intents.flatten(), pa.array(INTENTS)).to_numpy(zero_copy_only=False)
    bits = np.zeros(len(intents), dtype=np.uint8)
    np.bitwise_or.at(bits, of_each, (1 << place.astype(np.int64)).astype(np.uint8))
    return bits


@njit(nogil=True, cache=True)
def _of_members(members: IdSet, one, other, traits):  # type: ignore[no-untyped-def]
    """The citations whose one end is a member: the places of these ends, the other ends, and the traits."""
    places, others = np.empty(len(one), dtype=np.int64), np.empty(len(one), dtype=np.int64)
    kept = np.empty(len(one), dtype=np.uint8)
    count = 0
    for edge in range(len(one)):
        place = place_of(members, one[edge])
        if place >= 0:
            places[count], others[count], kept[count] = place, other[edge], traits[edge]
            count += 1
    return places[:count].copy(), others[:count].copy(), kept[:count].copy()


@njit(nogil=True, cache=True)
def _is_of(traits, bit):  # type: ignore[no-untyped-def]
    """Whether a link has the aspect of a bit: the intent, or, for no bit, no intent; every link has all bits'."""
    return bit == KNOWN or traits & bit != 0 or (bit == 0 and traits & KNOWN == 0)


@njit(nogil=True, cache=True)
def _is_opposed(traits, bit):  # type: ignore[no-untyped-def]
    """Whether a link has another intent and not that of a bit; links without one are opposed to none."""
    return bit != 0 and traits & bit == 0 and traits & KNOWN != 0


@njit(nogil=True, cache=True)
def _offer_links(picked, seats, links, listed, opposed):  # type: ignore[no-untyped-def]
    for seat in range(len(seats.queries)):
        place = seat // seats.aspects
        for link in range(links.starts[place], links.starts[place + 1]):
            traits, bit = links.traits[link], seats.bits[seat]
            fits = _is_opposed(traits, bit) if opposed else _is_of(traits, bit)
            if fits and contains(listed, links.papers[link]):
                offer(picked, seat, seats.keys[seat], links.papers[link], 0, links.papers[:0])


@njit(nogil=True, cache=True)
def _strike_linked(easy, links):  # type: ignore[no-untyped-def]
    for place in range(len(links.starts) - 1):
        strike_all(easy, place, links.papers[links.starts[place] : links.starts[place + 1]], easy.papers.shape[1])


@njit(nogil=True, cache=True)
def _pass_on(edges, between, of_papers, seats, links, listed, any_aspect, picked, easy):  # type: ignore[no-untyped-def]
    """Pass each paper that a paper in between cites on to the seats of the queries that cite the latter."""
    sources, targets, traits = edges
    starts, places = of_papers
    for edge in range(len(sources)):
        at = place_of(between, sources[edge])
        if at < 0 or not contains(listed, targets[edge]):
            continue
        for place in places[starts[at] : starts[at + 1]]:
            if targets[edge] == seats.queries[place * seats.aspects]:
                continue
            strike(easy, place, targets[edge])
            near = links.papers[links.starts[place] : links.starts[place + 1]]
            for seat in range(place * seats.aspects, (place + 1) * seats.aspects):
                bit = seats.bits[seat]
                if (any_aspect and bit != 0) or _is_opposed(traits[edge], bit):
                    offer(picked, seat, seats.keys[seat], targets[edge], 0, near)
