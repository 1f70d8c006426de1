"""Multiple negatives ranking (Henderson et al., 2017): the own positive against all documents of the batch."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from cocite.encoder.similarities import cosines

SCHEMA = {
    "properties": {
        "temperature": {
            "description": "τ, by which similarities are multiplied.",
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 20.0,
        },
        "sampled_negatives": {
            "description": (
                "Whether the negatives of the triplets count, beside the positives of a batch's other queries."
            ),
            "type": "boolean",
            "default": True,
        },
    }
}


def loss(
    query: Tensor,
    positive: Tensor,
    negative: Tensor,
    queries: Tensor,
    *,
    temperature: float,
    sampled_negatives: bool,
) -> Tensor:
    """Mean cross entropy, over cosines × temperature, of the own positive against all documents of the batch.

    Those are the positives of other queries and, unless `sampled_negatives` is false, the negatives of all triplets.
    Further positives of the same query are left out: they would be false negatives, and many where the triplets of a
    query stay together. A batch without them gives the loss as published.
    """
    own = torch.arange(len(queries), device=queries.device)
    further = (queries[:, None] == queries[None, :]) & (own[:, None] != own[None, :])
    logits = cosines(query, positive).masked_fill(further, -torch.inf)
    if sampled_negatives:
        logits = torch.cat([logits, cosines(query, negative)], dim=1)
    return cross_entropy(temperature * logits, own)
