"""How well an encoder tells positives from negatives on the validation set that all models of a group share.

The losses are of different kinds and cannot be compared; the accuracy and the rank correlation can.
"""

import numpy as np
import torch

from cocite.encoder import processes
from cocite.encoder.batches import arranged
from cocite.encoder.embedding import embed
from cocite.encoder.examples import Examples
from cocite.encoder.model import Encoder
from cocite.encoder.objective import Loss
from cocite.encoder.similarities import cosines_of


def measure(encoder: Encoder, examples: Examples, loss: Loss, *, batch_size: int) -> dict[str, float]:
    """The mean loss of an example's batch; the share of triplets with ‖q − p‖ < ‖q − n‖; the rank correlation.

    The last is Spearman's, between the cosines of all pairs of a query with a positive or a negative and which of the
    two it is. Each document is embedded once. Batches hold neighbouring examples in the order of their queries, so that
    losses over several examples of a query find them; a shorter last batch counts by its size.
    """
    vectors = torch.from_numpy(
        processes.shared_out(len(examples.documents), lambda rows: embed(encoder, examples.documents, rows=rows))
    )
    order = np.argsort(examples.queries, kind="stable")
    total, right, triplets = 0.0, 0, 0
    near, far = [], []
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        batch = arranged(examples, numbers)
        of_batch = vectors[batch.documents]
        total += len(numbers) * loss(of_batch, batch).item()
        query, positive, negative = of_batch[batch.triplets].unbind(dim=1)
        right += int(((query - positive).norm(dim=1) < (query - negative).norm(dim=1)).sum())
        triplets += len(query)
        near.append(cosines_of(of_batch, batch.positives))
        far.append(cosines_of(of_batch, batch.negatives))
    return {
        "eval_loss": total / len(order),
        "eval_accuracy": right / triplets,
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
    # Pearson's correlation of the ranks, which equal values share; to import SciPy's takes longer than a validation.
    _, place, counts = np.unique(similarities, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float(np.corrcoef(ranks, np.repeat([1, 0], [len(near), len(far)]))[0, 1])
