"""The engine `biggraph`: a training with PyTorch-BigGraph that can be repeated, and its own import."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from cocite.config.engine import EdgeTraining, RepeatedEdges
from cocite.config.entries import Count, Entry

if TYPE_CHECKING:
    from cocite.embeddings.trained import Trained


class BigGraph(EdgeTraining):
    """PyTorch-BigGraph (Lerer et al., 2019), with vectors in partitions and negatives from each batch."""

    edges: ClassVar[type[Entry]] = RepeatedEdges

    engine: Literal["biggraph"] = "biggraph"
    """What trains the graph embedding."""
    chunks: Count = 1
    """Pieces that an epoch's edges are loaded in; a checkpoint is written after each."""
    workers: Count = 1
    """Processes that train at once without locks; with more than one, two runs differ slightly."""

    @property
    def cores(self) -> int:
        """A core for each process."""
        return self.workers

    def training_memory(self, papers: float, edges_mb: float) -> float:
        """The vectors with the state of their optimiser, and the edges of a chunk."""
        return super().training_memory(papers, edges_mb / self.chunks)

    def training_minutes(self, edges_mb: float) -> float:
        """By the passes over the edges."""
        return 30 + 0.002 * self.epochs * edges_mb / self.workers * self.dimension

    def train(self, imported: Path, *, seed: int, state: Path) -> "Trained":
        """Train with PyTorch-BigGraph, and resume from the last chunk."""
        from cocite.embeddings.engines.biggraph.biggraph_training import train_graph_embedding

        return train_graph_embedding(imported, self, seed=seed, state=state)
