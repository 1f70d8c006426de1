"""Discrete co-citations: the positive is co-cited with the query so many times, negatives are random papers.

The counterpart of sampling from an embedding of the same pairs (CoCite, 2024): only what was counted is near, and of
two papers that were never cited together nothing is known. Negatives are not co-cited with the query at all, as far as
the graph counts.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from pydantic import PositiveInt

from cocite.ground.id_sets import contains, place_of, set_of
from cocite.triplets.drawing import draw, strike
from cocite.triplets.pairing import Pairing, only_easy, pair
from cocite.triplets.picking import offer, picks
from cocite.triplets.sampled import Block, Sampled

SCHEMA = {
    "required": ["graph"],
    "properties": {
        "graph": {"description": "Name of a co-citation graph.", "type": "string"},
        "min_count": {
            "description": "Papers that must cite query and positive together; not below the graph's own min_count.",
            "type": "integer",
            "minimum": 1,
            "default": 1,
        },
        "per_query": {"$ref": "#/$defs/per_query", "default": 5},
        "text": {"$ref": "#/$defs/text", "default": "required"},
        "oversample": {"$ref": "#/$defs/oversample", "default": False},
        "partial": {"$ref": "#/$defs/partial", "default": "kept"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Settings(Pairing):
    """How triplets are drawn from co-citations."""

    min_count: PositiveInt = 1
    """Papers that must cite query and positive together."""


def sample(block: Block, settings: Settings) -> Sampled:
    """Sample from the table `cocitations` of a graph."""
    positives = picks(len(block.queries), settings.per_query, block.seed, "positives")
    easy = draw(block, settings.per_query, "easy negatives")
    queries = set_of(block.queries)
    is_known = np.zeros(len(block.queries), dtype=bool)
    for batch in block.read("cocitations", ["paper", "other", "count"]):
        pairs = tuple(column.to_numpy() for column in batch.columns)
        _pass_on(pairs, queries, block.papers, settings.min_count, settings.requires_text, positives, easy, is_known)
    return pair(
        block,
        settings,
        positives,
        only_easy(block, easy, settings.per_query),
        [("no co-citations", ~is_known)],
        no_positive="no paper co-cited often enough",
    )


@njit(nogil=True, cache=True)
def _pass_on(pairs, queries, listed, min_count, required, positives, easy, is_known):  # type: ignore[no-untyped-def]
    """Tell each query among a pair's papers of the other one."""
    papers, others, counts = pairs
    for row in range(len(papers)):
        for query, paper in ((papers[row], others[row]), (others[row], papers[row])):
            place = place_of(queries, query)
            if place >= 0:
                is_known[place] = True
                strike(easy, place, paper)
                if counts[row] >= min_count and (not required or contains(listed, paper)):
                    offer(positives, place, query, paper, 0, papers[:0])
