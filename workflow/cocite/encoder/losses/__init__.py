"""The losses, a module with one class each: its fields are its settings, and it is called to compare a batch's
examples. torch is imported within the functions, as the configuration imports the losses."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor as Tensor

    from cocite.encoder.batch import PairIndices as PairIndices
else:
    Tensor = PairIndices = Any

COMPARISONS_AT_ONCE = 2**20
"""Similarities in memory together, 4 MB in each of several tensors."""


def cosines_of(vectors: Tensor, pairs: Tensor) -> Tensor:
    """The cosine of each pair of places, pairs × 2."""
    from torch.nn.functional import cosine_similarity

    first, second = vectors[pairs].unbind(dim=1)
    return cosine_similarity(first, second)


def ranking(positive: Tensor, negative: Tensor, *, temperature: float) -> Tensor:
    """log(1 + Σ exp(τ(s⁻ − s⁺))) over all pairs of a negative and a positive similarity in the batch.

    softplus(LSE(τ s⁻) + LSE(−τ s⁺)) is the same in linear time and memory.
    """
    from torch import logsumexp
    from torch.nn.functional import softplus

    return softplus(logsumexp(temperature * negative, 0) + logsumexp(-temperature * positive, 0))


def mean_over(pairs: Tensor, candidates: int, loss: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean of `loss` over some pairs, each of which it compares with so many candidates.

    Many pairs are computed in blocks, and again for their gradients, to bound the memory of the similarities.
    """
    import torch
    from torch.utils.checkpoint import checkpoint as recomputed

    rows = max(1, COMPARISONS_AT_ONCE // max(1, candidates))
    if len(pairs) <= rows:
        return loss(pairs).mean()
    blocks = [recomputed(loss, some, use_reentrant=False, preserve_rng_state=False) for some in pairs.split(rows)]
    return torch.cat(blocks).mean()
