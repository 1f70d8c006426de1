"""Multiple negatives ranking (Henderson et al., 2017): the own positive against all documents of the batch."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from cocite.encoder.batches import Batch
from cocite.encoder.similarities import cosines, cosines_of

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


def loss(vectors: Tensor, batch: Batch, *, temperature: float, sampled_negatives: bool) -> Tensor:
    """Mean cross entropy, over cosines × temperature, of the own positive against the documents of the batch.

    Those are the positives of other queries and, unless `sampled_negatives` is false, the negatives of all examples. A
    document counts as often as it is drawn. Known to be no negatives are the query itself and its positives in the
    batch, wherever they stand: they are left out. A batch without them gives the loss as published.
    """
    query, positive = batch.positives.unbind(dim=1)
    candidates = torch.cat([positive, batch.negatives[:, 1]]) if sampled_negatives else positive
    logits = cosines(vectors[query], vectors[candidates])
    against = logits.masked_fill(_related(batch, len(vectors))[query][:, candidates], -torch.inf)
    own = cosines_of(vectors, batch.positives)
    return cross_entropy(temperature * torch.cat([own[:, None], against], dim=1), torch.zeros_like(query))


def _related(batch: Batch, documents: int) -> Tensor:
    """Whether the second document is the first or one of its positives, documents × documents."""
    related = torch.eye(documents, dtype=torch.bool, device=batch.positives.device)
    related[batch.positives[:, 0], batch.positives[:, 1]] = True
    return related
