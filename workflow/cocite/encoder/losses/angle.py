"""AnglE (Li & Li, 2024): CoSENT over the angle of vectors that are taken for complex ones."""

from torch import Tensor

from cocite.encoder.batches import Batch
from cocite.encoder.similarities import angular_of, ranking

SCHEMA = {
    "properties": {
        "temperature": {
            "description": "τ, by which similarities are multiplied.",
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 20.0,
        }
    }
}


def loss(vectors: Tensor, batch: Batch, *, temperature: float) -> Tensor:
    """`ranking` of |Σ(re, im)| of the complex quotients (see `similarities.angular_of`)."""
    near, far = angular_of(vectors, batch.positives), angular_of(vectors, batch.negatives)
    return ranking(near, far, temperature=temperature)
