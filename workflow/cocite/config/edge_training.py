"""The settings of every engine that trains on edges and negatives, as PyTorch-BigGraph does.

Engines that have them train the same model: the same configuration with another engine means the same loss.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cocite.config.engine import Engine
from cocite.config.entries import Count, Entry, Natural, NonNegative, Positive, ShortFor, inconsistent


class RankingLoss(Entry):
    """Keeps a margin between an edge and each of its negatives, as the literature does."""

    kind: Literal["ranking"]
    """How an edge is compared with its negatives."""
    margin: NonNegative = 0.15
    """How much higher than a negative an edge is to score."""


class LogisticLoss(Entry):
    """Tells each edge from each negative by itself."""

    kind: Literal["logistic"]
    """How an edge is compared with its negatives."""


class SoftmaxLoss(Entry):
    """Picks an edge out among its negatives."""

    kind: Literal["softmax"]
    """How an edge is compared with its negatives."""


EdgeLoss = Annotated[RankingLoss | LogisticLoss | SoftmaxLoss, Field(discriminator="kind"), ShortFor("kind")]


class EdgeTraining(Engine):
    """Trains vectors so that edges score above their negatives (Lerer et al., 2019)."""

    comparator: Literal["dot", "cos"] = "dot"
    """Similarity that edges are scored with."""
    epochs: Count = 20
    """Passes over the edges."""
    lr: Positive = 0.1
    """Learning rate (row-wise Adagrad)."""
    loss: EdgeLoss = RankingLoss(kind="ranking")
    """Loss of an edge and its negatives: a name, or a name and its settings."""
    max_norm: Positive | None = 1.0
    """Largest norm of a vector; longer ones are scaled back. null for no bound."""
    batch_size: Count = 1000
    """Edges in a batch; a multiple of batch_negatives."""
    batch_negatives: Natural = 50
    """Negatives that are taken from the batch, for each edge and side."""
    uniform_negatives: Natural = 50
    """Negatives that are drawn from all papers, for each edge and side."""

    @property
    def remedy(self) -> str:
        """A smaller learning rate."""
        return f"lower lr, which is {self.lr:g}"

    @model_validator(mode="after")
    def _has_negatives(self) -> "EdgeTraining":
        if self.batch_negatives + self.uniform_negatives == 0:
            raise inconsistent(": batch_negatives and uniform_negatives are both 0; one must be more.")
        if self.batch_negatives and self.batch_size % self.batch_negatives:
            raise inconsistent(
                f".batch_size ({self.batch_size}) must be a multiple of batch_negatives ({self.batch_negatives})."
            )
        return self
