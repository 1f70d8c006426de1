"""The partitions of a graph embedding: in files, and two at a time on the device that trains them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.embeddings.edges import Rows
from cocite.embeddings.engines.torch.batches import Side
from cocite.embeddings.engines.torch.checkpoints import KINDS, Progress, TrainingState
from cocite.embeddings.engines.torch.first_vectors import FirstVectors
from cocite.embeddings.engines.torch.schedule import Pair
from cocite.embeddings.vectors import VALUES_IN_MEMORY


class FloatRows:
    """The rows of a tensor, whatever its kind and device, as float32 arrays.

    One that is mapped from a file is opened anew for each window of so many rows, as pages around those that were read
    stay in memory for as long as it is open.
    """

    def __init__(self, opened: Callable[[], Tensor], window: int | None = None) -> None:
        self.opened = opened
        self.shape = tuple(opened().shape)
        self.window = window or max(1, len(self))

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> NDArray[np.float32]:
        """A copy of some rows."""
        found, windows = np.empty((len(rows), self.shape[1]), dtype=np.float32), rows // self.window
        for window in np.unique(windows):
            chosen, vectors = windows == window, self.opened()
            found[chosen] = vectors[torch.from_numpy(rows[chosen]).to(vectors.device)].float().cpu().numpy()
        return found


class Partitions:
    """All partitions, as they were last written, or as they begin."""

    def __init__(
        self, state: TrainingState, progress: Progress, starts: Rows, first: FirstVectors, dimension: int
    ) -> None:
        self.state, self.progress, self.starts, self.first = state, progress, starts, first
        self.rows_at_once = max(1, VALUES_IN_MEMORY // dimension)
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
            for kind, numbers in zip(KINDS, (vectors, squares), strict=True):
                for first in range(0, len(numbers), self.rows_at_once):
                    part_of_file = slice(first, first + self.rows_at_once)
                    numbers[part_of_file] = self.state.load(kind, part, self.versions[part])[part_of_file]

    def keep(self, part: int, vectors: Tensor, squares: Tensor) -> None:
        """Write a new version of a partition; the one before goes, unless a killed training would go on from it."""
        before = self.versions[part]
        self.state.save(part, before + 1, vectors, squares)
        self.versions[part] += 1
        if before != self.progress.versions[part]:
            self.state.remove(part, before)

    def vectors(self) -> list[FloatRows]:
        """The vectors of all partitions, read from disk as they are asked for."""
        load = partial(self.state.load, "vectors")
        return [
            FloatRows(partial(load, part, version), self.rows_at_once) for part, version in enumerate(self.versions)
        ]


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
