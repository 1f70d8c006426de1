"""What a training learns: an encoder with the heads that losses see its vectors through, and the loss of a batch.

The head of a projection is dropped in the end (SimCLR, Chen et al., 2020); the maps to the spaces of aspects stay.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.utils.checkpoint import checkpoint as recomputed

from cocite.config.graphs import ASPECTS
from cocite.config.models import Comparison, TrainingSettings
from cocite.core.errors import InputError
from cocite.encoder import processes
from cocite.encoder.adapters import choose_weights
from cocite.encoder.batch import Batch, PairIndices
from cocite.encoder.masking import PredictionHead, new_head, open_head, sums_by_document
from cocite.encoder.model import Encoder, Features, computing, drawing
from cocite.encoder.spaces import read_space, spaces_in

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
    encoder: Encoder, settings: TrainingSettings, seed: int, aspects: Collection[str] = (), folder: Path | None = None
) -> Learner:
    """The encoder, with the weights chosen that learn, and the heads of the settings, drawn from the seed. `aspects`
    are those of the examples; `folder` has the maps and the head that the encoder has already. Raises `InputError` if
    the encoder is too small, or the examples have no aspects."""
    if settings.matryoshka and max(settings.matryoshka) >= encoder.dimension:
        found = f"the encoder's vectors have only {encoder.dimension} dimensions, which count in any case"
        raise InputError(f"Setting matryoshka has {max(settings.matryoshka)}, but {found}.")
    in_aspects = any(each.space == "aspects" for each in settings.comparisons)
    names = [name for name in ASPECTS if name in aspects and in_aspects]
    if in_aspects and not names:
        raise InputError("An objective is in the space of aspects, and the examples have none; see sampler aspects.")
    choose_weights(encoder, settings, seed)
    heads: dict[str, nn.Module] = {}
    wide = encoder.dimension
    if settings.projection is not None:
        with drawing(seed, "heads", PROJECTION):
            heads[PROJECTION] = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, settings.projection))
    known = {} if folder is None else {name: read_space(folder, name) for name in spaces_in(folder) if name in names}
    for aspect in names:
        with drawing(seed, "heads", aspect):
            heads[aspect] = known.get(aspect) or nn.Linear(wide, wide)
    prediction = None
    if settings.masked_share is not None:
        with drawing(seed, "heads", "prediction"):
            prediction = new_head(encoder.transformer) if folder is None else open_head(folder, encoder.transformer)
    return Learner(encoder, heads, prediction).to(encoder.device)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The loss of a batch: a weighted sum of losses, each over the examples and negatives that it sees, aspect by
    aspect. Losses of leading dimensions may be added (Matryoshka representation learning, Kusupati et al., 2022). Each
    of several processes embeds its share, and computes the loss of the whole batch. A batch that does not fit into
    memory is recomputed: a mini-batch's activations are dropped after its pass and computed again for its gradients,
    which are those of the whole batch (GradCache, Gao et al., 2021)."""

    learner: Learner
    settings: TrainingSettings

    def __call__(self, batch: Batch) -> Tensor:
        """The loss, a scalar in float32."""
        encoder, masked = self.learner.encoder, batch.masked
        predicted: Tensor | None = None
        # A single pass takes as much memory as it would take again.
        again = self.settings.tokens_at_once is not None and len(batch.mini_batches) + len(masked or ()) > 1
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

    def loss_of(
        self, vectors: Tensor, batch: Batch, predicted: Tensor | None = None, *, only: int | None = None
    ) -> Tensor:
        """The loss of a batch, a scalar, from its vectors, documents × dimension, and its `sums_by_document`; or
        `only` one of the losses that are added up, without its weight."""
        losses = [
            (each.weight if only is None else 1) * part.share * self._compare(each, part, vectors, predicted)
            for number, (each, parts) in enumerate(zip(self.settings.comparisons, batch.parts, strict=True))
            for part in parts
            if only in (None, number)
        ]
        return sum(losses[1:], start=losses[0]) if losses else 0 * vectors.sum()

    @property
    def named(self) -> dict[str, int]:
        """The numbers of the losses by their names, if several of one set are added and one compares no examples."""
        compared = self.settings.comparisons
        of_one_set = len(compared) > 1 and all(each.objectives is None for each in compared)
        if not of_one_set or all(each.loss.input_kind == "examples" for each in compared):
            return {}
        kinds = [each.loss.kind for each in compared]
        names = [f"{kind} {number + 1}" if kinds.count(kind) > 1 else kind for number, kind in enumerate(kinds)]
        return {name: number for number, name in enumerate(names)}

    def _compare(self, comparison: Comparison, part: PairIndices, vectors: Tensor, predicted: Tensor | None) -> Tensor:
        if comparison.loss.input_kind == "masks":
            return comparison.loss(predicted, part)
        in_encoder = comparison.space == "encoder"
        head = PROJECTION if in_encoder else part.aspect
        seen = vectors
        if head in self.learner.heads:  # validation has its vectors on the CPU
            seen = self.learner.heads[head](vectors.to(self.learner.encoder.device)).to(vectors.device)
        total: Tensor = comparison.loss(seen, part)
        leading = self.settings.matryoshka if in_encoder else None
        for dimension in leading or ():
            cut = vectors[:, :dimension]  # which an encoder normalises after the cut, if at all
            total = total + comparison.loss(normalize(cut) if self.learner.encoder.normalises else cut, part)
        return total


def _passed(work: Callable[..., Tensor], *given: Any, again: bool) -> Tensor:
    return recomputed(work, *given, use_reentrant=False) if again else work(*given)
