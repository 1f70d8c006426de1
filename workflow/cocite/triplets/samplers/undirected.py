"""The sampler `undirected`."""

from typing import TYPE_CHECKING, Literal

from cocite.config.entries import Natural
from cocite.config.sampler import Gathering

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class LinkedPapers(Gathering):
    """The sampler of SPECTER over citations in both directions, as SciAspect has it: a query with several positives
    and several negatives.

    Positives are cited by the query or cite it. Hard negatives are cited by a paper that the query cites, and are not
    linked with the query either way; easy negatives are random papers that are neither.
    """

    sampler: Literal["undirected"]
    hard: Natural = 2
    """Hard negatives of a query."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of negatives that examples have."""
        return tuple(kind for kind, count in (("two-away", self.hard), ("easy", self.easy)) if count)

    def sample(self, block: "Block") -> "Sampled":
        """Gather examples from the table `edges` of a directed citation graph."""
        from cocite.triplets.links import gather

        return gather(block, self, two_away=self.hard)
