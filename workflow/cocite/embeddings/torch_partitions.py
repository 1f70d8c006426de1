"""The partitions of a graph embedding: in files, in the memory of a device, and their initial vectors.

The state of a training consists of

    progress.json             the position, and the version of each partition that belongs to it
    vectors/<part>.<version>.npy    vectors of a partition, papers × dimension; squares/ has a number per paper
    scores/<epoch>.json       link prediction after each epoch
    edges/                    the buckets (see `torch_buckets.py`)

A partition that has changed and leaves memory becomes a new version. A commit writes what has changed in memory,
replaces `progress.json`, and then removes older versions, so that a killed training resumes from its last commit.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.atomic import read_json, remove_checked
from cocite.core.checkpoints import open_state, open_whole, write_checked_json
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.randomness import derive_seed
from cocite.core.tables.files import open_table
from cocite.core.written_ids import look_up
from cocite.embeddings.edges import Papers, Rows
from cocite.embeddings.engines import Torch
from cocite.embeddings.imported import partition_starts
from cocite.embeddings.torch_buckets import COUNTS, Pair, bucket_file
from cocite.embeddings.torch_step import Side
from cocite.embeddings.trained import VALUES_IN_MEMORY, score_file

PROGRESS, EDGES = "progress.json", "edges"
KINDS = ("vectors", "squares")
DEVIATION = 1e-3
"""Standard deviation of first vectors, as in PyTorch-BigGraph."""


@dataclass(frozen=True, kw_only=True)
class Position:
    """What comes next: a stretch of a round of an epoch, all counted from 0."""

    epoch: int = 0
    round: int = 0
    stretch: int = 0


@dataclass(kw_only=True)
class Progress:
    """How far a training has come."""

    partitions: int
    position: Position = Position()
    versions: list[int] = field(default_factory=list)
    """The version of each partition; 0 for its first vectors, which have no file."""
    held: list[int | None] = field(default_factory=list)
    """The partitions on the one device, in their places, on which the rounding of bfloat16 depends."""


class TrainingState:
    """The folder of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, fingerprint: dict[str, Any]) -> Progress | None:
        """How far the training has come; None after the state of another training is removed."""
        can_resume = open_state(self.folder, fingerprint, work="training", implied=self._implied)
        return self._progress() if can_resume else None

    def save(self, part: int, version: int, vectors: Tensor, squares: Tensor) -> None:
        """Write a version of a partition; NumPy knows bfloat16 only as 16 bits."""
        for kind, numbers in zip(KINDS, (vectors.cpu(), squares.cpu()), strict=True):
            storable = numbers.view(torch.uint16) if numbers.dtype == torch.bfloat16 else numbers
            with open_whole(self._file(kind, part, version)) as file:
                np.save(file, storable.numpy(), allow_pickle=False)

    def load(self, kind: str, part: int, version: int) -> Tensor:
        """The vectors or squares of a version, mapped from disk."""
        numbers = torch.from_numpy(np.load(self._file(kind, part, version), mmap_mode="c", allow_pickle=False))
        return numbers.view(torch.bfloat16) if numbers.dtype == torch.uint16 else numbers

    def remove(self, part: int, version: int) -> None:
        """Remove a version of a partition."""
        for kind in KINDS:
            remove_checked(self._file(kind, part, version))

    def commit(self, progress: Progress) -> None:
        """Make a killed training resume from `progress`, and remove all versions that are not in it."""
        write_checked_json(self.folder / PROGRESS, asdict(progress))
        kept = {self._file(kind, part, version) for kind in KINDS for part, version in enumerate(progress.versions)}
        for kind in KINDS:
            for path in (self.folder / kind).glob("*.npy"):
                if path not in kept:
                    remove_checked(path)

    def _progress(self) -> Progress | None:
        if not (self.folder / PROGRESS).exists():
            return None
        written = read_json(self.folder / PROGRESS)
        return Progress(**{**written, "position": Position(**written["position"])})

    def _implied(self) -> Iterator[Path]:
        """The files that the progress needs; the first commit comes before the buckets."""
        edges, progress = self.folder / EDGES, self._progress()
        if edges.exists():
            yield self.folder / PROGRESS
        if progress is None:
            return
        for part, version in enumerate(progress.versions):
            if version > 0:
                yield from (self._file(kind, part, version) for kind in KINDS)
        for epoch in range(1, progress.position.epoch + 1):
            yield score_file(self.folder, epoch)
        if edges.exists():
            yield edges / COUNTS
            parts = range(progress.partitions)
            yield from (bucket_file(edges, (source, target)) for source in parts for target in parts)

    def _file(self, kind: str, part: int, version: int) -> Path:
        return self.folder / kind / f"{part}.{version}.npy"


