"""The vectors of an embedding that is under way: one row for each document, filled batch by batch.

vectors.bin   float32, documents × dimension, in the order of the documents; rows that no batch has filled hold nothing
reached.json  how far it has come: all batches before this one are on the disk

Batches follow from the documents alone and are counted in windows of documents. So an embedding that was killed goes on
with the batch after the last that is known to be on the disk, and comes to the same vectors.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.ground.space import explain_full_disk
from cocite.tables.files import read_json, write_json

SECONDS_BETWEEN_SYNCS = 20.0

Place = tuple[int, int]
"""A window of documents, and a batch in it, both from 0."""


@contextmanager
def open_vectors(folder: Path, dimension: int) -> Iterator["VectorFile"]:
    """Open the file in a folder, or make it. Raises `InputError` where the disk is full."""
    path = folder / "vectors.bin"
    path.touch()
    with explain_full_disk(folder), path.open("r+b") as file:
        yield VectorFile(file, folder / "reached.json", dimension)


class VectorFile:
    """The file, and how far it is filled."""

    def __init__(self, file: BinaryIO, progress: Path, dimension: int) -> None:
        self.file = file
        self.progress = progress
        self.dimension = dimension
        self.reached = _reached(progress)
        self.synced_at = time.monotonic()

    def put(self, rows: NDArray[np.int64], vectors: NDArray[np.float32], *, then: Place) -> None:
        """Write the vectors of these documents; `then` is the batch that comes after them."""
        for row, vector in zip(rows.tolist(), vectors, strict=True):
            self.file.seek(row * self.dimension * vectors.itemsize)
            self.file.write(vector.tobytes())
        if time.monotonic() - self.synced_at >= SECONDS_BETWEEN_SYNCS:
            self._sync(then)

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of these documents, rising and close to one another, rows × dimension."""
        if len(rows) == 0:
            return np.empty((0, self.dimension), dtype=np.float32)
        self.file.seek(int(rows[0]) * self.dimension * 4)
        content = self.file.read((int(rows[-1]) - int(rows[0]) + 1) * self.dimension * 4)
        return np.frombuffer(content, dtype=np.float32).reshape(-1, self.dimension)[rows - rows[0]]

    def _sync(self, reached: Place) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        write_json(self.progress, dict(zip(("window", "batch"), reached, strict=True)))
        self.synced_at = time.monotonic()


def _reached(progress: Path) -> Place:
    if not progress.exists():
        return 0, 0
    reached = read_json(progress)
    return reached["window"], reached["batch"]
