"""The losses, a module with one class each: its fields are its settings, and it is called to compare a batch's
examples. What several of them share is here; torch is imported within, as the configuration imports the losses."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

COMPARISONS_AT_ONCE = 2**20
"""Similarities in memory together, 4 MB in each of several tensors: all those of mnrl in a batch of 724 triplets."""


def cosines_of(vectors: "Tensor", pairs: "Tensor") -> "Tensor":
    """The cosine of each pair of places, pairs × 2."""
    from torch.nn.functional import cosine_similarity

    first, second = vectors[pairs].unbind(dim=1)
    return cosine_similarity(first, second)


def ranking(positive: "Tensor", negative: "Tensor", *, temperature: float) -> "Tensor":
    """log(1 + Σ exp(τ(s⁻ − s⁺))) over all pairs of a negative and a positive similarity in the batch.

    The sum over pairs is a product of two sums, so that softplus(LSE(τ s⁻) + LSE(−τ s⁺)) is the same in linear time
    and memory. It is not divided by the size of the batch.
    """
    from torch import logsumexp
    from torch.nn.functional import softplus

    return softplus(logsumexp(temperature * negative, 0) + logsumexp(-temperature * positive, 0))


def mean_over(pairs: "Tensor", candidates: int, loss: "Callable[[Tensor], Tensor]") -> "Tensor":
    """The mean of what `loss` gives each of some pairs, which it compares with so many candidates each.

    Many pairs go through it in blocks, and a block is computed again when its gradients are due: the similarities of a
    batch grow with its square, and the memory that they take does not.
    """
    import torch
    from torch.utils.checkpoint import checkpoint as recomputed

    rows = max(1, COMPARISONS_AT_ONCE // max(1, candidates))
    if len(pairs) <= rows:
        return loss(pairs).mean()
    blocks = [recomputed(loss, some, use_reentrant=False, preserve_rng_state=False) for some in pairs.split(rows)]
    return torch.cat(blocks).mean()
