"""How well an encoder tells positives from negatives on the validation set that all models of a group share."""

from typing import Any

import numpy as np
import torch

from cocite.encoder.embedding import embed
from cocite.encoder.losses import Loss
from cocite.encoder.triplets import Triplets


def measure(model: Any, triplets: Triplets, loss: Loss, *, batch_size: int) -> dict[str, float]:
    """The mean loss of a triplet's batch, and the share of triplets with ‖q − p‖ < ‖q − n‖.

    Each document is embedded once. Batches hold neighbouring triplets in the order of their queries, so that InfoNCE
    finds the negatives of the same query; a shorter last batch counts by its size.
    """
    vectors = torch.from_numpy(embed(model, triplets.documents))
    rows = torch.from_numpy(triplets.rows[np.argsort(triplets.rows[:, 0], kind="stable")])
    total, right = 0.0, 0
    for batch in rows.split(batch_size):
        query, positive, negative = (vectors[batch[:, role]] for role in range(3))
        total += len(batch) * loss(query, positive, negative, batch[:, 0]).item()
        right += int(((query - positive).norm(dim=1) < (query - negative).norm(dim=1)).sum())
    return {"eval_loss": total / len(rows), "eval_accuracy": right / len(rows)}
