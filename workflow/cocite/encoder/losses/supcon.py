"""SupCon (Khosla et al., 2020): each positive of a query against all positives and negatives of the query.

Its equation 2 has the sum over the positives outside of the logarithm, as here.
"""

import torch
from torch import Tensor

from cocite.encoder.batches import Batch
from cocite.encoder.similarities import cosines, cosines_of

SCHEMA = {
    "properties": {
        "temperature": {
            "description": "τ, by which similarities are divided.",
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.05,
        }
    }
}


def loss(vectors: Tensor, batch: Batch, *, temperature: float) -> Tensor:
    """Mean over the positives of −log(exp(s⁺/τ) / (Σ exp(s⁺/τ) + Σ exp(s⁻/τ))), s being cosines.

    The sums run over the positives and the negatives of the same query, those of all its examples in the batch.
    """
    query, pairs = batch.positives[:, 0], torch.cat([batch.positives, batch.negatives])
    documents = cosines(vectors[query], vectors[pairs[:, 1]]) / temperature
    others = query[:, None] != pairs[None, :, 0]
    total = documents.masked_fill(others, -torch.inf).logsumexp(dim=1)
    return (total - cosines_of(vectors, batch.positives) / temperature).mean()
