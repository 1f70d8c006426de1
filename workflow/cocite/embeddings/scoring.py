"""The scores that link prediction ranks by, from the vectors of an engine."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from cocite.embeddings.link_prediction import Batch
from cocite.embeddings.vectors import Vectors


def score_batch(vectors: Vectors, batch: Batch, *, comparator: str, max_norm: float | None) -> list[Tensor]:
    """Scores of the edges, and scores of edges × candidates for the sources and for the targets.

    `comparator` is dot or cos. Vectors longer than `max_norm` are scaled back first, as a training does.
    """
    sources, targets, other_sources, other_targets = _prepared(vectors, batch, comparator, max_norm)
    return [(sources * targets).sum(1), targets @ other_sources.T, sources @ other_targets.T]


def _prepared(vectors: Vectors, batch: Batch, comparator: str, max_norm: float | None) -> Iterator[Tensor]:
    for rows in (*batch.ends, *batch.candidates):
        chosen = torch.from_numpy(vectors.of(rows))
        if comparator == "cos":
            yield functional.normalize(chosen)
        else:
            yield chosen if max_norm is None else torch.renorm(chosen, 2, 0, max_norm)
