"""What learns: an encoder, and heads that losses see its vectors through.

A head maps the vectors of the encoder to where a loss compares them, and learns with it. The projection is dropped in
the end, so that what it takes the loss to be smaller need not stand in the vectors (SimCLR, Chen et al., 2020). The
maps to the spaces of aspects stay with the encoder (see `spaces`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import cast

import torch
from torch import Tensor, nn

from cocite.config.aspects import ASPECTS
from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.core.randomness import derive_seed
from cocite.encoder.model import Encoder, Features
from cocite.encoder.prediction import PredictionHead, new_head, open_head
from cocite.encoder.trainable import choose_weights

PROJECTION = "projection"
"""The head that is dropped in the end; each other one has the name of its aspect."""
PREDICTION = "prediction"


class Learner(nn.Module):
    """An encoder and its heads, by name."""

    def __init__(
        self,
        encoder: Encoder,
        heads: Mapping[str, nn.Module] | None = None,
        prediction: PredictionHead | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(heads or {})
        self.prediction = prediction
        """What predicts masked tokens, where a loss asks for it."""

    def seen_through(self, head: str, vectors: Tensor) -> Tensor:
        """What the head makes of vectors, documents × its dimension; without such a head, the vectors as they are.

        They may lie on another device than the head, as those of a validation do.
        """
        if head not in self.heads:
            return vectors
        seen: Tensor = self.heads[head](vectors.to(self.encoder.device))
        return seen.to(vectors.device)

    def losses_of_tokens(self, features: Features, places: Tensor, tokens: Tensor) -> Tensor:
        """The cross entropy of each token that is to be predicted, float32; see `masking.Masked`."""
        hidden: Tensor = self.encoder.transformer(**features).last_hidden_state
        return cast(PredictionHead, self.prediction).losses(hidden.flatten(0, 1)[places], tokens)

    def losses_of_no_tokens(self) -> Tensor:
        """The same of no tokens: no numbers, whose gradients are nought."""
        device, wide = self.encoder.device, self.encoder.transformer.config.hidden_size
        none = torch.zeros(0, dtype=torch.int64, device=device)
        return cast(PredictionHead, self.prediction).losses(torch.zeros(0, wide, device=device), none)

    @property
    def aspects(self) -> dict[str, nn.Linear]:
        """The maps to the spaces of aspects, in the order of these."""
        return {name: cast(nn.Linear, self.heads[name]) for name in ASPECTS if name in self.heads}


def new_learner(
    encoder: Encoder,
    settings: TrainingSettings,
    seed: int,
    maps: Mapping[str, nn.Linear | None] = MappingProxyType({}),
    folder: Path | None = None,
) -> Learner:
    """The encoder, with the weights chosen that are to learn, and the heads that the settings ask for.

    `maps` has the aspects of the examples, with the maps that the encoder has already, and `folder` is the encoder's,
    where the head may lie that it was pre-trained with. What is drawn follows from the seed. Raises `InputError` where
    the encoder is too small for what is asked, or the examples have no aspects.
    """
    if settings.matryoshka and max(settings.matryoshka) >= encoder.dimension:
        raise InputError(
            f"Setting matryoshka has {max(settings.matryoshka)}, but the encoder's vectors have only "
            f"{encoder.dimension} dimensions, which count in any case."
        )
    in_aspects = any(each.space == "aspects" for each in settings.comparisons)
    if in_aspects and not maps:
        raise InputError(
            "An objective is in the space of aspects, and the examples have none; see the sampler aspects."
        )
    choose_weights(encoder, settings, seed)
    heads: dict[str, nn.Module] = {}
    wide = encoder.dimension
    if settings.projection is not None:
        with _drawing(seed, PROJECTION):
            heads[PROJECTION] = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, settings.projection))
    for aspect, given in maps.items() if in_aspects else ():
        with _drawing(seed, aspect):
            heads[aspect] = given or nn.Linear(wide, wide)
    prediction = None
    if settings.masked_share is not None:
        with _drawing(seed, PREDICTION):
            prediction = new_head(encoder.transformer) if folder is None else open_head(folder, encoder.transformer)
    return Learner(encoder, heads, prediction).to(encoder.device)


@contextmanager
def _drawing(seed: int, head: str) -> Iterator[None]:
    """Let what is drawn in the block follow from the seed and the name of a head."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "heads", head))
        yield
