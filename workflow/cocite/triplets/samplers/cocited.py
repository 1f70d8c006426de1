"""The sampler `cocited`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import model_validator

from cocite.config.entries import Count, Natural, Refers, Whole, inconsistent
from cocite.config.sampler import Pairing

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class CocitedPapers(Pairing):
    """Discrete co-citations: the positive is co-cited with the query so many times, negatives are random papers.

    The counterpart of sampling from an embedding of the same pairs (CoCite, 2024): only what was counted is near, and
    of two papers that were never cited together nothing is known. Easy negatives are not co-cited with the query at
    all, as far as the graph counts; hard ones are the least co-cited.
    """

    sampler: Literal["cocited"]
    graph: Annotated[str, Refers("graphs")]
    """Name of a co-citation graph. With one of sentences, query and positive are cited in one sentence: doc2doc, as
    Parisot and Zavrel (2022) published it."""
    min_count: Count = 1
    """Papers, or sentences, that must cite query and positive together; not below the graph's own min_count."""
    hard: Natural = 0
    """Triplets of a query whose negative is one of the papers least co-cited with it, and less often than min_count;
    easy negatives stand in for those that it lacks, if it has some."""

    @model_validator(mode="after")
    def _has_room_for_hard_ones(self) -> "CocitedPapers":
        if self.hard > self.per_query:
            raise inconsistent(f".hard ({self.hard}) must not exceed per_query ({self.per_query}).")
        if self.hard and self.min_count < 2:
            less = "hard negatives are co-cited less often than positives, and at least once"
            raise inconsistent(f".hard needs min_count of at least 2: {less}.")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """Another graph, or one that lacks what is asked for."""
        graph = config.graphs[self.graph]
        if graph.signal not in ("cocitation", "sentence-cocitation"):
            yield f"{key}.graph: {self.graph!r} is not a co-citation graph."
        elif self.min_count < graph.min_count:
            of_graph = f"graphs.{self.graph}.min_count ({graph.min_count})"
            yield f"{key}.min_count ({self.min_count}) must not be below {of_graph}: what is rarer is not in the graph."

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `cocitations` of a graph."""
        import numpy as np

        from cocite.core.id_sets import set_of
        from cocite.triplets.pairing import pair
        from cocite.triplets.picking import draw, offer_cocited, picks

        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        hard = picks(len(block.queries), self.hard, block.seed, "hard negatives")
        easy = draw(block, self.per_query, "easy negatives")
        queries = set_of(block.queries)
        is_known = np.zeros(len(block.queries), dtype=bool)
        for batch in block.read("cocitations", ["paper", "other", "count"]):
            pairs = tuple(column.to_numpy() for column in batch.columns)
            offered = positives, hard, easy
            offer_cocited(pairs, queries, block.papers, self.min_count, self.requires_text, offered, is_known)
        reasons, few = [("no co-citations", ~is_known)], "no paper co-cited often enough"
        return pair(block, self, positives, easy, hard, reasons, fill=True, no_positive=few)
