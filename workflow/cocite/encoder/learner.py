"""What learns: an encoder, and heads that losses see its vectors through.

A head maps the vectors of the encoder to where a loss compares them. It learns with the encoder and is dropped in the
end, so that what it takes the loss to be smaller need not stand in the vectors (SimCLR, Chen et al., 2020).
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from cocite.config.models import TrainingSettings
from cocite.encoder.model import Encoder
from cocite.encoder.trainable import choose_weights
from cocite.ground.errors import InputError
from cocite.ground.randomness import derive_seed

PROJECTION = "projection"


class Learner(nn.Module):
    """An encoder and its heads, by name."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, nn.Module] | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(heads or {})

    def seen_through(self, head: str, vectors: Tensor) -> Tensor:
        """What the head makes of vectors, documents × its dimension; without such a head, the vectors as they are.

        They may lie on another device than the head, as those of a validation do.
        """
        if head not in self.heads:
            return vectors
        seen: Tensor = self.heads[head](vectors.to(self.encoder.device))
        return seen.to(vectors.device)


def new_learner(encoder: Encoder, settings: TrainingSettings, seed: int) -> Learner:
    """The encoder, with the weights chosen that are to learn, and the heads that the settings ask for.

    What is drawn follows from the seed. Raises `InputError` where the encoder is too small for what is asked.
    """
    if settings.matryoshka and max(settings.matryoshka) >= encoder.dimension:
        raise InputError(
            f"Setting matryoshka has {max(settings.matryoshka)}, but the encoder's vectors have only "
            f"{encoder.dimension} dimensions, which count in any case."
        )
    choose_weights(encoder, settings, seed)
    heads = {}
    if settings.projection is not None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "heads", PROJECTION))
            wide = encoder.dimension
            heads[PROJECTION] = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, settings.projection))
    return Learner(encoder, heads).to(encoder.device)
