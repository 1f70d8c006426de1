"""SupCon (Khosla et al., 2020): each positive of a query against all positives and negatives of the query.

Its equation 2 has the sum over the positives outside of the logarithm, as here.
"""

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from cocite.encoder.similarities import cosines

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


def loss(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, temperature: float) -> Tensor:
    """Mean over the positives of −log(exp(s⁺/τ) / (Σ exp(s⁺/τ) + Σ exp(s⁻/τ))), s being cosines.

    The sums run over the positives and the negatives of the same query, those of all its triplets in the batch.
    """
    others = queries[:, None] != queries[None, :]
    documents = torch.cat([cosines(query, positive), cosines(query, negative)], dim=1) / temperature
    total = documents.masked_fill(torch.cat([others, others], dim=1), -torch.inf).logsumexp(dim=1)
    return (total - cosine_similarity(query, positive) / temperature).mean()
