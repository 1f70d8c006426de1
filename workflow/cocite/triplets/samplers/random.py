"""Random papers as positives and as negatives: what training makes of triplets that know nothing."""

from dataclasses import dataclass

import numpy as np

from cocite.triplets.drawing import draw, drawn
from cocite.triplets.pairing import Pairing, only_easy, pair
from cocite.triplets.picking import picks
from cocite.triplets.sampled import Block, Sampled

SCHEMA = {"properties": {"per_query": {"$ref": "#/$defs/per_query", "default": 5}}}


@dataclass(frozen=True, kw_only=True)
class Settings(Pairing):
    """How many triplets are drawn."""


def sample(block: Block, settings: Settings) -> Sampled:
    """Sample from nothing but the papers with a text."""
    papers = draw(block, 2 * settings.per_query, "random papers", spare=0).papers
    positives = picks(len(block.queries), settings.per_query, block.seed, "positives")
    # By turns, so that neither has all where there are few papers.
    positives.papers[:] = papers[:, ::2]
    easy = drawn(np.ascontiguousarray(papers[:, 1::2]))
    return pair(block, settings, positives, only_easy(block, easy, settings.per_query))
