"""The loss `mnrl`."""

from typing import ClassVar, Literal

from cocite.config.entries import Positive
from cocite.config.loss import Loss
from cocite.encoder.losses import PairIndices, Tensor, cosines_of, mean_over


class MultipleNegativesRanking(Loss):
    """Multiple negatives ranking (Henderson et al., 2017): the own positive against all documents of the batch."""

    kind: Literal["mnrl"]
    together: ClassVar[int] = 1
    needs_negatives: ClassVar[bool] = False
    temperature: Positive = 20.0
    """τ, by which similarities are multiplied."""
    sampled_negatives: bool = True
    """Whether the negatives of the triplets count, beside the positives of a batch's other queries."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean cross entropy, over cosines × temperature, of the own positive against the documents of the batch.

        Those are the positives of other queries and, unless `sampled_negatives` is false, the negatives of all
        examples, each as often as it is drawn. The query itself and its other positives in the batch are left out.
        """
        import torch
        from torch.nn.functional import cross_entropy, normalize

        positives, negatives = batch.positives[:, 1], batch.negatives[:, 1]
        candidates = torch.cat([positives, negatives]) if self.sampled_negatives else positives
        directions = normalize(vectors, dim=1)
        of_candidates = directions[candidates]

        def of(pairs: Tensor) -> Tensor:
            query = pairs[:, 0]
            known = _related(query, batch.positives, len(vectors))[:, candidates]
            against = (directions[query] @ of_candidates.T).masked_fill(known, -torch.inf)
            logits = torch.cat([cosines_of(vectors, pairs)[:, None], against], dim=1)
            return cross_entropy(self.temperature * logits, torch.zeros_like(query), reduction="none")

        return mean_over(batch.positives, len(candidates), of)


def _related(queries: Tensor, positives: Tensor, documents: int) -> Tensor:
    """Whether a document is the query or one of its positives, queries × documents; a query may occur several times."""
    import torch

    row = torch.full((documents,), len(queries), device=queries.device)  # behind the last for all other documents
    row[queries] = torch.arange(len(queries), device=queries.device)
    related = torch.zeros(len(queries) + 1, documents, dtype=torch.bool, device=queries.device)
    related[row[positives[:, 0]], positives[:, 1]] = True
    related[row[queries], queries] = True
    return related[row[queries]]
