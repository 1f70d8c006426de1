"""A step of training on a CPU: products of matrices by torch, and what moves rows between them compiled.

The definition is `torch_step.Step`, in which the rows of a batch go through memory some ten times; here each row is
read once and written once. Numbers are float32, or bfloat16 as its 16 bits, because Numba does not know it. Sums are in
float32, in the order of the positions in a batch, whatever the number of threads.
"""

from typing import Any

import numpy as np
import torch
from numba import njit, prange, types
from numba.extending import overload
from numpy.typing import NDArray
from torch import Tensor

from cocite.config.engine import RankingLoss
from cocite.embeddings.engines import Torch
from cocite.embeddings.torch_step import Batch, Step

Numbers = NDArray[Any]  # float32, or uint16 for bfloat16

# Sums are vectorised. "nnan" and "ninf" are excluded, so that non-finite values stay visible. With "arcp" or "nsz" the
# process that compiles a function gives other last bits than those that load it from Numba's cache.
REORDERED = {"reassoc", "contract"}
GOLDEN = np.uint32(0x9E3779B9)
SHORTEST = np.float32(1e-10)  # lower bound of lengths, so that a vector of zeros can be scaled


class CpuStep(Step):
    """Trains rows of vectors in main memory."""

    def __init__(self, settings: Torch, vectors: Tensor, squares: Tensor, precision: torch.dtype) -> None:
        super().__init__(settings, vectors, squares, precision)
        self.unit, self.draws = settings.comparator == "cos", np.random.default_rng()
        self.max_norm = np.float32(np.inf if settings.max_norm is None else settings.max_norm)

    def seed(self, seed: int) -> None:
        """Seed the rounding of what is stored in bfloat16."""
        self.draws = np.random.default_rng(seed)

    def _look_up(self, rows: Tensor, found: Tensor) -> None:
        flat = found.view(-1, found.shape[-1])
        look_up(_numbers(self.vectors), rows.reshape(-1).numpy(), self.unit, _numbers(flat))

    def _gradient_by_scores(self, scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        loss = self.settings.loss
        if not isinstance(loss, RankingLoss):
            return super()._gradient_by_scores(scores, batch)
        found = torch.empty_like(scores)
        in_batch, margin, weights = self.settings.batch_negatives > 0, np.float32(loss.margin), batch.weights.numpy()
        summed = ranking_gradients(_numbers(scores), batch.edges, in_batch, margin, weights, _numbers(found))
        return found, torch.tensor(summed)

    def _update(self, rows: Tensor, gradients: Tensor) -> Tensor:
        flat = rows.reshape(-1).numpy().astype(np.int64)
        wrong = update(
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


def _numbers(tensor: Tensor) -> Numbers:
    """The numbers of a tensor in the same memory; bfloat16 as 16 bits each."""
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def widened(number: Any) -> Any:
    """A number as float32."""


def narrowed(number: Any, like: Any) -> Any:
    """A float32 rounded to the nearest number of the kind of `like`."""


def drawn(number: Any, like: Any, key: Any) -> Any:
    """A float32 rounded up or down by chance, right on average; `key` decides."""


# Strict would compare annotations too, and a lambda has none.
@overload(widened, inline="always", strict=False)
def _widened(number: Any) -> Any:
    if number == types.uint16:
        return lambda number: np.uint32(np.uint32(number) << np.uint32(16)).view(np.float32)
    return lambda number: number


@overload(narrowed, inline="always", strict=False)
def _narrowed(number: Any, like: Any) -> Any:
    def to_bfloat16(number: Any, like: Any) -> Any:
        bits = np.float32(number).view(np.uint32)
        return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))

    return to_bfloat16 if like == types.uint16 else lambda number, like: number


