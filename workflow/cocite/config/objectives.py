"""The objectives of a training: what is learned, from what, and how much it counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict

from cocite.config.entries import Entry, Refers, ShortFor, filled
from cocite.config.loss import Loss
from cocite.config.plugins import one_of

LOSSES = "cocite.encoder.losses"

if TYPE_CHECKING:
    AnyLoss = Loss
else:
    AnyLoss = one_of(LOSSES, "kind")

Kinds = Annotated[
    tuple[Literal["linked", "two-away", "easy", "elsewhere", "mined"], ...], Strict(False), AfterValidator(filled)
]


class Term(Entry):
    """What a model learns: one of the losses that are added up, or, with a set of its own, one of several tasks."""

    triplets: Annotated[str | None, Refers("triplets")] = None
    """Name of the set that it learns from, with its own validation set, that of the set's group. Left out, that of the
    model; with one, each objective has one, and they are mixed as the model's mixing says."""
    loss: Annotated[AnyLoss, ShortFor("kind")]
    """How examples are compared: a name, or a name and its settings."""
    one_per_query: bool = False
    """Of a set of its own, whether a round through it has one example of each query, and the next round another one."""
    space: Literal["encoder", "aspects"] = "encoder"
    """Where: the vectors of the encoder, or those that a linear map of each aspect makes of them."""
    negatives: Kinds | None = None
    """Kinds of negatives that it sees; an example without any of them does not count in it. Left out, all."""
    weight: Annotated[float | None, Field(ge=0, le=1)] = None
    """Of losses that are added up, what this one is multiplied by; left out, 1. The α of a hybrid is the weight of one
    loss, and 1 − α that of the other; with 0, it is not computed. Of objectives with sets of their own, the share of
    the examples that come from this set; the shares sum to 1, and left out, they are equal."""

    @property
    def comparing(self) -> tuple[Any, Any, Any]:
        """What two objectives have in common whose examples a loss compares with one another."""
        return self.loss, self.space, self.negatives


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A loss that a training computes, with what it compares."""

    loss: Loss
    space: Literal["encoder", "aspects"]
    negatives: tuple[str, ...] | None
    """Kinds of negatives that it sees; None for all."""
    weight: float = 1.0
    """What it is multiplied by."""
    objectives: frozenset[int] | None = None
    """Numbers of the objectives whose examples it compares with one another; None for all."""


def faults_of_terms(terms: Sequence[Term]) -> Iterator[str]:
    """What has no effect on losses that compare no examples; the sentences follow the key of the entry."""
    for number, term in enumerate(terms):
        if term.loss.input_kind != "examples":
            at, kind = f".objectives[{number}]", term.loss.kind
            if term.space != "encoder":
                yield f"{at}.space ({term.space}) has no effect on the loss {kind}, which sees documents of no aspect."
            if term.negatives is not None:
                yield f"{at}.negatives has no effect on the loss {kind}, which sees all documents."
    if len({term.loss for term in terms if term.loss.input_kind == "masks"}) > 1:
        yield ".objectives mask two shares of the tokens; give each mlm the same share."
