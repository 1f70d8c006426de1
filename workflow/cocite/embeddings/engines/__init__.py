"""The engines that train graph embeddings, from the folder that `imported.py` makes.

An engine is a subclass of `config.engine.Engine`, whose fields are its settings. Three are here; a further module in
this folder adds one. Every job imports them all with the configuration; slow imports belong inside `train`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, Strict, model_validator

from cocite.config.engine import BYTES_OF_NUMBER, EdgeTraining, Engine, RepeatedEdges, WeightedEdges
from cocite.config.entries import Count, Entry, GivenPath, Natural, NonNegative, Positive, inconsistent

if TYPE_CHECKING:
    from cocite.embeddings.trained import Trained

TORCH_FIXED_MB = 700  # torch, Numba, a stretch of edges, and the edges of link prediction (measured)
TORCH_SPREAD_MB = 200  # by how much trainings of the same edges differ: 977 and 750 MB for 215,162 papers
TORCH_BYTES_OF_PAPER = 45  # a paper's id while the table is written, and what link prediction keeps of it
TORCH_BYTES_OF_SQUARES = 4
TORCH_BYTES_OF_BATCH_VALUE = 8  # a number of a vector of a batch and of its gradient, in float32


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
        from cocite.embeddings.biggraph_training import train_graph_embedding

        return train_graph_embedding(imported, self, seed=seed, state=state)


class FastRP(Engine):
    """FastRP (Chen et al., 2019): random walks from each paper, projected at random instead of trained."""

    edges: ClassVar[type[Entry]] = WeightedEdges

    engine: Literal["fastrp"]
    """What trains the graph embedding."""
    hop_weights: Annotated[tuple[NonNegative, ...], Strict(False), Field(min_length=1, max_length=10)] = 5 * (1.0,)
    """Weights of walks of 1, 2, … steps. Even and odd steps together place a paper near those it has edges with."""
    beta: Annotated[float, Field(ge=-1, le=1)] = 0.0
    """Power of the degree that the end of a walk counts with; below 0, papers with many edges count less."""
    block: Count = 64
    """Dimensions in memory at a time. A killed run makes its last block again; the vectors are the same with any."""
    threads: Count = 1
    """Cores that share the papers; the vectors are the same with any number."""

    @model_validator(mode="after")
    def _weighs_a_hop(self) -> "FastRP":
        if not any(self.hop_weights):
            raise inconsistent(".hop_weights are all 0; one must be more.")
        return self

    @property
    def cores(self) -> int:
        """A core for each thread."""
        return self.threads

    def training_memory(self, papers: float, edges_mb: float) -> float:
        """A block before and after a step, with a part under way, and the walk's matrix with what it is made from. 1
        million papers with 10 million edges (164 MB) took 1,163 MB with 64 columns."""
        columns = min(self.block, self.dimension)
        return 800 + 3 * papers * columns * BYTES_OF_NUMBER / 1e6 + 3 * edges_mb

    def training_minutes(self, edges_mb: float) -> float:
        """By the steps and dimensions that each edge is gone along in."""
        return 20 + 0.00003 * len(self.hop_weights) * self.dimension * edges_mb / self.threads

    def train(self, imported: Path, *, seed: int, state: Path) -> "Trained":
        """Project the walks block by block, and measure once."""
        from cocite.embeddings.fastrp_projection import project_walks

        return project_walks(imported, self, seed=seed, state=state)


class Torch(EdgeTraining):
    """PyTorch-BigGraph's model and steps in products of matrices, on a CPU or on GPUs."""

    edges: ClassVar[type[Entry]] = WeightedEdges

    engine: Literal["torch"]
    """What trains the graph embedding."""
    threads: Count = 2
    """Cores that train."""
    gpus: Natural = 1
    """GPUs to train on, if there are any; with several, each has its own partitions."""
    memory_mb: Count | None = None
    """Memory that a training may use, MB: of the machine, or of a GPU if it trains there. The papers are split into the
    fewest partitions of which two fit. null trains all papers at once on a CPU, and uses the free memory of a GPU."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of the matrix products. auto is bfloat16 if the device supports it in hardware."""
    storage: Literal["float32", "bfloat16"] = "float32"
    """Number format of the vectors in training. bfloat16 halves their memory."""
    start: GivenPath | None = None
    """A table graph_embeddings of an older release: papers that are in it begin with their vectors there."""
    checkpoint_minutes: Positive = 5.0
    """Time between checkpoints, the most that a kill costs; with several GPUs it costs at most a round."""

    @property
    def cores(self) -> int:
        """A core for each thread."""
        return self.threads

    @property
    def devices(self) -> int:
        """GPUs that a training requests."""
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
        return papers * (self.dimension * (2 if self.storage == "bfloat16" else 4) + TORCH_BYTES_OF_SQUARES) / 1e6

    def overhead_mb(self, papers: float) -> float:
        """Memory of a training on the machine in addition to its vectors, MB."""
        return (
            TORCH_FIXED_MB + (papers * TORCH_BYTES_OF_PAPER + self.values_of_batch * TORCH_BYTES_OF_BATCH_VALUE) / 1e6
        )

    def training_memory(self, papers: float, edges_mb: float) -> float:
        """The vectors with the state of their optimiser, or no more than the bound."""
        overhead = self.overhead_mb(papers)
        whole = overhead + self.vectors_mb(papers) + TORCH_SPREAD_MB
        return whole if self.memory_mb is None else min(whole, max(self.memory_mb, overhead))

    def training_minutes(self, edges_mb: float) -> float:
        """By the passes over the edges."""
        return 30 + 0.0003 * self.epochs * edges_mb / self.threads * self.dimension

    def train(self, imported: Path, *, seed: int, state: Path) -> "Trained":
        """Train on the GPUs there are, or on the CPU; a killed training is resumed."""
        from cocite.embeddings.torch_training import available_devices, train_graph_embedding

        return train_graph_embedding(imported, self, seed=seed, state=state, devices=available_devices(self))
