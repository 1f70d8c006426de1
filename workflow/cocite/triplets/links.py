"""Papers linked with the queries by citations, and papers two citations away.

A *seat* is a query with an aspect; the seats of a query are contiguous. The links of the queries are kept in memory.
The papers two citations away are many times more: they are streamed, and each seat keeps its picks (see `picking`).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from cocite.config.graphs import ASPECTS, INTENTS, MISCELLANEOUS
from cocite.config.sampler import Gathering
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, GrowingIdSet, contains, members_at, place_of, places_of, set_of, size
from cocite.core.randomness import priorities
from cocite.core.written_ids import Ids, distinct
from cocite.triplets.pairing import examples_table, first_drawn, gathered, paired, unserved
from cocite.triplets.picking import NONE, Draws, Picks, draw, exclude, exclude_all, offer, picks
from cocite.triplets.sampled import Block, Sampled

IS_CITED = np.uint8(1 << len(INTENTS))  # the trait that the query cites the paper; the bits below are the intents
KNOWN = np.uint8(IS_CITED - 1)  # the traits that are intents
KINDS = ("linked", "two-away", "easy")  # the kinds of negatives of examples
Traits = NDArray[np.uint8]


class Links(NamedTuple):
    """The papers linked with each query, distinct and rising."""

    papers: Ids
    traits: Traits  # the intents of all citations between the two, as bits, and whether the query cites the paper
    starts: Ids  # start of the papers of each query, and at the end their number
    intents: int  # how many citations of the graph have an intent; 0 if intents were not read


class QueryAspectRows(NamedTuple):
    """The seats: a row for each query and aspect of a block."""

    queries: Ids
    bits: Traits  # the bit of the intent of each seat; 0 for links without one; every bit if there are no aspects
    keys: Ids  # what draws follow from: a hash of the query and the aspect, or the query itself
    aspects: int  # the rows of a query


def links_of(block: Block, *, directed: bool = False, by_intent: bool = False) -> Links:
    """The links of a block's queries in a citation graph; `directed`, only with the papers that a query cites."""
    queries, linked = set_of(block.queries), GrowingIdSet()
    found = [(NO_IDS, NO_IDS, np.empty(0, dtype=np.uint8))]
    with_intent = 0
    for source, target, intents in _edges(block, by_intent=by_intent):
        with_intent += int(np.count_nonzero(intents))
        ways = (source, target, intents | IS_CITED), (target, source, intents)
        for one, other, traits in ways[:1] if directed else ways:
            places = places_of(queries, one).astype(np.int64)
            is_ours = places >= 0
            found.append((places[is_ours], other[is_ours], traits[is_ours]))
            linked.add(found[-1][1])
    members = linked.finish()
    packed = np.concatenate([places << 32 | places_of(members, papers) for places, papers, _ in found])
    traits = np.concatenate([kept for _, _, kept in found])
    order = np.argsort(packed)
    packed = packed[order]
    first = np.flatnonzero(np.diff(packed, prepend=-1))
    united = np.bitwise_or.reduceat(traits[order], first) if len(first) else traits
    packed = packed[first]
    starts = np.searchsorted(packed >> 32, np.arange(len(block.queries) + 1))
    return Links(members_at(members, packed & 0xFFFFFFFF), united, starts, with_intent)


def seats_of_queries(block: Block) -> QueryAspectRows:
    """A seat of each query for links of any kind; its draws depend on the query only."""
    return QueryAspectRows(block.queries, np.full(len(block.queries), KNOWN, dtype=np.uint8), block.queries, 1)


def pick_linked(
    block: Block,
    links: Links,
    seats: QueryAspectRows,
    count: int,
    name: str,
    *,
    opposed: bool = False,
    required: bool = True,
) -> Picks:
    """Let each seat pick among the papers that are linked with its query by its aspect or, `opposed`, by another aspect
    and not by that one; `required`, among those with a text."""
    picked = picks(len(seats.queries), count, block.seed, name)
    _offer_links(picked, seats, links, block.papers, required, opposed)
    return picked


