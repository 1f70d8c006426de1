"""Vectors of documents on their way to a table: a file that batches fill in place, and that survives a kill.

vectors.bin   float32, documents × dimension, in their order; rows that no batch has filled hold nothing
reached.json  how far it has come (`Progress`): all batches before the next one are on the disk

Since the file changes in place, its checksums are in `reached.json`: one for each window that is done, and one for the
batches of the window at work. From the first window on that does not have its checksum, vectors are computed again.
"""

import os
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.core.atomic import read_json
from cocite.core.checkpoints import write_checked_json
from cocite.core.progress import report

VECTORS, REACHED = "vectors.bin", "reached.json"
SECONDS_BETWEEN_SYNCS = 20.0
BYTES_OF_NUMBER = 4


@dataclass(kw_only=True)
class Progress:
    """How far the file is filled."""

    checksums: list[int] = field(default_factory=list)
    """The CRC-32 of the rows of each window that is done, without zeros at its end."""
    batches: int = 0
    """Batches that are done of the next window."""
    checksum: int = 0
    """The CRC-32 of their vectors, batch by batch."""


@contextmanager
def open_vectors(folder: Path, dimension: int, window: int) -> Iterator["VectorFile"]:
    """The file of vectors in a folder, a new one if there is none; a window is so many documents."""
    folder.mkdir(exist_ok=True)
    (folder / VECTORS).touch()
    with (folder / VECTORS).open("r+b") as file:
        yield VectorFile(file, folder / REACHED, dimension, window)


class VectorFile:
    """The file, and how far it is filled."""

    def __init__(self, file: BinaryIO, reached: Path, dimension: int, window: int) -> None:
        self.file = file
        self.reached = reached
        self.width = dimension * BYTES_OF_NUMBER
        self.window = window
        self.progress = Progress(**read_json(reached)) if reached.exists() else Progress()
        self.synced_at = time.monotonic()
        done = self.progress.checksums
        spoilt = next((number for number, checksum in enumerate(done) if self._checksum(number) != checksum), None)
        if spoilt is not None:
            self._begin_again(spoilt)
        # The checksum of a window leaves zeros at its end out, and so does not show whether they are there.
        file.truncate(max(file.seek(0, os.SEEK_END), len(self.progress.checksums) * window * self.width))

    @property
    def reached_window(self) -> int:
        """The window at work, from 0."""
        return len(self.progress.checksums)

    def check(self, rows: Sequence[int]) -> None:
        """Begin the window at work again unless these rows, those of its batches so far, hold what was written."""
        checksum = 0
        for row in rows:
            self.file.seek(row * self.width)
            checksum = zlib.crc32(self.file.read(self.width), checksum)
        if checksum != self.progress.checksum:
            self._begin_again(self.reached_window)

    def put(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Write the vectors of the next batch, of the documents in these rows."""
        for row, vector in zip(rows.tolist(), vectors, strict=True):
            self.file.seek(row * self.width)
            self.file.write(vector.tobytes())
        self.progress.batches += 1
        self.progress.checksum = zlib.crc32(vectors.tobytes(), self.progress.checksum)
        if time.monotonic() - self.synced_at >= SECONDS_BETWEEN_SYNCS:
            self.file.flush()
            os.fsync(self.file.fileno())
            write_checked_json(self.reached, asdict(self.progress))
            self.synced_at = time.monotonic()

    def end_window(self) -> None:
        """Count the window at work as done."""
        self.progress = Progress(checksums=[*self.progress.checksums, self._checksum(self.reached_window)])

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of these documents, rising and close to one another, rows × dimension."""
        numbers = self.width // BYTES_OF_NUMBER
        if len(rows) == 0:
            return np.empty((0, numbers), dtype=np.float32)
        self.file.seek(int(rows[0]) * self.width)
        content = self.file.read((int(rows[-1]) - int(rows[0]) + 1) * self.width)
        return np.frombuffer(content, dtype=np.float32).reshape(-1, numbers)[rows - rows[0]]

    def _begin_again(self, window: int) -> None:
        first = window * self.window
        report(
            f"{self.file.name}: not all vectors from document {first:,} on are what was written; embedding them again"
        )
        self.progress = Progress(checksums=self.progress.checksums[:window])

    def _checksum(self, window: int) -> int:
        # Behind the last vector of a window, the file may end, or go on with zeros.
        self.file.seek(window * self.window * self.width)
        return zlib.crc32(self.file.read(self.window * self.width).rstrip(b"\0"))
