"""The sampler `linked`."""

from typing import TYPE_CHECKING, Annotated, Literal

from cocite.config.entries import Refers
from cocite.config.sampler import Pairing

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


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
        from cocite.triplets.linked import pick_linked
        from cocite.triplets.pairing import pair

        found = pick_linked(block, self.pick, self.per_query, required=self.requires_text)
        return pair(
            block,
            self,
            found.positives,
            found.easy,
            reasons=[("no edges", ~found.is_known)],
            no_positive="no edge to a paper with a text",
        )
