"""Contrastive losses over triplets of embeddings.

Each function takes query, positive and negative embeddings (rows × dimension, one triplet a row), with the numbers of
the queries that tell which triplets share theirs, and gives a scalar in the dtype of its input. A training casts to
float32 first, also under mixed precision, because exponentials of scaled similarities lose too much in bfloat16.

Sources: triplet margin, Schroff et al. (2015) as in SPECTER (Cohan et al., 2020); InfoNCE, van den Oord et al. (2018);
CoSENT, Su (2022); AnglE, Li & Li (2024); multiple negatives ranking, Henderson et al. (2017); SupCon, Khosla et al.
(2020), whose equation 2 has the sum over the positives outside of the logarithm, as here.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from cocite.encoder.settings import TrainingSettings

EPSILON = 1e-6
"""Added to differences inside the Euclidean norm, as torch's pairwise_distance does."""

Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def triplet(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, margin: float) -> Tensor:
    """Mean of max(0, ‖q − p‖ − ‖q − n‖ + margin)."""
    near = functional.pairwise_distance(query, positive, eps=EPSILON)
    far = functional.pairwise_distance(query, negative, eps=EPSILON)
    return functional.relu(near - far + margin).mean()


def infonce(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, temperature: float) -> Tensor:
    """Mean cross entropy, over cosines / temperature, of the own positive against the negatives of the same query.

    The documents of other queries are no negatives.
    """
    own = functional.cosine_similarity(query, positive) / temperature
    against = cosines(query, negative) / temperature
    others = queries[:, None] != queries[None, :]
    logits = torch.cat([own[:, None], against.masked_fill(others, -torch.inf)], dim=1)
    return functional.cross_entropy(logits, torch.zeros_like(queries))


def cosent(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, temperature: float) -> Tensor:
    """`ranking` of the cosines."""
    return ranking(
        functional.cosine_similarity(query, positive),
        functional.cosine_similarity(query, negative),
        temperature=temperature,
    )


def angle(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, temperature: float) -> Tensor:
    """`ranking` of |Σ(re, im)| of the complex quotients (see `angular_similarity`)."""
    return ranking(angular_similarity(query, positive), angular_similarity(query, negative), temperature=temperature)


def mnrl(
    query: Tensor,
    positive: Tensor,
    negative: Tensor,
    queries: Tensor,
    *,
    temperature: float,
    sampled_negatives: bool = True,
) -> Tensor:
    """Mean cross entropy, over cosines × temperature, of the own positive against all documents of the batch.

    Those are the positives of other queries and, unless `sampled_negatives` is false, the negatives of all triplets.
    Further positives of the same query are left out: they would be false negatives, and many where the triplets of a
    query stay together. A batch without them gives the loss as published.
    """
    own = torch.arange(len(queries), device=queries.device)
    further = (queries[:, None] == queries[None, :]) & (own[:, None] != own[None, :])
    logits = cosines(query, positive).masked_fill(further, -torch.inf)
    if sampled_negatives:
        logits = torch.cat([logits, cosines(query, negative)], dim=1)
    return functional.cross_entropy(temperature * logits, own)


def supcon(query: Tensor, positive: Tensor, negative: Tensor, queries: Tensor, *, temperature: float) -> Tensor:
    """Mean over the positives of −log(exp(s⁺/τ) / (Σ exp(s⁺/τ) + Σ exp(s⁻/τ))), s being cosines.

    The sums run over the positives and the negatives of the same query, those of all its triplets in the batch.
    """
    others = queries[:, None] != queries[None, :]
    documents = torch.cat([cosines(query, positive), cosines(query, negative)], dim=1) / temperature
    total = documents.masked_fill(torch.cat([others, others], dim=1), -torch.inf).logsumexp(dim=1)
    return (total - functional.cosine_similarity(query, positive) / temperature).mean()


def cosines(x: Tensor, y: Tensor) -> Tensor:
    """The cosine of each row of x with each row of y, rows × rows."""
    return functional.normalize(x, dim=1) @ functional.normalize(y, dim=1).T


def ranking(positive: Tensor, negative: Tensor, *, temperature: float) -> Tensor:
    """log(1 + Σ exp(τ(s⁻ − s⁺))) over all pairs of a negative and a positive similarity in the batch.

    The sum over pairs is a product of two sums, so that softplus(LSE(τ s⁻) + LSE(−τ s⁺)) is the same in linear time
    and memory. It is not divided by the size of the batch.
    """
    return functional.softplus(torch.logsumexp(temperature * negative, 0) + torch.logsumexp(-temperature * positive, 0))


def angular_similarity(x: Tensor, y: Tensor) -> Tensor:
    """|Σ(re, im)| of the complex quotient of the rows of x and y, whose halves are real and imaginary parts.

    With x = (a, b) and y = (c, d): re = (ac + bd) / (‖x‖‖y‖), im = (bc − ad) / (‖x‖‖y‖). The dimension must be even.
    """
    (a, b), (c, d) = x.chunk(2, dim=1), y.chunk(2, dim=1)
    norms = (x.norm(dim=1) * y.norm(dim=1)).clamp_min(torch.finfo(x.dtype).tiny)
    return ((a * c + b * d + b * c - a * d).sum(dim=1) / norms).abs()


def loss_of(settings: TrainingSettings) -> Loss:
    """The loss that the settings name, with its margin or temperature."""
    temperature = settings.resolved_temperature()
    if temperature is None:
        return partial(triplet, margin=settings.margin)
    if settings.loss == "mnrl":
        return partial(mnrl, temperature=temperature, sampled_negatives=settings.sampled_negatives)
    losses = {"infonce": infonce, "cosent": cosent, "angle": angle, "supcon": supcon}
    return partial(losses[settings.loss], temperature=temperature)
