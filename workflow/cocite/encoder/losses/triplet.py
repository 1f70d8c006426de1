"""The loss `triplet`."""

from typing import Literal

from cocite.config.entries import NonNegative
from cocite.config.loss import Loss
from cocite.encoder.losses import PairIndices, Tensor

EPSILON = 1e-6
"""Added to differences inside the Euclidean norm, as torch's pairwise_distance does."""


class TripletMargin(Loss):
    """Triplet margin loss (Schroff et al., 2015), as SPECTER has it (Cohan et al., 2020)."""

    kind: Literal["triplet"]
    margin: NonNegative = 1.0
    """How much farther than the positive the negative is to be."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean of max(0, ‖q − p‖ − ‖q − n‖ + margin), over each positive with each negative of an example."""
        from torch.nn.functional import pairwise_distance, relu

        query, positive, negative = vectors[batch.triplets].unbind(dim=1)
        near = pairwise_distance(query, positive, eps=EPSILON)
        far = pairwise_distance(query, negative, eps=EPSILON)
        return relu(near - far + self.margin).mean()
