"""The sampler `aspects`."""

from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from cocite.config.entries import Natural, inconsistent
from cocite.config.graphs import INTENTS, MISCELLANEOUS
from cocite.config.sampler import Gathering

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class AspectOfCitations(Gathering):
    """The sampler of SciAspect: examples of each aspect, which is the intent of the citations between two papers.

    Positives are linked with the query by the aspect: one of the two cites the other with that intent. Hard negatives
    are linked with the query by another aspect and not by that one (L1), or are two citations away: cited by a paper
    that the query cites, with another intent and not with that one, and not linked with the query (L2). Easy negatives
    are random papers that are neither linked with the query nor two citations away.
    """

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
    def kinds(self) -> tuple[str, ...]:
        """The kinds of negatives that examples have."""
        counts = {"linked": self.linked, "two-away": self.two_away, "easy": self.easy}
        return tuple(kind for kind, count in counts.items() if count)

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

        Raises `InputError` where none of its citations has an intent.
        """
        from cocite.triplets.links import gather

        any_aspect = self.two_away_by == "any"
        return gather(
            block, self, linked=self.linked, two_away=self.two_away, any_aspect=any_aspect, complete=self.complete
        )
