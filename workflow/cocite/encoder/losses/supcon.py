"""The loss `supcon`."""

from typing import Literal

from cocite.config.entries import Positive
from cocite.config.loss import Loss
from cocite.encoder.losses import PairIndices, Tensor, cosines_of, mean_over


class SupCon(Loss):
    """SupCon (Khosla et al., 2020): each positive of a query against all positives and negatives of the query.

    The sum over the positives is outside of the logarithm, as in its equation 2.
    """

    kind: Literal["supcon"]
    temperature: Positive = 0.05
    """τ, by which similarities are divided."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean over the positives of −log(exp(s⁺/τ) / (Σ exp(s⁺/τ) + Σ exp(s⁻/τ))), s being cosines.

        The sums run over the positives and the negatives of the same query, those of all its examples in the batch.
        """
        import torch
        from torch.nn.functional import normalize

        compared_with, documents = torch.cat([batch.positives, batch.negatives]).unbind(dim=1)
        directions = normalize(vectors, dim=1)
        of_documents = directions[documents]

        def of(pairs: Tensor) -> Tensor:
            query = pairs[:, 0]
            similarities = (directions[query] @ of_documents.T) / self.temperature
            total = similarities.masked_fill(query[:, None] != compared_with, -torch.inf).logsumexp(dim=1)
            return total - cosines_of(vectors, pairs) / self.temperature

        return mean_over(batch.positives, len(documents), of)
