"""The sampler of CoCite and SciNCL: positives and hard negatives from bands of the ranked neighbours.

Positives of a query are its neighbours of ranks (k⁺ − c, k⁺], hard negatives those of ranks (k⁻ − h, k⁻], where c is
the number of triplets of a query and h the hard ones among them (CoCite, 2024: h = c = 7; Ostendorff et al., 2022,
"SciNCL": c = 5, h = 2). SciNCL's appendix also has bands that are wider than what is picked from them, and bands that
end with the last neighbour within a distance, wherever it ranks. Easy negatives are none of the k nearest.
"""

from dataclasses import dataclass
from typing import Literal

from cocite.triplets.bands import Ranks, band, pick_from_bands
from cocite.triplets.easy import EasyNegatives, draw_easy
from cocite.triplets.pairing import Negatives, pair
from cocite.triplets.picking import picks
from cocite.triplets.sampled import Block, Sampled

SCHEMA = {
    "required": ["embedding"],
    "properties": {
        "embedding": {
            "description": "Name of the graph embedding whose neighbours are ranked.",
            "type": "string",
        },
        "k_positive": {
            "description": (
                "Last rank of the band of positives, (k_positive − per_query, k_positive]; or [first, "
                "last], two ranks between which (both included) positives are picked at random."
            ),
            "$ref": "#/$defs/band",
        },
        "k_negative": {
            "description": (
                "Last rank of the band of hard negatives, (k_negative − hard, k_negative], where hard is "
                "per_query − easy; or [first, last], as for positives."
            ),
            "$ref": "#/$defs/band",
        },
        "distance_positive": {
            "description": (
                "Instead of k_positive: the band of positives ends with the last neighbour within this "
                "distance, as the metric of the search measures it (cosine: 1 − similarity)."
            ),
            "type": "number",
        },
        "distance_negative": {"description": "Instead of k_negative, likewise.", "type": "number"},
        "per_query": {"$ref": "#/$defs/per_query", "default": 5},
        "easy": {"$ref": "#/$defs/easy", "default": 0},
        "easy_negatives": {
            "description": (
                "Where easy negatives come from. random: all papers but the k neighbours; k-means: "
                "clusters of the embedding that are not the query's own; sorted-random: the farthest of "
                "so many random papers. Never a neighbour."
            ),
            "enum": ["random", "k-means", "sorted-random"],
            "default": "random",
        },
        "clusters": {
            "description": "Clusters, for easy_negatives k-means.",
            "type": "integer",
            "minimum": 2,
            "default": 100,
        },
        "cluster_ranks": {
            "description": (
                "Ranks [first, last] of the clusters to draw from, where 1 is the one nearest to the "
                "query's own, for easy_negatives k-means. Left out, all."
            ),
            "$ref": "#/$defs/ranks",
        },
        "drawn": {
            "description": "Random papers of which the farthest are taken, for easy_negatives sorted-random.",
            "type": "integer",
            "minimum": 1,
            "default": 1000,
        },
        "text": {"$ref": "#/$defs/text", "default": "dropped"},
        "fill": {"$ref": "#/$defs/fill", "default": False},
        "oversample": {"$ref": "#/$defs/oversample", "default": False},
        "partial": {"$ref": "#/$defs/partial", "default": "kept"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Settings(EasyNegatives):
    """How triplets are drawn from ranked neighbours."""

    text: Literal["required", "dropped"] = "dropped"
    """required: neighbours are ranked among those with a text; dropped: among all, as published."""
    k_positive: Ranks | None = None
    """Last rank of the band of positives, or first and last rank to pick positives from."""
    k_negative: Ranks | None = None
    """Last rank of the band of hard negatives, or first and last rank to pick them from."""
    distance_positive: float | None = None
    """Instead of a rank: the band of positives ends with the last neighbour within this distance."""
    distance_negative: float | None = None
    """Instead of a rank: the band of hard negatives ends with the last neighbour within this distance."""


def sample(block: Block, settings: Settings) -> Sampled:
    """Sample from the table `neighbours`; easy negatives other than random ones take `graph_embeddings` as well."""
    positives = picks(len(block.queries), settings.per_query, block.seed, "positives")
    hard = picks(len(block.queries), settings.hard, block.seed, "hard negatives")
    easy = draw_easy(block, settings)
    bands = (
        band("positive", settings.k_positive, settings.distance_positive, settings.per_query),
        band("negative", settings.k_negative, settings.distance_negative, settings.hard),
    )
    is_known = pick_from_bands(
        block, bands, (positives, hard), easy, needed=settings.most_easy, required=settings.requires_text
    )
    return pair(
        block,
        settings,
        positives,
        Negatives(hard=hard, easy=easy, easy_count=settings.easy, fill=settings.fill),
        [("no neighbours", ~is_known)],
        no_positive="no neighbour in the band of positives",
        no_hard="no neighbour in the band of hard negatives",
    )