class FloatRows:
    """The rows of a tensor of any kind and device as float32 arrays.

    A tensor that is mapped from a file is opened for each window of rows, as the pages around those that were read stay
    in memory while it is open.
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
    """All partitions, as last written, or with first vectors; `ids` are the corpus ids of all papers by row."""

    def __init__(self, state: TrainingState, progress: Progress, ids: Papers, settings: Torch, *, seed: int) -> None:
        self.state, self.progress, self.ids, self.settings, self.seed = state, progress, ids, settings, seed
        self.starts = partition_starts(len(ids), progress.partitions)
        self.rows_at_once = max(1, VALUES_IN_MEMORY // settings.dimension)
        self.versions = list(progress.versions)

    def papers(self, part: int) -> int:
        """Number of papers of a partition."""
        return int(self.starts[part + 1] - self.starts[part])

    def fetch(self, part: int, vectors: Tensor, squares: Tensor) -> None:
        """Fill vectors and squares with those of a partition."""
        if self.versions[part] == 0:
            self._fill_first(vectors, int(self.starts[part]))
            squares.zero_()
        else:
            for kind, numbers in zip(KINDS, (vectors, squares), strict=True):
                for first in range(0, len(numbers), self.rows_at_once):
                    part_of_file = slice(first, first + self.rows_at_once)
                    numbers[part_of_file] = self.state.load(kind, part, self.versions[part])[part_of_file]

    def keep(self, part: int, vectors: Tensor, squares: Tensor) -> None:
        """Write a new version of a partition; the one before is removed, unless it is in the last commit."""
        before = self.versions[part]
        self.state.save(part, before + 1, vectors, squares)
        self.versions[part] += 1
        if before != self.progress.versions[part]:
            self.state.remove(part, before)

    def vectors(self) -> list[FloatRows]:
        """The vectors of all partitions, read from disk on demand."""
        loads = [partial(self.state.load, "vectors", part, version) for part, version in enumerate(self.versions)]
        return [FloatRows(load, self.rows_at_once) for load in loads]

    def _fill_first(self, vectors: Tensor, first: int) -> None:
        """Fill the first vectors of a partition, papers × dimension, that begins at row `first`."""
        drawn = torch.Generator(vectors.device).manual_seed(derive_seed(self.seed, "torch", "first vectors", first))
        vectors.normal_(std=DEVIATION, generator=drawn)
        for start in self.settings.files:
            self._take_over(start, vectors, self.ids[first : first + len(vectors)], first)

    def _take_over(self, start: Path, vectors: Tensor, papers: Papers, first: int) -> None:
        order, dimension = np.argsort(papers), vectors.shape[1]
        rising, kept = papers[order], 0
        with open_table(start, "graph_embeddings") as table:
            for batch in table.iter_batches(max(1, VALUES_IN_MEMORY // dimension), columns=["corpusid", "vector"]):
                older = batch.column("vector").flatten().to_numpy().reshape(len(batch), -1)
                if older.shape[1] != dimension:
                    found = f"whose vectors have {older.shape[1]} dimensions; dimension is {dimension}"
                    raise InputError(f"--settings: start is {start}, {found}.")
                at, is_there = look_up(rising, batch.column("corpusid").to_numpy())
                at, taken = at[is_there], torch.from_numpy(older[is_there])
                if self.settings.max_norm is not None:
                    taken = torch.renorm(taken, 2, 0, self.settings.max_norm)
                vectors[torch.from_numpy(order[at]).to(vectors.device)] = taken.to(vectors.device, vectors.dtype)
                kept += len(at)
        report(f"rows from {first:,} on: {kept:,} of {len(papers):,} papers begin with their vectors in {start}")


class Block:
    """Two partitions, or the only one, in the memory of a device."""

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
        """Load partitions to be trained; those that make room are written."""
        for part in pair:
            if part not in self.held:
                slot = next(slot for slot, other in enumerate(self.held) if other not in pair)
                self._write(slot)
                self.held[slot] = part
                self.partitions.fetch(part, *self._of(slot, part))

    def hold_again(self, held: list[int | None]) -> None:
        """Load the partitions that were held, each in its place."""
        self.held = list(held)
        for slot, part in enumerate(held):
            if part is not None:
                self.partitions.fetch(part, *self._of(slot, part))

    def side(self, part: int) -> Side:
        """The rows of a partition that is held."""
        return Side(first=self.held.index(part) * self.size, papers=self.partitions.papers(part))

    def write(self) -> None:
        """Write what is held, if it has changed since it was written."""
        for slot in range(len(self.held)):
            self._write(slot)
        self.changed = False

    def leave(self) -> None:
        """Write the partitions in memory, and free them."""
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
