"""InfoNCE (van den Oord et al., 2018): the own positive against the negatives of the same query."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from cocite.encoder.batches import Batch
from cocite.encoder.similarities import cosines, cosines_of

SCHEMA = {
    "properties": {
        "temperature": {
            "description": "τ, by which similarities are divided.",
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.1,
        }
    }
}
TOGETHER = 4


def loss(vectors: Tensor, batch: Batch, *, temperature: float) -> Tensor:
    """Mean cross entropy, over cosines / temperature, of the own positive against the negatives of the same query.

    The documents of other queries are no negatives.
    """
    query, negative_of = batch.positives[:, 0], batch.negatives[:, 0]
    own = cosines_of(vectors, batch.positives)
    against = cosines(vectors[query], vectors[batch.negatives[:, 1]])
    others = query[:, None] != negative_of[None, :]
    logits = torch.cat([own[:, None], against.masked_fill(others, -torch.inf)], dim=1) / temperature
    return cross_entropy(logits, torch.zeros_like(query))
