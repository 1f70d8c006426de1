"""CoSENT (Su, 2022): every positive pair of a batch is to be nearer than every negative one, by cosine."""

from torch import Tensor
from torch.nn.functional import cosine_similarity

from cocite.encoder.similarities import ranking

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
    """`ranking` of the cosines."""
    return ranking(cosine_similarity(query, positive), cosine_similarity(query, negative), temperature=temperature)
