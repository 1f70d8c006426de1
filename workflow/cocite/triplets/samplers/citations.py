"""The sampler `citations`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from cocite.config.entries import Natural, Refers, Whole
from cocite.config.sampler import Mixing

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class CitedPapers(Mixing):
    """The sampler of SPECTER (Cohan et al., 2020): positives are cited by the query.

    Hard negatives are cited by a paper that the query cites, but not by the query itself; easy negatives are random
    papers that are neither. Undirected, papers that cite the query are positives as well, and two citations away is
    whatever two steps in any direction reach: in the published way papers that cite the query can become its
    negatives.
    """

    sampler: Literal["citations"]
    graph: Annotated[str, Refers("graphs")]
    """Name of a directed citation graph."""
    directed: bool = True
    """Whether only papers that the query cites are positives, as published. If not, those that cite it are as well, and
    hard negatives are two citations away in any direction."""
    easy: Natural = 3
    """Triplets of a query whose negative is an easy one; the others have hard negatives."""

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """Another graph."""
        if not getattr(config.graphs[self.graph], "directed", False):
            yield f"{key}.graph: {self.graph!r} is not a directed citation graph."

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `edges` of a directed citation graph."""
        from cocite.triplets.links import links_of, pick_linked, pick_two_away, seats_of_queries
        from cocite.triplets.pairing import pair
        from cocite.triplets.picking import draw

        easy = draw(block, self.most_easy, "easy negatives")
        links, seats, required = links_of(block, directed=self.directed), seats_of_queries(block), self.requires_text
        positives = pick_linked(block, links, seats, self.per_query, "positives", required=required)
        any_way = not self.directed
        hard = pick_two_away(block, links, seats, self.hard, "hard negatives", easy, any_way=any_way, required=required)
        return pair(
            block,
            self,
            positives,
            easy,
            hard,
            [("no citations", links.starts[1:] == links.starts[:-1])],
            fill=self.fill,
            no_positive="no citation of a paper with a text",
            no_hard="no paper two citations away",
        )
