"""The sampler `neighbours`, and the ways in which it draws easy negatives."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import model_validator

from cocite.config.entries import Count, Ranks, Refers, Whole, inconsistent
from cocite.config.sampler import WITHOUT_VECTORS, EasyNegatives, FarthestNegatives, Mixing, RandomNegatives

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled

Band = tuple[int, int]


class RankedNeighbours(Mixing):
    """The sampler of CoCite and SciNCL: positives and hard negatives from bands of the ranked neighbours.

    Positives of a query are its neighbours of ranks (k⁺ − c, k⁺], hard negatives those of ranks (k⁻ − h, k⁻], where c
    is the number of triplets of a query and h the hard ones among them (CoCite, 2024: h = c = 7; Ostendorff et al.,
    2022, "SciNCL": c = 5, h = 2). SciNCL's appendix also has bands that are wider than what is picked from them, and
    bands that end with the last neighbour within a distance, wherever it ranks. Easy negatives are none of the k
    nearest, unless they are purely random.
    """

    sampler: Literal["neighbours"]
    embedding: Annotated[str, Refers("embeddings", or_in="walks")]
    """Name of the graph embedding, or of the walks, whose neighbours are ranked."""
    k_positive: Count | Ranks | None = None
    """Last rank of the band of positives, (k_positive − per_query, k_positive]; or [first, last], two ranks between
    which (both included) positives are picked at random."""
    k_negative: Count | Ranks | None = None
    """Last rank of the band of hard negatives, (k_negative − hard, k_negative], where hard is per_query − easy; or
    [first, last], as for positives."""
    distance_positive: float | None = None
    """Instead of k_positive: the band of positives ends with the last neighbour within this distance, as the metric
    of the search measures it (cosine: 1 − similarity; walks: minus the logarithm of the score)."""
    distance_negative: float | None = None
    """Instead of k_negative, likewise."""
    easy_negatives: EasyNegatives = RandomNegatives(kind="random")
    """Where easy negatives come from: a name, or a name and its settings. Only those of `pure-random` may be
    neighbours."""
    text_filter: Literal["before", "after"] = "after"
    """before leaves out papers without a text before papers are ranked or picked; after does so afterwards, and so
    leaves fewer triplets."""

    @model_validator(mode="after")
    def _bands_lie_apart(self) -> "RankedNeighbours":
        positives = _band("positive", "per_query", self.k_positive, self.distance_positive, self.per_query)
        if self.hard:
            hard = "per_query − easy"
            negatives = _band("negative", hard, self.k_negative, self.distance_negative, self.hard)
            near, far = (str(list(k) if isinstance(k, tuple) else k) for k in (self.k_positive, self.k_negative))
            if positives and negatives and positives[1] >= negatives[1]:
                raise inconsistent(f".k_positive ({near}) must be below k_negative ({far}).")
            if positives and negatives and negatives[0] <= positives[1]:
                least = f"k_positive + hard negatives ({positives[1]} + {self.hard})"
                raise inconsistent(f".k_negative ({far}) must be at least {least}, or the bands overlap.")
            nearest, farthest = self.distance_positive, self.distance_negative
            if nearest is not None and farthest is not None and nearest >= farthest:
                exceeds = f"({farthest}) must exceed distance_positive ({nearest})"
                raise inconsistent(f".distance_negative {exceeds}, or hard negatives are as near as positives.")
        elif self.k_negative is not None or self.distance_negative is not None:
            raise inconsistent(" has a band of hard negatives, but as many easy negatives as triplets per query.")
        if isinstance(self.easy_negatives, FarthestNegatives) and self.easy_negatives.drawn < self.easy:
            drawn = self.easy_negatives.drawn
            raise inconsistent(f".easy_negatives.drawn ({drawn}) must be at least easy ({self.easy}).")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A band that ends behind the neighbours that are ranked, and easy negatives that need vectors of walks."""
        if self.embedding in config.walks:
            ranking, k = f"walks.{self.embedding}", config.walks[self.embedding].k
            if self.easy_negatives.kind not in WITHOUT_VECTORS:
                needs = f"{key}.easy_negatives ({self.easy_negatives.kind}) needs the vectors of a graph embedding"
                yield f"{needs}, and {ranking} has none; draw them at random."
        else:
            ranking = f"embeddings.{self.embedding}.neighbours"
            k = config.embeddings[self.embedding].neighbours.k
        for kind, given in (("positive", self.k_positive), ("negative", self.k_negative)):
            last = given[1] if isinstance(given, tuple) else given or 0
            if last > k:
                yield f"{key}.k_{kind} ({last}) must not exceed {ranking}.k ({k})."
        if self.easy_negatives.kind != "random" and not self.most_easy:
            yield f"{key}.easy_negatives ({self.easy_negatives.kind}) has no effect if easy is 0 and fill is false."

    def sources(self, name: str, plan: Any) -> list[str]:
        """The neighbours, and the vectors by which easy negatives are chosen."""
        vectors = f"<results>/embeddings/{self.embedding}/graph_embeddings.parquet"
        return super().sources(name, plan) + ([] if self.easy_negatives.kind in WITHOUT_VECTORS else [vectors])

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `neighbours`; easy negatives other than random ones take `graph_embeddings` as well."""
        from cocite.triplets.bands import band, draw_easy, pick_from_bands
        from cocite.triplets.pairing import pair
        from cocite.triplets.picking import picks

        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        hard = picks(len(block.queries), self.hard, block.seed, "hard negatives")
        easy = draw_easy(block, self.easy_negatives, self.most_easy)
        near = band(self.k_positive, self.distance_positive, self.per_query)
        far = band(self.k_negative, self.distance_negative, self.hard)
        checked = 0 if self.easy_negatives.kind == "pure-random" else self.most_easy
        given = block, (near, far), (positives, hard), easy
        is_known = pick_from_bands(*given, needed=checked, required=self.requires_text)
        in_band = "no neighbour in the band of"
        lacking = {"no_positive": f"{in_band} positives", "no_hard": f"{in_band} hard negatives"}
        return pair(block, self, positives, easy, hard, [("no neighbours", ~is_known)], fill=self.fill, **lacking)


def _band(kind: str, picked: str, k: int | Band | None, distance: float | None, count: int) -> Band | None:
    """First and last rank of a band from which `count` are picked; none if it ends with a distance."""
    if (k is None) == (distance is None):
        raise inconsistent(f" needs exactly one of k_{kind} and distance_{kind}.")
    if k is None:
        return None
    if isinstance(k, tuple):
        if k[1] - k[0] + 1 < count:
            raise inconsistent(f".k_{kind} ({list(k)}) must span at least {count} ranks, the number to pick.")
        return k
    if k < count:
        raise inconsistent(f".k_{kind} ({k}) must be at least {picked} ({count}).")
    return k - count + 1, k
