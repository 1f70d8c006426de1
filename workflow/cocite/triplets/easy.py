"""Easy negatives: papers at random, papers of other clusters, or the farthest of some random ones.

The latter two are in SciNCL's appendix (Ostendorff et al., 2022; both did worse than random ones). They take the graph
embedding that neighbours were searched in, and compare by cosine, whatever the metric of the search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveInt

from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids
from cocite.ground.randomness import priorities
from cocite.triplets.clusters import draw_from_clusters, find_clusters
from cocite.triplets.drawing import SPARE, Draws, draw, drawn
from cocite.triplets.farthest import draw_farthest
from cocite.triplets.pairing import Mixing
from cocite.triplets.picking import NONE
from cocite.triplets.sampled import Block
from cocite.triplets.vectors import Keys, Vectors, known_vectors, query_vectors


@dataclass(frozen=True, kw_only=True)
class EasyNegatives(Mixing):
    """Which easy negatives are drawn."""

    easy_negatives: Literal["random", "k-means", "sorted-random"] = "random"
    """How they are drawn."""
    clusters: Annotated[int, Field(ge=2)] = 100
    """k-means: clusters of the graph embedding."""
    cluster_ranks: tuple[PositiveInt, PositiveInt] | None = None
    """k-means: first and last of the other clusters, from the nearest, to draw from; left out, all of them."""
    drawn: PositiveInt = 1000
    """sorted-random: papers drawn for each query, of which the farthest are taken."""


def draw_easy(block: Block, settings: EasyNegatives) -> Draws:
    """Draw candidates of easy negatives for each query, in the order in which they are preferred."""
    if settings.easy_negatives == "random" or settings.most_easy == 0:
        return draw(block, settings.most_easy, "easy negatives")
    papers = np.full((len(block.queries), settings.most_easy + SPARE), NONE, dtype=np.int64)
    choose = _way(block, settings, papers.shape[1])
    for places, vectors in query_vectors(block):
        papers[places] = choose(priorities(block.seed, "easy negatives", block.queries[places]), vectors)
    papers[papers == block.queries[:, None]] = NONE
    return drawn(papers)


def _way(block: Block, settings: EasyNegatives, width: int) -> Callable[[Keys, Vectors], Ids]:
    """What draws `width` papers for queries of some hashes and vectors."""
    known = known_vectors(block)
    if settings.easy_negatives == "sorted-random":
        return lambda keys, vectors: draw_farthest(known, keys, vectors, drawn=settings.drawn, width=width)
    if len(known.ids) < settings.clusters:
        raise InputError(
            f"Setting clusters is {settings.clusters}, but only {len(known.ids)} papers with a text have a vector."
        )
    clusters = find_clusters(known, settings.clusters, block.seed)
    ranks = settings.cluster_ranks or (1, settings.clusters - 1)
    return lambda keys, vectors: draw_from_clusters(clusters, keys, vectors, ranks=ranks, width=width)