def pick_two_away(
    block: Block,
    links: Links,
    seats: QueryAspectRows,
    count: int,
    name: str,
    easy: Draws,
    *,
    any_aspect: bool = True,
    any_way: bool = False,
    required: bool = True,
) -> Picks:
    """Let each seat pick among the references of the query's references that are not linked with the query. Those count
    whose citation, the second one, has another aspect and not that of the seat; with `any_aspect`, all. `any_way`,
    whatever two citations in any direction reach. All of them, and all links, are struck out of the easy negatives."""
    picked = picks(len(seats.queries), count, block.seed, name)
    _exclude_linked(easy, links)
    is_between = np.ones(len(links.traits), dtype=bool) if any_way else links.traits & IS_CITED > 0
    of_each = links.papers[is_between]
    places = np.repeat(np.arange(len(block.queries)), np.diff(links.starts))[is_between]
    between = set_of(of_each)
    # Of each paper in between, in rising order: the places of the queries that it is one citation away from.
    packed = np.sort(places_of(between, of_each).astype(np.int64) << 32 | places)
    of_papers = np.searchsorted(packed >> 32, np.arange(size(between) + 1)), packed & 0xFFFFFFFF
    options = required, any_aspect
    for source, target, traits in _edges(block, by_intent=links.intents > 0):
        for one, other in ((source, target), (target, source))[: 1 + any_way]:
            _pass_on((one, other, traits), between, of_papers, seats, links, block.papers, options, picked, easy)
    return picked


def _edges(block: Block, *, by_intent: bool) -> Iterator[tuple[Ids, Ids, Traits]]:
    """The citations of a graph: citing and cited papers, and the intents as bits if needed."""
    for batch in block.read("edges", ("source", "target", *(("intents",) if by_intent else ()))):
        bits = np.zeros(len(batch), dtype=np.uint8)
        if by_intent:
            place = pc.index_in(batch["intents"].flatten(), pa.array(INTENTS)).to_numpy(zero_copy_only=False)
            of_each = pc.list_parent_indices(batch["intents"]).to_numpy()
            np.bitwise_or.at(bits, of_each, (1 << place.astype(np.int64)).astype(np.uint8))
        yield batch["source"].to_numpy(), batch["target"].to_numpy(), bits


def gather(
    block: Block,
    asked: Gathering,
    *,
    linked: int = 0,
    two_away: int = 0,
    any_aspect: bool = True,
    complete: bool = False,
) -> Sampled:
    """The examples of the queries of a block for each aspect; without aspects, any link makes a positive. Negatives are
    papers linked by another aspect and not by that of the example, papers two citations away, and random others, as
    many as configured. With `complete`, queries that lack a positive of some intent have no example. Raises
    `InputError` if there are aspects and no citation has an intent."""
    aspects = asked.aspects
    links, seats = links_of(block, by_intent=bool(aspects)), _seats_for(block, aspects)
    if aspects and links.intents == 0:
        raise InputError("No citation of the graph has an intent, and so no aspect; the sampler undirected needs none.")
    positives = pick_linked(block, links, seats, asked.positives, "positives").papers
    easy = draw(block, asked.easy * seats.aspects, "easy negatives")
    opposed = pick_linked(block, links, seats, linked, "linked negatives", opposed=True)
    away = pick_two_away(block, links, seats, two_away, "negatives two citations away", easy, any_aspect=any_aspect)
    # The seats of a query share its draws, so that no paper is an easy negative of two of them.
    random = first_drawn(easy, np.full(len(block.queries), asked.easy * seats.aspects)).reshape(len(seats.queries), -1)
    parts = [opposed.papers, away.papers, random]
    has_positive, has_negative = ((papers != NONE).any(axis=1) for papers in (positives, np.concatenate(parts, axis=1)))
    of_query = has_positive.reshape(-1, seats.aspects)
    lacks_some = ~of_query[:, [complete and name in INTENTS for name in aspects or ("",)]].all(axis=1)
    chosen = np.flatnonzero(has_positive & has_negative & ~np.repeat(lacks_some, seats.aspects))
    rows = gathered(chosen, positives[chosen], [papers[chosen] for papers in parts])
    if asked.paired:
        rows = paired(block, rows, seats.keys, oversampled=asked.positives if asked.oversample else 0)
    examples = examples_table(block, rows, KINDS, aspects)
    reasons = [
        ("no citations", links.starts[1:] == links.starts[:-1]),
        ("no positive with a text", ~of_query.any(axis=1)),
        ("no positive in each aspect", lacks_some),
        ("no negative with a text", np.ones(len(block.queries), dtype=bool)),
    ]
    is_served = np.isin(block.queries, examples["query"].to_numpy())
    of_aspect = np.bincount(distinct(rows.seats) % seats.aspects, minlength=seats.aspects).tolist()
    lacking = {
        f"queries with an example, but none of {name}": int(np.count_nonzero(is_served)) - count
        for name, count in zip(aspects, of_aspect, strict=False)
    }
    return Sampled(rows=examples, omissions={**unserved("sampled_examples", ~is_served, reasons), **lacking})


