"""The state of a training: the files of its partitions, and how far it has come.

    progress.json             the position, and which version of each partition belongs to it
    vectors/<part>.<version>.npy    vectors of a partition, papers × dimension; squares/ has a number a paper
    scores/<epoch>.json       link prediction after each epoch
    edges/                    the buckets (see `buckets.py`)

A partition that has changed and leaves memory becomes a new version. A commit writes what has changed in memory and
then replaces `progress.json`: only then do the versions go that it named before, so that a training that is killed at
any moment goes on from its last commit.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cocite.core.atomic import read_json
from cocite.core.checkpoints import open_state, open_whole, write_checked_json
from cocite.core.checksums import remove_checked
from cocite.embeddings.engines.torch.buckets import COUNTS, bucket_file

PROGRESS, EDGES = "progress.json", "edges"
KINDS = ("vectors", "squares")


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
    """Number of partitions."""
    position: Position = Position()
    """What comes next."""
    versions: list[int] = field(default_factory=list)
    """The version of each partition; 0 stands for the vectors that it begins with, of which there is no file."""
    held: list[int | None] = field(default_factory=list)
    """The partitions that the one device held, in their places, by which the rounding of bfloat16 is drawn."""


class TrainingState:
    """The folder of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, fingerprint: dict[str, Any]) -> Progress | None:
        """How far the training has come; None after what belongs to another is removed."""
        can_resume = open_state(self.folder, fingerprint, work="training", implied=self._implied)
        return self._progress() if can_resume else None

    def save(self, part: int, version: int, vectors: Tensor, squares: Tensor) -> None:
        """Write a version of a partition."""
        for kind, numbers in zip(KINDS, (vectors, squares), strict=True):
            with open_whole(self._file(kind, part, version)) as file:
                np.save(file, _storable(numbers.cpu()), allow_pickle=False)

    def load(self, kind: str, part: int, version: int) -> Tensor:
        """The vectors or squares of a version, mapped from disk."""
        numbers = torch.from_numpy(np.load(self._file(kind, part, version), mmap_mode="c", allow_pickle=False))
        return numbers.view(torch.bfloat16) if numbers.dtype == torch.uint16 else numbers

    def remove(self, part: int, version: int) -> None:
        """Remove a version of a partition."""
        for kind in KINDS:
            remove_checked(self._file(kind, part, version))

    def commit(self, progress: Progress) -> None:
        """Make the versions in `progress` those that a killed training goes on from, and remove all others."""
        write_checked_json(self.folder / PROGRESS, asdict(progress))
        kept = {self._file(kind, part, version) for kind in KINDS for part, version in enumerate(progress.versions)}
        for kind in KINDS:
            for path in (self.folder / kind).glob("*.npy"):
                if path not in kept:
                    remove_checked(path)

    def keep_scores(self, epoch: int, scores: dict[str, Any]) -> None:
        """Keep the scores of an epoch, the first of which is 1."""
        write_checked_json(self._score(epoch), scores)

    def scores(self, epochs: int) -> list[dict[str, Any]]:
        """The scores of all epochs, the first first."""
        return [read_json(self._score(epoch)) for epoch in range(1, epochs + 1)]

    def _progress(self) -> Progress | None:
        if not (self.folder / PROGRESS).exists():
            return None
        written = read_json(self.folder / PROGRESS)
        return Progress(**{**written, "position": Position(**written["position"])})

    def _implied(self) -> Iterator[Path]:
        """The files that there must be at this progress; the first commit comes before the buckets."""
        edges, progress = self.folder / EDGES, self._progress()
        if edges.exists():
            yield self.folder / PROGRESS
        if progress is None:
            return
        for part, version in enumerate(progress.versions):
            if version > 0:
                yield from (self._file(kind, part, version) for kind in KINDS)
        for epoch in range(1, progress.position.epoch + 1):
            yield self._score(epoch)
        if edges.exists():
            yield edges / COUNTS
            parts = range(progress.partitions)
            yield from (bucket_file(edges, (source, target)) for source in parts for target in parts)

    def _score(self, epoch: int) -> Path:
        return self.folder / "scores" / f"{epoch}.json"

    def _file(self, kind: str, part: int, version: int) -> Path:
        return self.folder / kind / f"{part}.{version}.npy"


def _storable(numbers: Tensor) -> np.ndarray[Any, Any]:
    """The numbers in the same memory; NumPy knows bfloat16 only as 16 bits."""
    storable: np.ndarray[Any, Any] = (
        numbers.view(torch.uint16) if numbers.dtype == torch.bfloat16 else numbers
    ).numpy()
    return storable
