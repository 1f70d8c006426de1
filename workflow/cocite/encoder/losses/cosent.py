"""CoSENT (Su, 2022): every positive pair of a batch is to be nearer than every negative one, by cosine."""

from torch import Tensor

from cocite.encoder.batches import Batch
from cocite.encoder.similarities import cosines_of, ranking

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
    """`ranking` of the cosines."""
    near, far = cosines_of(vectors, batch.positives), cosines_of(vectors, batch.negatives)
    return ranking(near, far, temperature=temperature)
