"""The sampler of SPECTER (Cohan et al., 2020): positives are cited by the query.

Hard negatives are cited by a paper that the query cites, but not by the query itself; easy negatives are random papers
that are neither. Undirected, papers that cite the query are positives as well, and two citations away is whatever two
steps in any direction reach: in the published way papers that cite the query can become its negatives.
"""

from dataclasses import dataclass

from cocite.triplets.adjacency import adjacent, look_two_away
from cocite.triplets.drawing import draw
from cocite.triplets.pairing import Mixing, Negatives, pair
from cocite.triplets.picking import offer_each, picks
from cocite.triplets.sampled import Block, Sampled

SCHEMA = {
    "required": ["graph"],
    "properties": {
        "graph": {"description": "Name of a directed citation graph.", "type": "string"},
        "directed": {
            "description": (
                "Whether only papers that the query cites are positives, as published. If not, those that "
                "cite it are as well, and hard negatives are two citations away in any direction."
            ),
            "type": "boolean",
            "default": True,
        },
        "per_query": {"$ref": "#/$defs/per_query", "default": 5},
        "easy": {"$ref": "#/$defs/easy", "default": 3},
        "text": {"$ref": "#/$defs/text", "default": "required"},
        "fill": {"$ref": "#/$defs/fill", "default": False},
        "oversample": {"$ref": "#/$defs/oversample", "default": False},
        "partial": {"$ref": "#/$defs/partial", "default": "kept"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Settings(Mixing):
    """How triplets are drawn from citations."""

    directed: bool = True
    """Whether only papers that the query cites are positives, not those that cite it."""


def sample(block: Block, settings: Settings) -> Sampled:
    """Sample from the table `edges` of a directed citation graph."""
    required = settings.requires_text
    positives = picks(len(block.queries), settings.per_query, block.seed, "positives")
    hard = picks(len(block.queries), settings.hard, block.seed, "hard negatives")
    easy = draw(block, settings.most_easy, "easy negatives")
    own = adjacent(block, directed=settings.directed)
    offer_each(positives, block.queries, own.starts, own.papers, block.papers, required)
    look_two_away(block, own, hard, easy, required=required, directed=settings.directed)
    return pair(
        block,
        settings,
        positives,
        Negatives(hard=hard, easy=easy, easy_count=settings.easy, fill=settings.fill),
        [("no citations", own.starts[1:] == own.starts[:-1])],
        no_positive="no citation of a paper with a text",
        no_hard="no paper two citations away",
    )
