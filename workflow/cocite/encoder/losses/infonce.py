"""InfoNCE (van den Oord et al., 2018): the own positive against the negatives of the same query."""

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from cocite.encoder.similarities import cosines

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


def loss(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, temperature: float) -> Tensor:
    """Mean cross entropy, over cosines / temperature, of the own positive against the negatives of the same query.

    The documents of other queries are no negatives.
    """
    own = cosine_similarity(query, positive) / temperature
    against = cosines(query, negative) / temperature
    others = queries[:, None] != queries[None, :]
    logits = torch.cat([own[:, None], against.masked_fill(others, -torch.inf)], dim=1)
    return cross_entropy(logits, torch.zeros_like(queries))
