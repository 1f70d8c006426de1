"""The loss `distillation`."""

from typing import Annotated, ClassVar, Literal

from cocite.config.entries import Refers
from cocite.config.loss import Loss
from cocite.encoder.losses import PairIndices, Tensor, mean_over


class Distillation(Loss):
    """Student and teacher (Ostendorff et al., 2022): texts become as similar as their papers are in a graph
    embedding."""

    kind: Literal["distillation"]
    together: ClassVar[int] = 1
    needs_negatives: ClassVar[bool] = False
    input_kind = "teacher"
    embedding: Annotated[str, Refers("embeddings")]
    """Name of the graph embedding that teaches. Papers without a vector in it are left out of the pairs, and
    counted."""

    @property
    def teacher(self) -> str:
        """The graph embedding that it asks for vectors."""
        return self.embedding

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean of (cos(t_i, t_j) − cos(g_i, g_j))² over all pairs of different documents i and j of the batch.

        t are the vectors of the texts, and g those of the teacher.
        """
        import torch
        from torch.nn.functional import normalize

        seen = normalize(vectors[batch.places], dim=1)
        taught = normalize(batch.taught.to(seen.dtype), dim=1)
        numbers = torch.arange(len(seen), device=seen.device)

        def of(rows: Tensor) -> Tensor:
            differences = seen[rows] @ seen.T - taught[rows] @ taught.T
            of_others = differences.masked_fill(rows[:, None] == numbers, 0)
            return of_others.square().sum(dim=1) / (len(seen) - 1)

        return mean_over(numbers, len(seen), of)
