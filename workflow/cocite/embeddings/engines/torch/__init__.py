"""The engine `torch`: PyTorch-BigGraph's model, trained at the speed of the hardware."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from cocite.config.engine import EdgeTraining, WeightedEdges
from cocite.config.entries import Count, Entry, GivenPath, Natural, Positive

if TYPE_CHECKING:
    from cocite.embeddings.trained import Trained

FIXED_MB = 700
"""torch, Numba, a stretch of edges, and the edges of link prediction (measured)."""
BYTES_OF_PAPER = 45
"""A paper's id while the table is written, and what link prediction keeps of it."""
BYTES_OF_SQUARES = 4
BYTES_OF_BATCH_VALUE = 8
"""A number of a vector of a batch and of its gradient, in float32."""


class Torch(EdgeTraining):
    """PyTorch-BigGraph's model and steps in products of matrices, on a CPU or on GPUs."""

    edges: ClassVar[type[Entry]] = WeightedEdges

    engine: Literal["torch"]
    """What trains the graph embedding."""
    threads: Count = 2
    """Cores that train."""
    gpus: Natural = 1
    """GPUs that train, where there are any; with several, each has partitions of its own."""
    memory_mb: Count | None = None
    """Memory that a training may take, MB: of the machine, or of a GPU where it trains there. The papers are cut into
    as many partitions as it takes for two of them to fit. null takes all papers at once on a CPU, and what is free on a
    GPU."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of the matrix products. auto is bfloat16 where the device has units for it."""
    storage: Literal["float32", "bfloat16"] = "float32"
    """Number format of the vectors in training. bfloat16 halves their memory."""
    start: GivenPath | None = None
    """A table graph_embeddings of an older release: papers that are in it begin with their vectors there."""
    checkpoint_minutes: Positive = 5.0
    """Time between checkpoints, which is what a kill costs at most; with several GPUs it costs a round at most."""

    @property
    def cores(self) -> int:
        """Cores that a training uses."""
        return self.threads

    @property
    def devices(self) -> int:
        """GPUs that a training asks for."""
        return self.gpus

    @property
    def files(self) -> tuple[Path, ...]:
        """The older table."""
        return () if self.start is None else (Path(self.start),)

    @property
    def edges_in_chunk(self) -> int:
        """Edges of a chunk, as in PyTorch-BigGraph."""
        return self.batch_negatives or min(self.uniform_negatives, self.batch_size)

    @property
    def chunks_in_batch(self) -> int:
        """Chunks of a batch."""
        return max(1, self.batch_size // self.edges_in_chunk)

    @property
    def values_of_batch(self) -> int:
        """Numbers of the vectors of a batch."""
        return 2 * self.chunks_in_batch * (self.edges_in_chunk + self.uniform_negatives) * self.dimension

    def vectors_mb(self, papers: float) -> float:
        """Size of all vectors with the state of their optimiser, MB."""
        return papers * (self.dimension * (2 if self.storage == "bfloat16" else 4) + BYTES_OF_SQUARES) / 1e6

    def overhead_mb(self, papers: float) -> float:
        """Memory that a training takes on the machine beside its vectors, MB."""
        return FIXED_MB + (papers * BYTES_OF_PAPER + self.values_of_batch * BYTES_OF_BATCH_VALUE) / 1e6

    def training_memory(self, papers: float, edges_mb: float) -> float:
        """The vectors with the state of their optimiser, or no more than the bound."""
        overhead = self.overhead_mb(papers)
        whole = overhead + self.vectors_mb(papers)
        return whole if self.memory_mb is None else min(whole, max(self.memory_mb, overhead))

    def training_minutes(self, edges_mb: float) -> float:
        """By the passes over the edges."""
        return 30 + 0.0003 * self.epochs * edges_mb / self.threads * self.dimension

    def train(self, imported: Path, *, seed: int, state: Path) -> "Trained":
        """Train on the GPUs there are, or on the CPU; a killed training is resumed."""
        from cocite.embeddings.engines.torch.torch_training import available_devices, train_graph_embedding

        return train_graph_embedding(imported, self, seed=seed, state=state, devices=available_devices(self))
