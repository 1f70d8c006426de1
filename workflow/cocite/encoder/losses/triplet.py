"""Triplet margin loss (Schroff et al., 2015), as SPECTER has it (Cohan et al., 2020)."""

from torch import Tensor
from torch.nn.functional import pairwise_distance, relu

from cocite.encoder.batches import Batch

SCHEMA = {
    "properties": {
        "margin": {
            "description": "How much farther than the positive the negative is to be.",
            "type": "number",
            "minimum": 0,
            "default": 1.0,
        }
    }
}
EPSILON = 1e-6
"""Added to differences inside the Euclidean norm, as torch's pairwise_distance does."""


def loss(vectors: Tensor, batch: Batch, *, margin: float) -> Tensor:
    """Mean of max(0, ‖q − p‖ − ‖q − n‖ + margin), over each positive with each negative of an example."""
    query, positive, negative = vectors[batch.triplets].unbind(dim=1)
    near = pairwise_distance(query, positive, eps=EPSILON)
    far = pairwise_distance(query, negative, eps=EPSILON)
    return relu(near - far + margin).mean()
