"""Similarities of pairs that losses share, and how some losses rank them."""

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize, softplus


def cosines_of(vectors: Tensor, pairs: Tensor) -> Tensor:
    """The cosine of each pair of places, pairs × 2."""
    first, second = vectors[pairs].unbind(dim=1)
    return cosine_similarity(first, second)


def cosines(x: Tensor, y: Tensor) -> Tensor:
    """The cosine of each row of x with each row of y, rows × rows."""
    return normalize(x, dim=1) @ normalize(y, dim=1).T


def angular_of(vectors: Tensor, pairs: Tensor) -> Tensor:
    """|Σ(re, im)| of the complex quotient of each pair of vectors, whose halves are real and imaginary parts.

    With x = (a, b) and y = (c, d): re = (ac + bd) / (‖x‖‖y‖), im = (bc − ad) / (‖x‖‖y‖). The dimension must be even.
    """
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
