"""The baseline `random`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cocite.config.baseline import Baseline

if TYPE_CHECKING:
    from cocite.baselines.steps import Embedding


class RandomVectors(Baseline):
    """A vector from the standard normal distribution for each document: what chance reaches (SPECTER, 2020)."""

    kind: Literal["random"]
    dimension: Annotated[int, Field(ge=1, le=4096)] = 25
    """Length of the vectors, whose mean is zero."""
    is_chance = True

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Draw the vectors from the run's seed, one document after the other."""
        import numpy as np

        from cocite.core.randomness import generator

        random = generator(embedding.seed, "random vectors")
        for batch in embedding.documents():
            yield batch.names, random.standard_normal((len(batch.names), self.dimension), dtype=np.float32)
