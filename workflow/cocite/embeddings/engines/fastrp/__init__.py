"""The engine `fastrp`: vectors by random projection of random walks, without training."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, Strict, model_validator

from cocite.config.engine import BYTES_OF_NUMBER, Engine, WeightedEdges
from cocite.config.entries import Count, Entry, NonNegative, inconsistent

if TYPE_CHECKING:
    from cocite.embeddings.trained import Trained


class FastRP(Engine):
    """FastRP (Chen et al., 2019): random walks from each paper, projected at random instead of trained."""

    edges: ClassVar[type[Entry]] = WeightedEdges

    engine: Literal["fastrp"]
    """What trains the graph embedding."""
    hop_weights: Annotated[tuple[NonNegative, ...], Strict(False), Field(min_length=1, max_length=10)] = 5 * (1.0,)
    """Weights of walks of 1, 2, … steps. Even and odd steps together bring a paper near to those it has edges with."""
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
        """A block before and after a step, with a part under way, and the walk's matrix with what it is made from.

        1 million papers with 10 million edges (164 MB) took 1,163 MB with 64 columns.
        """
        columns = min(self.block, self.dimension)
        return 800 + 3 * papers * columns * BYTES_OF_NUMBER / 1e6 + 3 * edges_mb

    def training_minutes(self, edges_mb: float) -> float:
        """By the steps and dimensions that each edge is gone along in."""
        return 20 + 0.00003 * len(self.hop_weights) * self.dimension * edges_mb / self.threads

    def train(self, imported: Path, *, seed: int, state: Path) -> "Trained":
        """Project the walks block by block, and measure once."""
        from cocite.embeddings.engines.fastrp.projection import project_walks

        return project_walks(imported, self, seed=seed, state=state)
