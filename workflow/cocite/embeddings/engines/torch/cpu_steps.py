"""A step of training on a CPU: products of matrices by torch, and what moves rows between them compiled.

The definition is `steps.Step`; written in operations of torch, the rows of a batch would go through memory some ten
times for each of them.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.config.edge_training import RankingLoss
from cocite.embeddings.engines.torch import Torch, kernels
from cocite.embeddings.engines.torch.batches import Batch
from cocite.embeddings.engines.torch.steps import Step


class CpuStep(Step):
    """Trains rows of vectors in main memory."""

    def __init__(self, settings: Torch, vectors: Tensor, squares: Tensor, precision: torch.dtype) -> None:
        super().__init__(settings, vectors, squares, precision)
        self.unit = settings.comparator == "cos"
        self.max_norm = np.float32(np.inf if settings.max_norm is None else settings.max_norm)
        self.draws = np.random.default_rng()

    def seed(self, seed: int) -> None:
        """Seed the rounding of what is stored in bfloat16."""
        self.draws = np.random.default_rng(seed)

    def _look_up(self, rows: Tensor, found: Tensor) -> None:
        flat = found.view(-1, found.shape[-1])
        kernels.look_up(_numbers(self.vectors), rows.reshape(-1).numpy(), self.unit, _numbers(flat))

    def _gradient_by_scores(self, scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        loss = self.settings.loss
        if not isinstance(loss, RankingLoss):
            return super()._gradient_by_scores(scores, batch)
        found = torch.empty_like(scores)
        summed = kernels.ranking_gradients(
            _numbers(scores),
            batch.edges,
            self.settings.batch_negatives > 0,
            np.float32(loss.margin),
            batch.weights.numpy(),
            _numbers(found),
        )
        return found, torch.tensor(summed)

    def _update(self, rows: Tensor, gradients: Tensor) -> Tensor:
        flat = rows.reshape(-1).numpy().astype(np.int64)
        wrong = kernels.update(
            _numbers(self.vectors),
            self.squares.numpy(),
            _numbers(gradients.view(len(flat), -1)),
            np.sort(flat * len(flat) + np.arange(len(flat))),
            len(flat),
            np.float32(self.settings.lr),
            self.max_norm,
            self.unit,
            np.uint32(self.draws.integers(2**32)),
            torch.get_num_threads(),
        )
        return torch.tensor(wrong == 0)


def _numbers(tensor: Tensor) -> NDArray[np.float32] | NDArray[np.uint16]:
    """The numbers of a tensor in the same memory; bfloat16 as 16 bits each."""
    numbers: NDArray[np.float32] | NDArray[np.uint16]
    numbers = (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return numbers