def _seats_for(block: Block, aspects: Sequence[str]) -> QueryAspectRows:
    bits = [np.uint8(1 << INTENTS.index(name) if name != MISCELLANEOUS else 0) for name in aspects] or [KNOWN]
    numbers = [1 + ASPECTS.index(name) for name in aspects] or [0]
    queries = np.repeat(block.queries, len(bits))
    keys = priorities(block.seed, "seat", queries, np.tile(numbers, len(block.queries))).view(np.int64)
    return QueryAspectRows(queries, np.tile(np.array(bits, dtype=np.uint8), len(block.queries)), keys, len(bits))


@njit(nogil=True, cache=True)
def _is_opposed(traits, bit):  # type: ignore[no-untyped-def]
    """Whether a link has another intent and not that of a bit; links without one are opposed to none."""
    return bit != 0 and traits & bit == 0 and traits & KNOWN != 0


@njit(nogil=True, cache=True)
def _offer_links(picked, seats, links, listed, required, opposed):  # type: ignore[no-untyped-def]
    for seat in range(len(seats.queries)):
        place, bit = seat // seats.aspects, seats.bits[seat]
        for link in range(links.starts[place], links.starts[place + 1]):
            traits = links.traits[link]
            # Without a bit, links without an intent fit; with `KNOWN`, any link does.
            is_of = bit == KNOWN or traits & bit != 0 or (bit == 0 and traits & KNOWN == 0)
            fits = _is_opposed(traits, bit) if opposed else is_of
            if fits and (not required or contains(listed, links.papers[link])):
                offer(picked, seat, seats.keys[seat], links.papers[link], 0, links.papers[:0])


@njit(nogil=True, cache=True)
def _exclude_linked(easy, links):  # type: ignore[no-untyped-def]
    for place in range(len(links.starts) - 1):
        exclude_all(easy, place, links.papers[links.starts[place] : links.starts[place + 1]], easy.papers.shape[1])


@njit(nogil=True, cache=True)
def _pass_on(edges, between, of_papers, seats, links, listed, options, picked, easy):  # type: ignore[no-untyped-def]
    """Offer the other end of each edge of a paper in between to the seats of the queries that it is linked with."""
    sources, targets, traits = edges
    starts, places = of_papers
    required, any_aspect = options
    at = -1
    for edge in range(len(sources)):
        if edge == 0 or sources[edge] != sources[edge - 1]:
            at = place_of(between, sources[edge])
        if at < 0 or (required and not contains(listed, targets[edge])):
            continue
        for place in places[starts[at] : starts[at + 1]]:
            if targets[edge] == seats.queries[place * seats.aspects]:
                continue
            exclude(easy, place, targets[edge])
            near = links.papers[links.starts[place] : links.starts[place + 1]]
            for seat in range(place * seats.aspects, (place + 1) * seats.aspects):
                bit = seats.bits[seat]
                if (any_aspect and bit != 0) or _is_opposed(traits[edge], bit):
                    offer(picked, seat, seats.keys[seat], targets[edge], 0, near)
