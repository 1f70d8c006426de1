"""How well an encoder tells positives from negatives on the validation set that all models of a group share.

The losses are of different kinds and cannot be compared; the accuracy and the rank correlation can.
"""

from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch.nn.functional import cosine_similarity

from cocite.encoder import processes
from cocite.encoder.embedding import embed
from cocite.encoder.objective import Loss
from cocite.encoder.triplets import Triplets


def measure(model: Any, triplets: Triplets, loss: Loss, *, batch_size: int) -> dict[str, float]:
    """The mean loss of a triplet's batch; the share of triplets with ‖q − p‖ < ‖q − n‖; the rank correlation.

    The last is Spearman's, between the cosines of all pairs of a query with a positive or a negative and which of the
    two it is. Each document is embedded once. Batches hold neighbouring triplets in the order of their queries, so that
    losses over several triplets of a query find them; a shorter last batch counts by its size.
    """
    vectors = torch.from_numpy(
        processes.shared_out(len(triplets.documents), lambda rows: embed(model, triplets.documents, rows=rows))
    )
    rows = torch.from_numpy(triplets.rows[np.argsort(triplets.rows[:, 0], kind="stable")])
    total, right = 0.0, 0
    near, far = [], []
    for batch in rows.split(batch_size):
        query, positive, negative = (vectors[batch[:, role]] for role in range(3))
        total += len(batch) * loss(query, positive, negative, batch[:, 0]).item()
        right += int(((query - positive).norm(dim=1) < (query - negative).norm(dim=1)).sum())
        near.append(cosine_similarity(query, positive))
        far.append(cosine_similarity(query, negative))
    return {
        "eval_loss": total / len(rows),
        "eval_accuracy": right / len(rows),
        "eval_spearman": rank_correlation(torch.cat(near).numpy(), torch.cat(far).numpy()),
    }


def rank_correlation(near: np.ndarray, far: np.ndarray) -> float:
    """Spearman's ρ between the similarities of pairs and whether they are positives (`near`) or negatives (`far`).

    With as many positives as negatives it lies between −√¾ and √¾, for large numbers. It is 0 where all similarities
    are equal, and no ranks are there to correlate.
    """
    similarities = np.concatenate([near, far])
    if similarities.min() == similarities.max():
        return 0.0
    return float(spearmanr(similarities, np.repeat([1, 0], [len(near), len(far)])).statistic)
