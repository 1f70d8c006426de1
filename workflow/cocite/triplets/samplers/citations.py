"""Samplers of a directed citation graph: `citations`, `undirected` and `aspects`."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import model_validator

from cocite.config.entries import Natural, Refers, inconsistent
from cocite.config.graphs import INTENTS, MISCELLANEOUS
from cocite.config.sampler import Gathering, Mixing

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class CitedPapers(Mixing):
    """The sampler of SPECTER (Cohan et al., 2020): positives are cited by the query.

    Hard negatives are cited by a paper that the query cites, but not by the query itself; easy negatives are random
    papers that are neither. Undirected, papers that cite the query are positives as well, and two citations away is
    whatever two steps in any direction reach: in the published way papers that cite the query can become its
    negatives.
    """

    needs_citations = True
    sampler: Literal["citations"]
    graph: Annotated[str, Refers("graphs")]
    """Name of a directed citation graph."""
    directed: bool = True
    """Whether only papers that the query cites are positives, as published. If not, those that cite it are as well, and
    hard negatives are two citations away in any direction."""
    easy: Natural = 3
    """Triplets of a query whose negative is an easy one; the others have hard negatives."""

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
        reasons = [("no citations", links.starts[1:] == links.starts[:-1])]
        lacking = {"no_positive": "no citation of a paper with a text", "no_hard": "no paper two citations away"}
        return pair(block, self, positives, easy, hard, reasons, fill=self.fill, **lacking)


class LinkedPapers(Gathering):
    """The sampler of SPECTER over citations in both directions, as SciAspect has it: a query with several positives
    and several negatives.

    Positives are cited by the query or cite it. Hard negatives are cited by a paper that the query cites, and are not
    linked with the query either way; easy negatives are random papers that are neither.
    """

    numbers_of_kinds = (("two-away", "hard"), ("easy", "easy"))
    sampler: Literal["undirected"]
    hard: Natural = 2
    """Hard negatives of a query."""

    def sample(self, block: "Block") -> "Sampled":
        """Gather examples from the table `edges` of a directed citation graph."""
        from cocite.triplets.links import gather

        return gather(block, self, two_away=self.hard)


class AspectOfCitations(Gathering):
    """The sampler of SciAspect: examples of each aspect, which is the intent of the citations between two papers.

    Positives are linked with the query by the aspect: one of the two cites the other with that intent. Hard negatives
    are linked with the query by another aspect and not by that one (L1), or are two citations away: cited by a paper
    that the query cites, with another intent and not with that one, and not linked with the query (L2). Easy negatives
    are random papers that are neither linked with the query nor two citations away.
    """

    numbers_of_kinds = (("linked", "linked"), ("two-away", "two_away"), ("easy", "easy"))
    sampler: Literal["aspects"]
    linked: Natural = 10
    """Hard negatives of an example that are linked with the query by another aspect."""
    two_away: Natural = 0
    """Hard negatives of an example that are two citations away."""
    two_away_by: Literal["another", "any"] = "another"
    """Whether those two citations away are reached by another aspect than that of the example, or by any."""
    complete: bool = True
    """Whether a query needs a positive in each aspect; if not, it has examples of those aspects in which it has one."""
    miscellaneous: bool = False
    """Whether links without an intent are a fourth aspect, which has easy negatives only."""

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects that examples have."""
        return (*INTENTS, MISCELLANEOUS) if self.miscellaneous else INTENTS

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> "AspectOfCitations":
        if self.miscellaneous and not self.easy:
            raise inconsistent(".miscellaneous needs easy negatives, its only ones; easy is 0.")
        if self.two_away_by == "any" and not self.two_away:
            raise inconsistent(".two_away_by has no effect where two_away is 0.")
        return self

    def sample(self, block: "Block") -> "Sampled":
        """Gather examples from the table `edges` of a directed citation graph.

        Raises `InputError` if none of its citations has an intent.
        """
        from cocite.triplets.links import gather

        any_aspect = self.two_away_by == "any"
        return gather(
            block, self, linked=self.linked, two_away=self.two_away, any_aspect=any_aspect, complete=self.complete
        )
