"""Similarities of pairs that losses share, and how some losses rank them."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, softplus
from torch.utils.checkpoint import checkpoint as recomputed

from cocite.core.errors import InputError

COMPARISONS_AT_ONCE = 2**20
"""Similarities in memory together, 4 MB in each of several tensors: all those of mnrl in a batch of 724 triplets."""


def cosines_of(vectors: Tensor, pairs: Tensor) -> Tensor:
    """The cosine of each pair of places, pairs × 2."""
    first, second = vectors[pairs].unbind(dim=1)
    return cosine_similarity(first, second)


def angular_of(vectors: Tensor, pairs: Tensor) -> Tensor:
    """|Σ(re, im)| of the complex quotient of each pair of vectors, whose halves are real and imaginary parts.

    With x = (a, b) and y = (c, d): re = (ac + bd) / (‖x‖‖y‖), im = (bc − ad) / (‖x‖‖y‖). Raises `InputError` where the
    dimension is odd.
    """
    if vectors.shape[1] % 2:
        raise InputError(f"The loss angle needs an even number of dimensions, and there are {vectors.shape[1]}.")
    x, y = vectors[pairs].unbind(dim=1)
    (a, b), (c, d) = x.chunk(2, dim=1), y.chunk(2, dim=1)
    norms = (x.norm(dim=1) * y.norm(dim=1)).clamp_min(torch.finfo(x.dtype).tiny)
    return ((a * c + b * d + b * c - a * d).sum(dim=1) / norms).abs()


def ranking(positive: Tensor, negative: Tensor, *, temperature: float) -> Tensor:
    """log(1 + Σ exp(τ(s⁻ − s⁺))) over all pairs of a negative and a positive similarity in the batch.

    The sum over pairs is a product of two sums, so that softplus(LSE(τ s⁻) + LSE(−τ s⁺)) is the same in linear time
    and memory. It is not divided by the size of the batch.
    """
    return softplus(torch.logsumexp(temperature * negative, 0) + torch.logsumexp(-temperature * positive, 0))


def mean_over(pairs: Tensor, candidates: int, loss: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean of what `loss` gives each of some pairs, which it compares with so many candidates each.

    Many pairs go through it in blocks, and a block is computed again when its gradients are due: the similarities of a
    batch grow with its square, and the memory that they take does not.
    """
    rows = max(1, COMPARISONS_AT_ONCE // max(1, candidates))
    if len(pairs) <= rows:
        return loss(pairs).mean()
    blocks = [recomputed(loss, some, use_reentrant=False, preserve_rng_state=False) for some in pairs.split(rows)]
    return torch.cat(blocks).mean()
