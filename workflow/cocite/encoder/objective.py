"""What a training learns: an encoder with the heads that losses see its vectors through, and the loss of a batch.

A head maps the vectors of the encoder to where a loss compares them, and learns with it. The projection is dropped in
the end (SimCLR, Chen et al., 2020); the maps to the spaces of aspects stay with the encoder (see `spaces`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as recomputed

from cocite.config.aspects import ASPECTS
from cocite.config.models import Comparison, TrainingSettings
from cocite.core.errors import InputError
from cocite.encoder import processes
from cocite.encoder.adapters import choose_weights
from cocite.encoder.batch import Batch, PairIndices
from cocite.encoder.masking import PredictionHead, new_head, open_head, sums_by_document
from cocite.encoder.model import Encoder, Features, computing, drawing

PROJECTION = "projection"
"""The head that is dropped in the end; each other one has the name of its aspect."""


class Learner(nn.Module):
    """An encoder and its heads, by name."""

    def __init__(
        self, encoder: Encoder, heads: Mapping[str, nn.Module] | None = None, prediction: PredictionHead | None = None
    ) -> None:
        super().__init__()
        self.encoder, self.heads, self.prediction = encoder, nn.ModuleDict(heads or {}), prediction

    def losses_of_tokens(self, features: Features, places: Tensor, tokens: Tensor) -> Tensor:
        """The cross entropy of each token that is predicted, float32; see `masking.Masked`."""
        hidden = self.encoder.read(features)
        return cast(PredictionHead, self.prediction).losses(hidden.flatten(0, 1)[places], tokens)

    @property
    def aspects(self) -> dict[str, nn.Linear]:
        """The maps to the spaces of aspects, in their order."""
        return {name: cast(nn.Linear, self.heads[name]) for name in ASPECTS if name in self.heads}


def new_learner(
    encoder: Encoder,
    settings: TrainingSettings,
    seed: int,
    maps: Mapping[str, nn.Linear | None] = MappingProxyType({}),
    folder: Path | None = None,
) -> Learner:
    """The encoder, with the weights chosen that learn, and the heads of the settings, drawn from the seed.

    `maps` has the aspects of the examples, with the maps that the encoder has already; `folder` has the head that it
    was pre-trained with. Raises `InputError` if the encoder is too small, or the examples have no aspects.
    """
    if settings.matryoshka and max(settings.matryoshka) >= encoder.dimension:
        found = f"the encoder's vectors have only {encoder.dimension} dimensions, which count in any case"
        raise InputError(f"Setting matryoshka has {max(settings.matryoshka)}, but {found}.")
    in_aspects = any(each.space == "aspects" for each in settings.comparisons)
    if in_aspects and not maps:
        raise InputError("An objective is in the space of aspects, and the examples have none; see sampler aspects.")
    choose_weights(encoder, settings, seed)
    heads: dict[str, nn.Module] = {}
    wide = encoder.dimension
    if settings.projection is not None:
        with drawing(seed, "heads", PROJECTION):
            heads[PROJECTION] = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, settings.projection))
    for aspect, own in maps.items() if in_aspects else ():
        with drawing(seed, "heads", aspect):
            heads[aspect] = own or nn.Linear(wide, wide)
    prediction = None
    if settings.masked_share is not None:
        with drawing(seed, "heads", "prediction"):
            prediction = new_head(encoder.transformer) if folder is None else open_head(folder, encoder.transformer)
    return Learner(encoder, heads, prediction).to(encoder.device)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The loss of a batch: a weighted sum of losses, each over the examples and the negatives that it sees.

    The examples of each aspect are compared by themselves and count by their number. Losses of leading dimensions may
    be added, so that vectors can be cut (Matryoshka representation learning, Kusupati et al., 2022).

    With several processes each embeds its share, and all compute the loss of the whole batch. A batch that would not
    fit into memory is recomputed: a mini-batch's activations are dropped after its pass and computed again, with the
    same random numbers, for its gradients. These are the gradients of the whole batch (GradCache, Gao et al., 2021).
    """

    learner: Learner
    comparisons: Sequence[Comparison]
    recompute: bool = False
    """Whether each of several mini-batches is computed twice, so that memory holds one at a time."""
    leading: Sequence[int] = ()
    """Numbers of leading dimensions whose losses are added."""

    def __call__(self, batch: Batch) -> Tensor:
        """The loss, a scalar in float32."""
        encoder, masked, predicted = self.learner.encoder, batch.masked, None
        # A single pass takes as much memory as it would take again.
        again = self.recompute and len(batch.mini_batches) + len(masked or ()) > 1
        with computing(encoder):
            embedded = [_passed(encoder, some, again=again).float() for some in batch.mini_batches]
            work = self.learner.losses_of_tokens
            losses = [_passed(work, some.features, some.places, some.tokens, again=again) for some in masked or ()]
        none = torch.zeros(0, device=encoder.device)
        mine = torch.cat(embedded) if embedded else none.new_zeros(0, encoder.dimension)
        vectors = processes.gathered(mine, batch.shares)
        if masked is not None:
            sums = sums_by_document(losses or [none], masked, batch.shares[processes.number()])
            predicted = processes.gathered(sums, batch.shares)
        return self.loss_of(vectors, batch, predicted)

    def loss_of(self, vectors: Tensor, batch: Batch, predicted: Tensor | None = None) -> Tensor:
        """The loss of a batch, a scalar, from its vectors, documents × dimension, and its `sums_by_document`."""
        losses = [
            each.weight * part.share * self._compare(each, part, vectors, predicted)
            for each, parts in zip(self.comparisons, batch.parts, strict=True)
            for part in parts
        ]
        return sum(losses[1:], start=losses[0]) if losses else 0 * vectors.sum()

    def one_of(self, number: int, vectors: Tensor, batch: Batch, predicted: Tensor | None = None) -> Tensor:
        """One of the losses that are added up, without its weight."""
        one, parts = self.comparisons[number], batch.parts[number]
        losses = (part.share * self._compare(one, part, vectors, predicted) for part in parts)
        return sum(losses, start=vectors.new_zeros(()))

    @property
    def named(self) -> dict[str, int]:
        """The numbers of the losses by their names, if several of one set are added and one compares no examples."""
        of_one_set = len(self.comparisons) > 1 and all(each.objectives is None for each in self.comparisons)
        if not of_one_set or all(each.loss.input_kind == "examples" for each in self.comparisons):
            return {}
        kinds = [each.loss.kind for each in self.comparisons]
        names = [f"{kind} {number + 1}" if kinds.count(kind) > 1 else kind for number, kind in enumerate(kinds)]
        return {name: number for number, name in enumerate(names)}

    def _compare(self, comparison: Comparison, part: PairIndices, vectors: Tensor, predicted: Tensor | None) -> Tensor:
        if comparison.loss.input_kind == "masks":
            return comparison.loss(predicted, part)
        in_encoder, heads = comparison.space == "encoder", self.learner.heads
        head, seen = PROJECTION if in_encoder else part.aspect, vectors
        if head in heads:
            seen = heads[head](vectors.to(self.learner.encoder.device)).to(vectors.device)
        total: Tensor = comparison.loss(seen, part)
        for dimension in self.leading if in_encoder else ():
            total = total + comparison.loss(vectors[:, :dimension], part)
        return total


def _passed(work: Callable[..., Tensor], *given: Any, again: bool) -> Tensor:
    return recomputed(work, *given, use_reentrant=False) if again else work(*given)


def objective_of(learner: Learner, settings: TrainingSettings) -> Objective:
    """The objective of a training with these settings."""
    return Objective(
        learner=learner,
        comparisons=settings.comparisons,
        recompute=settings.tokens_at_once is not None,
        leading=settings.matryoshka or (),
    )
