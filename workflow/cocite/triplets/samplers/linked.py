"""The sampler `linked`: papers that share an edge with a query, picked evenly or by the weights of the edges.

A weighted pick is the one with the smallest −ln(u) / w, where u is a number from 0 to 1 that follows from the seed, the
query and the paper, and w the weight: a sample without repetition whose first draw is in proportion to the weights
(Efraimidis and Spirakis, 2006, "Weighted random sampling with a reservoir"), whatever the order of the edges.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cocite.config.entries import Refers
from cocite.config.sampler import Pairing

if TYPE_CHECKING:
    from cocite.triplets.picking import Draws, Picks
    from cocite.triplets.sampled import Block, Sampled

ENDS = {"cocitations": ("paper", "other"), "couplings": ("paper", "other"), "edges": ("source", "target")}
"""The columns of each table of edges that name the papers of an edge."""
KEY_BITS = 32
"""Bits of a key that stand for the weight; as many decide between equal weights."""


class LinkedInGraph(Pairing):
    """Positives share an edge with the query in a graph, drawn evenly or by the weights of the edges; negatives are
    random papers that share none.

    What an edge is, and its weight, is the graph's matter: a co-citation and its strength, bibliographic coupling, a
    citation in either direction, or a combination of these.
    """

    sampler: Literal["linked"]
    graph: Annotated[str, Refers("graphs")]
    """Name of the graph."""
    pick: Literal["evenly", "weighted", "strongest"] = "evenly"
    """evenly draws from all papers that share an edge with the query; weighted draws them in proportion to the weight,
    without repetition (Efraimidis and Spirakis, 2006); strongest takes those of the heaviest edges."""

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `cocitations`, `couplings` or `edges` of a graph."""
        from cocite.triplets.pairing import pair

        positives, easy, is_known = self.picks(block)
        reasons = [("no edges", ~is_known)]
        return pair(block, self, positives, easy, reasons=reasons, no_positive="no edge to a paper with a text")

    def picks(self, block: "Block") -> tuple["Picks", "Draws", Any]:
        """What queries pick among the papers that share an edge with them, random others, and which have an edge."""
        import numpy as np

        from cocite.core.id_sets import are_in, places_of, set_of
        from cocite.triplets.picking import draw, offer_ends, picks

        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        easy = draw(block, self.per_query, "easy negatives")
        queries, is_known = set_of(block.queries), np.zeros(len(block.queries), dtype=bool)
        for edge in _edges(block):
            is_ours = are_in(queries, edge[0]) & (edge[0] != edge[1])
            query, paper, weight = (column[is_ours] for column in edge)
            places = places_of(queries, query)
            is_known[places] = True
            keys = self._keys(block.seed, query, paper, weight)
            offer_ends((places, paper, keys), block.papers, self.requires_text, positives, easy)
        return positives, easy, is_known

    def _keys(self, seed: int, query: Any, paper: Any, weight: Any) -> Any:
        """Of each edge, a number that is smaller the sooner it is picked. Bits of positive floats rise as they do."""
        import numpy as np

        from cocite.core.randomness import fractions, priorities

        hashed = priorities(seed, "linked positives", query, paper)
        if self.pick == "evenly":
            return hashed
        with np.errstate(divide="ignore"):
            if self.pick == "strongest":
                farness = (1 / weight).astype(np.float32).view(np.uint32).astype(np.uint64)
                return (farness << np.uint64(KEY_BITS)) | (hashed >> np.uint64(KEY_BITS))
            return (-np.log1p(-fractions(hashed)) / weight).view(np.uint64)


def _edges(block: "Block") -> Iterator[tuple[Any, Any, Any]]:
    """One end, the other end and the weight of edges, each in both directions.

    The weight is the strength of a co-citation or a coupling, or their number if the graph has none.
    """
    import pyarrow.parquet as pq

    from cocite.core.tables.files import table_in

    table = table_in(block.sources[0])
    has_strength = "strength" in pq.read_schema(block.sources[0]).names
    weight = "weight" if table == "edges" else "strength" if has_strength else "count"
    for batch in block.read(table, [*ENDS[table], weight]):
        one, other, weights = (column.to_numpy() for column in batch.columns)
        weights = weights.astype("float64")
        yield one, other, weights
        yield other, one, weights
