"""AnglE (Li & Li, 2024): CoSENT over the angle of vectors that are taken for complex ones."""

from torch import Tensor

from cocite.encoder.similarities import angular, ranking

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


def loss(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, temperature: float) -> Tensor:
    """`ranking` of |Σ(re, im)| of the complex quotients (see `similarities.angular`)."""
    return ranking(angular(query, positive), angular(query, negative), temperature=temperature)
