"""Contrastive losses over triplets of embeddings.

Each function takes query, positive and negative embeddings (rows × dimension, one triplet a row) and gives a scalar in
the dtype of its input. The trained module casts to float32 first, also under mixed precision, because exponentials of
scaled similarities lose too much in bfloat16.

Sources: triplet margin, Schroff et al. (2015) as in SPECTER (Cohan et al., 2020); InfoNCE, van den Oord et al. (2018);
CoSENT, Su (2022); AnglE, Li & Li (2024).
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
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

    `queries` are the ids that tell which triplets share their query; the documents of other queries are no negatives.
    """
    query, positive, negative = (functional.normalize(vectors, dim=1) for vectors in (query, positive, negative))
    own = (query * positive).sum(dim=1, keepdim=True) / temperature
    against = (query @ negative.T) / temperature
    others = queries[:, None] != queries[None, :]
    logits = torch.cat([own, against.masked_fill(others, -torch.inf)], dim=1)
    return functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


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
    losses = {"infonce": infonce, "cosent": cosent, "angle": angle}
    return partial(losses[settings.loss], temperature=temperature)


class TripletObjective(nn.Module):
    """A loss as sentence-transformers' trainer calls it: on the tokens of queries, positives and negatives."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, features: list[dict[str, Tensor]], labels: Tensor) -> Tensor:
        """Embed the three columns, and compare them; `labels` are the ids of the queries."""
        vectors = [self.model(column)["sentence_embedding"] for column in features]
        with torch.autocast(vectors[0].device.type, enabled=False):
            return self.loss(*(column.float() for column in vectors), labels)  # type: ignore[call-arg]
