"""What a training learns: the loss of a batch, and how its gradients are computed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recomputed

from cocite.config.models import Comparison
from cocite.encoder import processes
from cocite.encoder.batches import Batch, Part
from cocite.encoder.learner import PROJECTION, Learner
from cocite.encoder.model import computing


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What is learned: the loss of the vectors that an encoder gives to the documents of a batch.

    It is the sum of some losses, each over the examples and the negatives that it sees, times its weight. The examples
    of each aspect are compared by themselves, in the encoder's space or in that of the aspect, and count by their
    number. Beside all dimensions a loss may count the first few alone, several times (Matryoshka representation
    learning, Kusupati et al., 2022), so that vectors can be cut; or it sees the vectors through a head.

    The mini-batches of a batch go through the encoder one after the other, and the loss finds the vectors by their
    places. With several processes each embeds its share, and all of them compute the loss of the whole batch. Batches
    that would not fit into memory are recomputed: a mini-batch's activations are dropped after its pass and made again,
    with the same random numbers, when its gradients are due. That gives the gradients of the whole batch for the memory
    of one mini-batch and one more pass, as GradCache does (Gao et al., 2021), whatever the loss.
    """

    learner: Learner
    comparisons: Sequence[Comparison]
    """The losses that are added up."""
    recompute: bool
    """Whether each mini-batch is computed twice, so that memory holds one at a time."""
    leading: Sequence[int] = ()
    """Numbers of leading dimensions whose losses are added."""

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss, and the vectors it was computed from, documents × dimension, float32."""
        encoder = self.learner.encoder
        with computing(encoder):
            embedded = [self._embed(some).float() for some in batch.mini_batches]
        mine = torch.cat(embedded) if embedded else torch.zeros(0, encoder.dimension, device=encoder.device)
        vectors = processes.gathered(mine, batch.shares)
        return self.loss_of(vectors, batch), vectors.detach()

    def loss_of(self, vectors: Tensor, batch: Batch) -> Tensor:
        """The loss of a batch whose vectors are given, documents × dimension, a scalar."""
        losses = [
            each.weight * part.share * self._compare(each, part, vectors)
            for each, parts in zip(self.comparisons, batch.parts, strict=True)
            for part in parts
        ]
        return sum(losses[1:], start=losses[0]) if losses else 0 * vectors.sum()

    def _compare(self, comparison: Comparison, part: Part, vectors: Tensor) -> Tensor:
        """One of the losses, over the examples of an aspect."""
        in_encoder = comparison.space == "encoder"
        seen = self.learner.seen_through(PROJECTION if in_encoder else part.aspect, vectors)
        total: Tensor = comparison.loss(seen, part.compared)
        for dimension in self.leading if in_encoder else ():
            total = total + comparison.loss(vectors[:, :dimension], part.compared)
        return total

    def _embed(self, mini_batch: dict[str, Tensor]) -> Tensor:
        if not self.recompute:
            vectors: Tensor = self.learner.encoder(mini_batch)
            return vectors
        again: Tensor = recomputed(self.learner.encoder, mini_batch, use_reentrant=False)
        return again


@contextmanager
def refusing_what_is_not_deterministic(strict: bool) -> Iterator[None]:
    """Let torch raise in the block, instead of warn, where an operation has no deterministic kernel.

    Attention on a GPU has both kinds of kernels, and torch takes the deterministic backward pass only where it raises.
    """
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error" if strict and before else before)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
