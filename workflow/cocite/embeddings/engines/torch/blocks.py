"""The partitions of a graph embedding: in files, and two at a time on the device that trains them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.embeddings.edges import Rows
from cocite.embeddings.engines.torch.batches import Side
from cocite.embeddings.engines.torch.checkpoints import Progress, TrainingState
from cocite.embeddings.engines.torch.first_vectors import FirstVectors
from cocite.embeddings.engines.torch.schedule import Pair


class Partitions:
    """All partitions, as they were last written, or as they begin."""

    def __init__(self, state: TrainingState, progress: Progress, starts: Rows, first: FirstVectors) -> None:
        self.state, self.progress, self.starts, self.first = state, progress, starts, first
        self.versions = list(progress.versions)

    def papers(self, part: int) -> int:
        """Number of papers of a partition."""
        return int(self.starts[part + 1] - self.starts[part])

    def fetch(self, part: int, vectors: Tensor, squares: Tensor) -> None:
        """Fill vectors and squares with those of a partition."""
        if self.versions[part] == 0:
            self.first.fill(vectors, int(self.starts[part]))
            squares.zero_()
        else:
            vectors.copy_(self.state.load("vectors", part, self.versions[part]))
            squares.copy_(self.state.load("squares", part, self.versions[part]))

    def keep(self, part: int, vectors: Tensor, squares: Tensor) -> None:
        """Write a new version of a partition; the one before goes, unless a killed training would go on from it."""
        before = self.versions[part]
        self.state.save(part, before + 1, vectors, squares)
        self.versions[part] += 1
        if before != self.progress.versions[part]:
            self.state.remove(part, before)

    def vectors(self) -> list[Tensor]:
        """The vectors of all partitions, mapped from disk."""
        return [self.state.load("vectors", part, version) for part, version in enumerate(self.versions)]


class Block:
    """Two partitions, or the only one, in the memory of a device, one behind the other."""

    def __init__(self, partitions: Partitions, device: torch.device, dimension: int, storage: torch.dtype) -> None:
        self.partitions, self.device = partitions, device
        parts = len(partitions.starts) - 1
        self.size = max(map(partitions.papers, range(parts)))
        self.held: list[int | None] = [None] * min(2, parts)
        self.changed = False
        rows = self.size * len(self.held) + 1  # and a padding row
        self.vectors = torch.zeros(rows, dimension, dtype=storage, device=device)
        self.squares = torch.zeros(rows, device=device)

    def hold(self, pair: Pair) -> None:
        """Bring partitions in to be trained; those that make room are written."""
        for part in pair:
            if part not in self.held:
                slot = next(slot for slot, other in enumerate(self.held) if other not in pair)
                self._write(slot)
                self.held[slot] = part
                self.partitions.fetch(part, *self._of(slot, part))

    def hold_again(self, held: list[int | None]) -> None:
        """Bring in what was held, each partition in its place."""
        self.held = list(held)
        for slot, part in enumerate(held):
            if part is not None:
                self.partitions.fetch(part, *self._of(slot, part))

    def side(self, part: int) -> Side:
        """Where a partition that is held lies."""
        return Side(first=self.held.index(part) * self.size, papers=self.partitions.papers(part))

    def write(self) -> None:
        """Write what is held, if it has changed since it was written."""
        for slot in range(len(self.held)):
            self._write(slot)
        self.changed = False

    def leave(self) -> None:
        """Write what is held, and hold nothing."""
        self.write()
        self.held = [None] * len(self.held)

    def _write(self, slot: int) -> None:
        part = self.held[slot]
        if part is not None and (self.changed or self.partitions.versions[part] == 0):
            self.partitions.keep(part, *self._of(slot, part))

    def _of(self, slot: int, part: int) -> tuple[Tensor, Tensor]:
        first = slot * self.size
        rows = slice(first, first + self.partitions.papers(part))
        return self.vectors[rows], self.squares[rows]


class FloatRows:
    """The rows of a tensor, whatever its kind and device, as float32 arrays."""

    def __init__(self, vectors: Tensor) -> None:
        self.vectors = vectors
        self.shape = tuple(vectors.shape)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.vectors)

    def __getitem__(self, rows: Rows) -> NDArray[np.float32]:
        """A copy of some rows."""
        at = torch.from_numpy(rows).to(self.vectors.device)
        found: NDArray[np.float32] = self.vectors[at].float().cpu().numpy()
        return found
