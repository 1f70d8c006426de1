"""The engine `biggraph`: a training with PyTorch-BigGraph that can be repeated, and its own import."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from cocite.config.engine import Engine
from cocite.config.entries import Count, Entry, Natural, NonNegative, Positive, ShortFor, inconsistent

if TYPE_CHECKING:
    from cocite.embeddings.vectors import Trained


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


class BigGraph(Engine):
    """PyTorch-BigGraph (Lerer et al., 2019), with vectors in partitions and negatives from each batch."""

    engine: Literal["biggraph"] = "biggraph"
    """What trains the graph embedding."""
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
    chunks: Count = 1
    """Pieces that an epoch's edges are loaded in; a checkpoint is written after each."""
    workers: Count = 1
    """Processes that train at once without locks; with more than one, two runs differ slightly."""

    @model_validator(mode="after")
    def _has_negatives(self) -> "BigGraph":
        if self.batch_negatives + self.uniform_negatives == 0:
            raise inconsistent(": batch_negatives and uniform_negatives are both 0; one must be more.")
        if self.batch_negatives and self.batch_size % self.batch_negatives:
            raise inconsistent(
                f".batch_size ({self.batch_size}) must be a multiple of batch_negatives ({self.batch_negatives})."
            )
        return self

    @property
    def threads(self) -> int:
        """A core for each process."""
        return self.workers

    def memory_mb(self, vectors: float, edges: float) -> float:
        """The vectors with the state of their optimiser, and the edges of a chunk."""
        return 1000 + 3 * vectors + 15 * edges / self.chunks

    def minutes(self, edges: float) -> float:
        """By the passes over the edges."""
        return 30 + 0.002 * self.epochs * edges / self.workers * self.dimension

    def train(self, imported: Path, *, seed: int, state: Path) -> "Trained":
        """Train with PyTorch-BigGraph, and resume from the last chunk."""
        from cocite.embeddings.engines.biggraph.training import train_graph_embedding

        return train_graph_embedding(imported, self, seed=seed, state=state)
