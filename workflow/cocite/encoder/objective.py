"""From a batch of examples to its loss.

The groups of a batch go through the encoder one after the other, and the loss takes the vectors by their places. With
several processes each embeds its share, and all of them compute the loss of the whole batch. Batches that would not
fit into memory are recomputed: a group's activations are dropped after its pass and made again, with the same random
numbers, when its gradients are due. That gives the gradients of the whole batch for the memory of one group and one
more pass, as GradCache does (Gao et al., 2021), whatever the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cocite.encoder import losses, processes
from cocite.encoder.batches import Batch
from cocite.encoder.embedding import mixed_precision
from cocite.encoder.model import Encoder
from cocite.encoder.settings import TrainingSettings

Loss = Callable[[Tensor, Batch], Tensor]
"""The vectors of the documents of a batch, documents × dimension, and the batch, to its loss; see `losses`."""


def loss_of(settings: TrainingSettings) -> Loss:
    """The loss that the settings name, with its own settings."""
    module = import_module(f"{losses.__name__}.{settings.loss}")
    return partial(module.loss, **settings.told_to_loss())


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What is learned: the loss of an encoder's vectors."""

    encoder: Encoder
    loss: Loss
    recompute: bool
    """Whether each group is computed twice, so that memory holds one at a time."""

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss, and the vectors it was computed from, documents × dimension, float32."""
        with mixed_precision(self.encoder.device):
            embedded = [self._embed(group).float() for group in batch.groups]
        mine = torch.cat(embedded) if embedded else torch.zeros(0, self.encoder.dimension, device=self.encoder.device)
        vectors = processes.gathered(mine, batch.shares)
        return self.loss(vectors, batch), vectors.detach()

    def _embed(self, group: dict[str, Tensor]) -> Tensor:
        if not self.recompute:
            vectors: Tensor = self.encoder(group)
            return vectors
        # The comparison of shapes, which is left out, knows no nested tensors, as attention over packed documents uses.
        again: Tensor = checkpoint(self.encoder, group, use_reentrant=False, determinism_check="none")
        return again
