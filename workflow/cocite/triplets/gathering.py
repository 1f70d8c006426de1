"""The last step of samplers of examples: put together what each query has picked and drawn for each aspect.

An example is a query, some positives and some negatives and, where the sampler tells them apart, the aspect that links
the query with the former. Paired, each positive makes an example with one negative, as in SPECTER's triplets. Papers
without a text are picked by nobody; a query that is left without an example is counted with the first reason that
holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.aspects import INTENTS
from cocite.config.sampler import Gathering
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.triplets.links import Links, Seats, links_of, look_at_references, pick_linked, seats_for
from cocite.triplets.pairing import first_drawn, shuffled, unserved
from cocite.triplets.picking import NONE, draw
from cocite.triplets.sampled import Block, Sampled

KINDS = ("linked", "two-away", "easy")
Kinds = NDArray[np.int8]
"""The kinds of negatives, by their places in `KINDS`; as text they would take 32 bytes each."""


@dataclass(frozen=True, kw_only=True)
class Negatives:
    """How many negatives of each kind an example may have."""

    linked: int = 0
    """Papers that are linked with the query by another aspect, and not by that of the example."""
    two_away: int = 0
    """References of the query's references that are not linked with the query."""
    any_aspect: bool = True
    """Whether the latter count whatever the aspect by which their reference cites them; else it is another one."""
    easy: int = 0
    """Random papers that are neither."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Examples: the row of each among those asked for, its positives and its negatives, examples × places."""

    seats: NDArray[np.int64]
    positives: Ids
    """`NONE` in places without a paper."""
    negatives: Ids
    kinds: Kinds
    """Of each negative."""


def gather(block: Block, asked: Gathering, aspects: Sequence[str], negatives: Negatives, *, complete: bool) -> Sampled:
    """The examples of the queries of a block for each aspect; without aspects, any link makes a positive.

    They are drawn from the table `edges` of a directed citation graph. With `complete`, queries that lack a positive
    of some intent have none. Raises `InputError` where there are aspects and no citation has an intent.
    """
    links, seats = links_of(block), seats_for(block, aspects)
    if aspects and links.intents == 0:
        raise InputError(
            "No citation of the graph has an intent, so that there is no aspect to learn; the sampler undirected needs "
            "none."
        )
    positives = pick_linked(block, links, seats, asked.positives, "positives", opposed=False).papers
    against, kinds = _candidates(block, links, seats, negatives)
    has_positive, has_negative = ((papers != NONE).any(axis=1) for papers in (positives, against))
    of_query = has_positive.reshape(-1, seats.aspects)
    needed = [name in INTENTS for name in aspects] if complete else [False] * seats.aspects
    lacks_some = ~of_query[:, needed].all(axis=1)
    chosen = np.flatnonzero(has_positive & has_negative & ~np.repeat(lacks_some, seats.aspects))
    rows = Rows(
        seats=chosen,
        positives=positives[chosen],
        negatives=against[chosen],
        kinds=np.broadcast_to(kinds, (len(chosen), len(kinds))),
    )
    if asked.paired:
        rows = paired(block, rows, seats.keys, oversampled=asked.positives if asked.oversample else 0)
    examples = examples_table(block, rows, aspects)
    reasons = [
        ("no citations", links.starts[1:] == links.starts[:-1]),
        ("no positive with a text", ~of_query.any(axis=1)),
        ("no positive in each aspect", lacks_some),
        ("no negative with a text", np.ones(len(block.queries), dtype=bool)),
    ]
    is_served = np.isin(block.queries, examples["query"].to_numpy())
    omissions = {
        **unserved("sampled_examples", ~is_served, reasons),
        **_lacking(rows, aspects, int(np.count_nonzero(is_served))),
    }
    return Sampled(rows=examples, omissions=omissions)


def _candidates(block: Block, links: Links, seats: Seats, asked: Negatives) -> tuple[Ids, Kinds]:
    """The negatives of each seat, seats × places, and the kind of those in each place."""
    easy = draw(block, asked.easy * seats.aspects, "easy negatives")
    linked = pick_linked(block, links, seats, asked.linked, "linked negatives", opposed=True)
    two_away = look_at_references(block, links, seats, asked.two_away, easy, any_aspect=asked.any_aspect)
    # The seats of a query share its draws, so that no paper is an easy negative of two of them.
    room = np.full(len(block.queries), asked.easy * seats.aspects)
    random = first_drawn(easy, room).reshape(len(seats.queries), -1)
    parts = [linked.papers, two_away.papers, random]
    kinds = np.arange(len(KINDS), dtype=np.int8)
    return np.concatenate(parts, axis=1), np.repeat(kinds, [papers.shape[1] for papers in parts])


def paired(block: Block, rows: Rows, keys: Ids, *, oversampled: int) -> Rows:
    """Examples of one positive and one negative: the i-th of each, the negatives shuffled by the key of the seat.

    Positives come again where fewer than `oversampled` are there.
    """
    order = shuffled(block, keys[rows.seats], rows.negatives)
    negatives, kinds = (np.take_along_axis(each, order, axis=1) for each in (rows.negatives, rows.kinds))
    found, against = (np.count_nonzero(papers != NONE, axis=1) for papers in (rows.positives, negatives))
    pairs = np.minimum(oversampled or found, against)
    row = np.repeat(np.arange(len(pairs)), pairs)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    return Rows(
        seats=rows.seats[row],
        positives=rows.positives[row, nth % found[row]][:, None],
        negatives=negatives[row, nth][:, None],
        kinds=kinds[row, nth][:, None],
    )


def examples_table(block: Block, rows: Rows, aspects: Sequence[str], kinds: Sequence[str] = KINDS) -> pa.Table:
    """The columns of the table `sampled_examples`, in the order of queries and, of a query, of aspects."""
    places = rows.seats // max(1, len(aspects))
    first = np.flatnonzero(np.diff(places, prepend=-1))
    has_positive, has_negative = (papers != NONE for papers in (rows.positives, rows.negatives))
    columns = {
        "query": block.queries[places],
        "number": 1 + np.arange(len(places)) - np.repeat(first, np.diff(first, append=len(places))),
        "split": block.splits.take(pa.array(places)),
        "positives": _lists(pa.array(rows.positives[has_positive]), has_positive),
        "negatives": _lists(pa.array(rows.negatives[has_negative]), has_negative),
        "negative_kinds": _lists(pa.array(kinds).take(pa.array(rows.kinds[has_negative])), has_negative),
    }
    if aspects:
        columns["aspect"] = pa.array(aspects).take(pa.array(rows.seats % len(aspects)))
    return pa.table(columns)


def _lists(values: pa.Array, is_there: NDArray[np.bool_]) -> pa.ListArray:
    """Values as lists, of which each row has as many as are there."""
    starts = np.append(0, np.cumsum(np.count_nonzero(is_there, axis=1)))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)


def _lacking(rows: Rows, aspects: Sequence[str], served: int) -> dict[str, int]:
    """How many of the queries that are served have no example of each aspect."""
    of_aspect = np.unique(rows.seats) % max(1, len(aspects))
    return {
        f"queries with an example, but none of {name}": served - int(np.count_nonzero(of_aspect == number))
        for number, name in enumerate(aspects)
    }
