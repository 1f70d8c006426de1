"""The loss `mnrl`."""

from typing import TYPE_CHECKING, Literal

from cocite.config.entries import Positive
from cocite.config.loss import Loss

if TYPE_CHECKING:
    from torch import Tensor

    from cocite.encoder.batches import Batch


class MultipleNegativesRanking(Loss):
    """Multiple negatives ranking (Henderson et al., 2017): the own positive against all documents of the batch."""

    kind: Literal["mnrl"]
    temperature: Positive = 20.0
    """τ, by which similarities are multiplied."""
    sampled_negatives: bool = True
    """Whether the negatives of the triplets count, beside the positives of a batch's other queries."""

    def __call__(self, vectors: "Tensor", batch: "Batch") -> "Tensor":
        """Mean cross entropy, over cosines × temperature, of the own positive against the documents of the batch.

        Those are the positives of other queries and, unless `sampled_negatives` is false, the negatives of all
        examples. A document counts as often as it is drawn. Known to be no negatives are the query itself and its
        positives in the batch, wherever they stand: they are left out. A batch without them gives the loss as
        published.
        """
        import torch
        from torch.nn.functional import cross_entropy

        from cocite.encoder.similarities import cosines, cosines_of

        query, positive = batch.positives.unbind(dim=1)
        candidates = torch.cat([positive, batch.negatives[:, 1]]) if self.sampled_negatives else positive
        logits = cosines(vectors[query], vectors[candidates])
        against = logits.masked_fill(_related(batch, len(vectors))[query][:, candidates], -torch.inf)
        own = cosines_of(vectors, batch.positives)
        return cross_entropy(self.temperature * torch.cat([own[:, None], against], dim=1), torch.zeros_like(query))


def _related(batch: "Batch", documents: int) -> "Tensor":
    """Whether the second document is the first or one of its positives, documents × documents."""
    import torch

    related = torch.eye(documents, dtype=torch.bool, device=batch.positives.device)
    related[batch.positives[:, 0], batch.positives[:, 1]] = True
    return related
