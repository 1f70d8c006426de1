"""From the documents of a batch to its loss.

The groups of a batch go through the encoder one after the other, and the loss takes the vectors of each triplet by
their places. Batches that would not fit into memory are recomputed: a group's activations are dropped after its pass
and made again, with the same random numbers, when its gradients are due. That gives the gradients of the whole batch
for the memory of one group and one more pass, as GradCache does (Gao et al., 2021), whatever the loss.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cocite.encoder import losses
from cocite.encoder.settings import TrainingSettings

Features = dict[str, Any]
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Queries, positives and negatives of a batch, and the numbers of the queries, to its loss; see `losses`."""


def loss_of(settings: TrainingSettings) -> Loss:
    """The loss that the settings name, with what it is told."""
    module = import_module(f"{losses.__name__}.{settings.loss}")
    return partial(module.loss, **settings.told_to_loss())


class TripletObjective(nn.Module):
    """The loss of a batch as `collation.Collator` makes it."""

    def __init__(self, model: nn.Module, loss: Loss, *, recompute: bool) -> None:
        super().__init__()
        self.model = model
        self.loss = loss
        self.recompute = recompute

    def forward(self, groups: Sequence[Features], rows: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the vectors it was computed from, documents × dimension, float32."""
        vectors = torch.cat(self._embedded(groups)).float()
        with torch.autocast(vectors.device.type, enabled=False):
            # What tells the triplets of a query is the query's place among the documents.
            loss = self.loss(*vectors[rows].unbind(dim=1), rows[:, 0])  # type: ignore[call-arg]
        return loss, vectors.detach()

    def _embedded(self, groups: Sequence[Features]) -> list[Tensor]:
        if not self.recompute:
            return [self._embed(self.model, group) for group in groups]
        # With several processes the model is wrapped, and the wrapper must be called once, and not while gradients
        # are computed: it is what prepares their exchange.
        inner = getattr(self.model, "module", self.model)
        first = self._embed(self.model, groups[0])
        # The comparison of shapes, which is left out, knows no nested tensors, as attention over packed documents uses.
        again = partial(checkpoint, self._embed, inner, use_reentrant=False, determinism_check="none")
        return [first, *map(again, groups[1:])]

    @staticmethod
    def _embed(model: nn.Module, group: Features) -> Tensor:
        vectors: Tensor = model(dict(group))["sentence_embedding"]
        return vectors
