"""The last step of most samplers: triplets or examples of the positives and negatives that queries picked and drew.

The i-th positive of a query is paired with its i-th negative, hard and easy ones shuffled; so are those of an example
that is `paired`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.sampler import Pairing
from cocite.core.id_sets import are_in
from cocite.core.randomness import priorities
from cocite.core.written_ids import Ids
from cocite.triplets.picking import NONE, Draws, Picks, picks
from cocite.triplets.sampled import UNSERVED, Block, Sampled, as_lists, as_triplets, numbered

Flags = NDArray[np.bool_]


def pair(
    block: Block,
    asked: Pairing,
    positives: Picks,
    easy: Draws,
    hard: Picks | None = None,
    reasons: Sequence[tuple[str, Flags]] = (),
    *,
    fill: bool = False,
    no_positive: str = "no positive",
    no_hard: str = "no hard negative",
) -> Sampled:
    """Pair the positives of each query with hard negatives, and with easy ones if it needs more; papers without a text
    are dropped. With `fill`, easy negatives also replace missing hard ones if a query has at least one. A query without
    a triplet is counted with the first reason that applies: of `reasons`, each with the queries it applies to,
    `no_positive` and `no_hard`, if it has picked nothing, or others."""
    hard = picks(len(block.queries), 0, block.seed, "hard negatives") if hard is None else hard
    papers, ranks, lost = _with_text(block, positives)
    negative, negative_ranks, is_easy, hard_lost = _mixed(block, asked.per_query, hard, easy, fill)
    found, against = (np.count_nonzero(each != NONE, axis=1) for each in (papers, negative))
    usable = np.where(found > 0, asked.per_query, 0) if asked.oversample else found
    whole = np.minimum(np.minimum(usable, against), asked.per_query)
    is_dropped = (whole < asked.per_query) & (asked.partial == "dropped")
    counts = np.where(is_dropped, 0, whole)
    places, nth = chosen = numbered(counts)
    of_positive = places, nth % np.maximum(found, 1)[places]
    triplets = as_triplets(
        block,
        places,
        papers[of_positive],
        negative[chosen],
        positive_rank=pa.array(ranks[of_positive], mask=ranks[of_positive] == 0),
        negative_rank=pa.array(negative_ranks[chosen], mask=negative_ranks[chosen] == 0),
        negative_kind=np.where(is_easy[chosen], "easy", "hard"),
    )
    known = [
        *reasons,
        (no_positive, (positives.papers == NONE).all(axis=1)),
        ("their positives have no text", found == 0),
        (no_hard, (hard.papers == NONE).all(axis=1) & (hard.papers.shape[1] > 0)),
        ("no negative with a text", against == 0),
        ("fewer triplets than asked for", is_dropped),
    ]
    wanted = int(np.count_nonzero(counts)) * asked.per_query
    omissions = {
        **unserved("triplets", counts == 0, known),
        "positives without text": lost,
        "hard negatives without text": hard_lost,
        "triplets fewer than asked for, of queries with some": wanted - len(triplets),
    }
    return Sampled(rows=triplets, omissions=omissions)


def _with_text(block: Block, picked: Picks) -> tuple[Ids, NDArray[np.int32], int]:
    """The picks with a text, moved up in each row, their ranks, and how many had none."""
    has_text = are_in(block.papers, picked.papers)
    order = np.argsort(~has_text, axis=1, kind="stable")
    papers = np.take_along_axis(np.where(has_text, picked.papers, NONE), order, axis=1)
    lost = int(np.count_nonzero(~has_text & (picked.papers != NONE)))
    return papers, np.take_along_axis(picked.ranks, order, axis=1), lost


def _mixed(
    block: Block, count: int, picked: Picks, draws: Draws, fill: bool
) -> tuple[Ids, NDArray[np.int32], Flags, int]:
    """Hard and easy negatives of each query, shuffled: papers, ranks, which are easy, and how many had no text."""
    hard, hard_ranks, lost = _with_text(block, picked)
    hard_found = np.count_nonzero(hard != NONE, axis=1)
    room = np.where((hard_found > 0) & fill, count - hard_found, count - hard.shape[1])
    easy = first_drawn(draws, room)
    papers = np.concatenate([hard, easy], axis=1)
    ranks = np.concatenate([hard_ranks, np.zeros_like(easy, dtype=np.int32)], axis=1)
    order = _shuffled(block, block.queries, papers)
    papers, ranks = (np.take_along_axis(each, order, axis=1) for each in (papers, ranks))
    return papers, ranks, order >= hard.shape[1], lost


def first_drawn(draws: Draws, room: Ids) -> Ids:
    """So many draws of each query that were not struck out, the first ones."""
    nth = np.cumsum(~draws.is_excluded, axis=1)
    is_out = draws.is_excluded | (nth > room[:, None])
    order = np.argsort(is_out, axis=1, kind="stable")[:, : int(room.max(initial=0))]
    return np.take_along_axis(np.where(is_out, NONE, draws.papers), order, axis=1)


def _shuffled(block: Block, of: Ids, papers: Ids) -> Ids:
    """A random order of the papers of each row, which depends only on `of` and the paper; empty places last."""
    rows = np.repeat(of, papers.shape[1])
    keys = priorities(block.seed, "order of negatives", rows, papers.reshape(-1)).reshape(papers.shape)
    keys[papers == NONE] = np.iinfo(np.uint64).max
    return np.argsort(keys, axis=1, kind="stable")


def unserved(table: str, is_unserved: Flags, reasons: Sequence[tuple[str, Flags]]) -> dict[str, int]:
    """The number of queries without a row in a table, each counted with the first reason that applies."""
    counts = {}
    for reason, holds in reasons:
        counts[f"{UNSERVED[table]}: {reason}"] = int(np.count_nonzero(is_unserved & holds))
        is_unserved = is_unserved & ~holds
    return counts


class Rows(NamedTuple):
    """Examples: the row of each among the seats, its positives and its negatives, examples × places."""

    seats: Ids
    positives: Ids  # `NONE` in places without a paper
    negatives: Ids
    kinds: NDArray[np.int8]
    """Of each negative, by its place among those of a sampler; as text they would take 32 bytes each."""


def paired(block: Block, rows: Rows, keys: Ids, *, oversampled: int) -> Rows:
    """The i-th positive with the i-th negative, shuffled by the key of the seat; of too few positives, some again."""
    order = _shuffled(block, keys[rows.seats], rows.negatives)
    found, against = (np.count_nonzero(papers != NONE, axis=1) for papers in (rows.positives, rows.negatives))
    row, nth = numbered(np.minimum(oversampled or found, against))
    positives, at = rows.positives[row, nth % found[row]], (row, order[row, nth])
    return Rows(rows.seats[row], positives[:, None], rows.negatives[at][:, None], rows.kinds[at][:, None])


def gathered(seats: Ids, positives: Ids, negatives: Sequence[Ids]) -> Rows:
    """Examples of some seats, with the negatives of each kind one after the other."""
    kinds = np.repeat(np.arange(len(negatives), dtype=np.int8), [papers.shape[1] for papers in negatives])
    return Rows(seats, positives, np.concatenate(negatives, axis=1), np.broadcast_to(kinds, (len(seats), len(kinds))))


def examples_table(block: Block, rows: Rows, kinds: Sequence[str], aspects: Sequence[str] = ()) -> pa.Table:
    """The columns of the table `sampled_examples`, in the order of queries and, of a query, of aspects."""
    places = rows.seats // max(1, len(aspects))
    has_positive, has_negative = (papers != NONE for papers in (rows.positives, rows.negatives))
    positives, negatives = (np.count_nonzero(is_there, axis=1) for is_there in (has_positive, has_negative))
    columns = {
        "query": block.queries[places],
        "number": 1 + np.arange(len(places)) - np.searchsorted(places, places),
        "split": block.splits.take(pa.array(places)),
        "positives": as_lists(rows.positives[has_positive], positives),
        "negatives": as_lists(rows.negatives[has_negative], negatives),
        "negative_kinds": as_lists(pa.array(kinds).take(pa.array(rows.kinds[has_negative])), negatives),
    }
    if aspects:
        columns["aspect"] = pa.array(aspects).take(pa.array(rows.seats % len(aspects)))
    return pa.table(columns)
