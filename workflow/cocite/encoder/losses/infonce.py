"""The loss `infonce`."""

from typing import ClassVar, Literal

from cocite.config.entries import Positive
from cocite.config.loss import Loss
from cocite.encoder.losses import PairIndices, Tensor, cosines_of, mean_over


class InfoNce(Loss):
    """InfoNCE (van den Oord et al., 2018): the own positive against the negatives of the same query."""

    together: ClassVar[int] = 4
    kind: Literal["infonce"]
    temperature: Positive = 0.1
    """τ, by which similarities are divided."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean cross entropy, over cosines / temperature, of the own positive against the negatives of its query."""
        import torch
        from torch.nn.functional import cross_entropy, normalize

        negative_of, negatives = batch.negatives.unbind(dim=1)
        directions = normalize(vectors, dim=1)
        of_negatives = directions[negatives]

        def of(pairs: Tensor) -> Tensor:
            query = pairs[:, 0]
            others = query[:, None] != negative_of
            against = (directions[query] @ of_negatives.T).masked_fill(others, -torch.inf)
            logits = torch.cat([cosines_of(vectors, pairs)[:, None], against], dim=1) / self.temperature
            return cross_entropy(logits, torch.zeros_like(query), reduction="none")

        return mean_over(batch.positives, len(negatives), of)
