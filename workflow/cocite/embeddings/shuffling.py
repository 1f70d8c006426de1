"""Any number of edges, put into an order drawn by hash, in bounded memory.

Each edge has a random 64-bit key; the order is that of the keys. Edges are dealt out to piles on disk by the first bits
of their keys, and each pile is then sorted in memory. So the order depends on the keys alone, not on the order that the
edges came in, nor on the number of piles.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

EDGES_IN_PILE = 4_000_000
MOST_PILES = 512
EDGE = np.dtype([("key", np.uint64), ("lhs", np.int32), ("rhs", np.int32)])


class Piles:
    """Edges on their way into order."""

    def __init__(self, folder: Path, opened: ExitStack, *, expected: int) -> None:
        """Make piles in a folder for about so many edges; `opened` closes their files."""
        folder.mkdir(parents=True)
        self.bits = min(MOST_PILES.bit_length() - 1, (max(1, expected - 1) // EDGES_IN_PILE).bit_length())
        self.paths = [folder / str(pile) for pile in range(2**self.bits)]
        self.files = [opened.enter_context(path.open("wb")) for path in self.paths]

    def add(self, keys: NDArray[np.uint64], lhs: NDArray[np.int32], rhs: NDArray[np.int32]) -> None:
        """Add edges with their keys."""
        edges = np.empty(len(keys), dtype=EDGE)
        edges["key"], edges["lhs"], edges["rhs"] = keys, lhs, rhs
        if self.bits == 0:
            edges.tofile(self.files[0])
            return
        pile = (keys >> np.uint64(64 - self.bits)).astype(np.uint16)
        ends = np.cumsum(np.bincount(pile, minlength=len(self.files)))
        dealt = np.split(edges[np.argsort(pile, kind="stable")], ends[:-1])
        for file, part in zip(self.files, dealt, strict=True):
            part.tofile(file)

    def in_order(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """All edges in the order of their keys, in blocks; each pile is removed once it is read."""
        for path, file in zip(self.paths, self.files, strict=True):
            file.close()
            edges = np.fromfile(path, dtype=EDGE)
            path.unlink()
            order = np.argsort(np.ascontiguousarray(edges["key"]))
            yield edges["lhs"][order], edges["rhs"][order]
