"""Papers that share an edge with a query, picked evenly or by the weights of the edges while these stream by.

A weighted pick is the one with the smallest −ln(u) / w, where u is a number from 0 to 1 that follows from the seed, the
query and the paper, and w the weight: a sample without repetition whose first draw is in proportion to the weights
(Efraimidis and Spirakis, 2006, "Weighted random sampling with a reservoir"). So a pick does not depend on the order of
the edges, on their shards or on other queries.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import Ids, are_in, contains, places_of, set_of
from cocite.core.randomness import fractions, priorities
from cocite.triplets.picking import Draws, Picks, draw, offer_at, picks, strike
from cocite.triplets.sampled import Block, table_in

ENDS = {"cocitations": ("paper", "other"), "couplings": ("paper", "other"), "edges": ("source", "target")}
"""The columns of each table of edges that name the papers of an edge."""
HALF = np.uint64(32)
"""Bits of a key that stand for the weight; as many decide between equal weights."""


class Linked(NamedTuple):
    """What queries picked among the papers that share an edge with them."""

    positives: Picks
    easy: Draws
    """Random papers that share none."""
    is_known: NDArray[np.bool_]
    """Whether a query has an edge."""


def pick_linked(block: Block, pick: str, count: int, *, required: bool) -> Linked:
    """Pick `count` papers for each query, and draw as many that share no edge with it."""
    positives = picks(len(block.queries), count, block.seed, "positives")
    easy = draw(block, count, "easy negatives")
    queries, is_known = set_of(block.queries), np.zeros(len(block.queries), dtype=bool)
    for query, paper, weight in _edges(block):
        is_ours = are_in(queries, query) & (query != paper)
        query, paper, weight = query[is_ours], paper[is_ours], weight[is_ours]
        places = places_of(queries, query)
        is_known[places] = True
        keys = _keys(block.seed, pick, query, paper, weight)
        _offer_linked((places, paper, keys), block.papers, required, positives, easy)
    return Linked(positives, easy, is_known)


def _edges(block: Block) -> Iterator[tuple[Ids, Ids, NDArray[np.float64]]]:
    """One end, the other end and the weight of edges, each in both directions."""
    table = table_in(block.sources[0])
    one, other = ENDS[table]
    for batch in block.read(table, _columns(block, table)):
        weight = batch.column(2).to_numpy().astype(np.float64)
        ends = batch[one].to_numpy(), batch[other].to_numpy()
        yield *ends, weight
        yield *ends[::-1], weight


def _columns(block: Block, table: str) -> list[str]:
    """The columns of a table that are read: its ends, and the strength where the graph has one."""
    if table == "edges":
        return [*ENDS[table], "weight"]
    has_strength = "strength" in pq.read_schema(block.sources[0]).names
    return [*ENDS[table], "strength" if has_strength else "count"]


def _keys(seed: int, pick: str, query: Ids, paper: Ids, weight: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Of each edge, a number that is the smaller the sooner it is picked. Bits of positive floats rise as they do."""
    hashed = priorities(seed, "linked positives", query, paper)
    if pick == "evenly":
        return hashed
    with np.errstate(divide="ignore"):
        if pick == "strongest":
            farness = (1 / weight).astype(np.float32).view(np.uint32).astype(np.uint64)
            return (farness << HALF) | (hashed >> HALF)
        return (-np.log1p(-fractions(hashed)) / weight).view(np.uint64)


@njit(nogil=True, cache=True)
def _offer_linked(edges, listed, required, positives, easy):  # type: ignore[no-untyped-def]
    """Offer each query the paper at the other end of an edge, which is no easy negative of it then."""
    places, papers, keys = edges
    for row in range(len(places)):
        strike(easy, places[row], papers[row])
        if not required or contains(listed, papers[row]):
            offer_at(positives, places[row], papers[row], 0, papers[:0], keys[row])