@overload(drawn, inline="always", strict=False)
def _drawn(number: Any, like: Any, key: Any) -> Any:
    def to_bfloat16(number: Any, like: Any, key: Any) -> Any:
        # The finaliser of MurmurHash3 (Appleby): 16 of its bits are added below the ones that are kept.
        mixed = np.uint32(key)
        mixed = np.uint32((mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        mixed = np.uint32((mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        bits = np.float32(number).view(np.uint32)
        return np.uint16((bits + (mixed >> np.uint32(16))) >> np.uint32(16))

    return to_bfloat16 if like == types.uint16 else lambda number, like, key: number


@njit(parallel=True, fastmath=REORDERED, error_model="numpy", cache=True)
def look_up(vectors: Numbers, rows: NDArray[np.int32], unit: bool, found: Numbers) -> None:
    """Copy the vectors of `rows` to `found`, rows × dimension; with `unit`, scaled to length 1."""
    dimension = vectors.shape[1]
    for at in prange(len(rows)):
        vector, copy = vectors[rows[at]], found[at]
        scale = np.float32(1)
        if unit:
            length = np.float32(0)
            for column in range(dimension):
                length += widened(vector[column]) * widened(vector[column])
            scale = np.float32(1) / max(np.sqrt(length), SHORTEST)
        for column in range(dimension):
            copy[column] = narrowed(widened(vector[column]) * scale, copy[column])


@njit(parallel=True, fastmath=REORDERED, error_model="numpy", cache=True)
def ranking_gradients(
    scores: Numbers, edges: int, in_batch: bool, margin: np.float32, weights: NDArray[np.float32], found: Numbers
) -> float:
    """The ranking loss of a batch, summed over both sides, and in `found` its gradient by the scores.

    `scores` and `found` are chunks × sources × targets, of which the first `edges` belong to each other. `weights` are
    chunks × edges. Negatives from the batch count if `in_batch`.
    """
    chunks, rows, _ = scores.shape
    losses = np.zeros(chunks, dtype=np.float32)
    for chunk in prange(chunks):
        of_chunk, gradient = scores[chunk], np.zeros((rows, rows), dtype=np.float32)
        limits, own = np.empty(edges, dtype=np.float32), np.zeros(edges, dtype=np.float32)
        for edge in range(edges):
            limits[edge] = widened(of_chunk[edge, edge]) - margin
        first = 0 if in_batch else edges
        loss = np.float32(0)
        for edge in range(edges):
            weight, limit, closer = weights[chunk, edge], limits[edge], np.float32(0)
            for other in range(first, rows):
                above = widened(of_chunk[edge, other]) - limit
                counts = weight if above > 0 and other != edge else np.float32(0)
                gradient[edge, other] = counts
                closer += counts
                loss += counts * above
            own[edge] += closer
        for other in range(first, rows):
            for edge in range(edges):
                above = widened(of_chunk[other, edge]) - limits[edge]
                counts = weights[chunk, edge] if above > 0 and other != edge else np.float32(0)
                gradient[other, edge] += counts
                own[edge] += counts
                loss += counts * above
        for edge in range(edges):
            gradient[edge, edge] = -own[edge]
        for row in range(rows):
            for column in range(rows):
                found[chunk, row, column] = narrowed(gradient[row, column], found[chunk, row, column])
        losses[chunk] = loss
    return losses.sum()


@njit(parallel=True, fastmath=REORDERED, error_model="numpy", cache=True)
def update(
    vectors: Numbers, squares: NDArray[np.float32], gradients: Numbers, keys: NDArray[np.int64], places: int,
    lr: np.float32, max_norm: np.float32, unit: bool, draw: np.uint32, threads: int,
) -> int:  # fmt: skip
    """One step of row-wise Adagrad on the rows of a batch; return the number of rows whose step is not finite.

    `keys` are row · `places` + place in the batch, rising; `gradients`, places × dimension, are summed by row, and with
    `unit` those by the vectors scaled to length 1. Vectors longer than `max_norm` are scaled back.
    """
    dimension, count = vectors.shape[1], len(keys)
    wrong = np.zeros(threads, dtype=np.int64)
    for thread in prange(threads):
        total = np.empty(dimension, dtype=np.float32)
        at = _next_row(keys, places, count * thread // threads)
        stop = _next_row(keys, places, count * (thread + 1) // threads)
        while at < stop:
            row = keys[at] // places
            gradient = gradients[keys[at] % places]
            for column in range(dimension):
                total[column] = widened(gradient[column])
            at += 1
            while at < stop and keys[at] // places == row:
                gradient = gradients[keys[at] % places]
                for column in range(dimension):
                    total[column] += widened(gradient[column])
                at += 1
            vector = vectors[row]
            if unit:  # turn the gradient by v / |v| into one by v
                square, along = np.float32(0), np.float32(0)
                for column in range(dimension):
                    square += widened(vector[column]) * widened(vector[column])
                    along += widened(vector[column]) * total[column]
                length = max(np.sqrt(square), SHORTEST)
                along /= length * length
                for column in range(dimension):
                    total[column] = (total[column] - along * widened(vector[column])) / length
            mean = np.float32(0)
            for column in range(dimension):
                mean += total[column] * total[column]
            mean /= np.float32(dimension)
            if mean == 0:
                continue
            step = lr / (np.sqrt(squares[row] + mean) + np.float32(1e-10))
            norm = np.float32(0)
            for column in range(dimension):
                moved = widened(vector[column]) - step * total[column]
                total[column] = moved
                norm += moved * moved
            if not np.isfinite(norm):
                wrong[thread] += 1
                continue
            squares[row] += mean
            scale = max_norm / np.sqrt(norm) if norm > max_norm * max_norm else np.float32(1)
            first = row * dimension
            for column in range(dimension):
                vector[column] = drawn(
                    total[column] * scale, vector[column], np.uint32(draw + np.uint32(first + column) * GOLDEN)
                )
    return wrong.sum()


@njit(inline="always")
def _next_row(keys: NDArray[np.int64], places: int, at: int) -> int:
    """The next position, from `at` on, at which a row begins."""
    while 0 < at < len(keys) and keys[at] // places == keys[at - 1] // places:
        at += 1
    return at
