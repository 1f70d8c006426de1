"""The edges to train on, in a file (bucket) for each pair of partitions, and the order of buckets in an epoch.

Two partitions are on each device at a time. One device swaps one partition at a time. Several devices train at once on
different partitions, in rounds of a tournament in which each two partitions meet.

A bucket keeps the random order of the import. It is read a stretch at a time, one piece of its file, and each epoch
shuffles the edges of a stretch.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.atomic import add_mark, atomic_path, read_json, write_json
from cocite.core.errors import InputError
from cocite.core.randomness import generator
from cocite.embeddings.edges import TRAINING, Rows
from cocite.embeddings.imported import ImportedFolder

COUNTS = "counts.json"
ENDS = [("source", np.int32), ("target", np.int32)]
WEIGHT = [("weight", np.float32)]

Bucket = tuple[int, int]
Pair = tuple[int, ...]
"""Partitions that are on a device at one time: two, or the only one there is."""


class Buckets:
    """The files of all buckets in a folder; rows are counted within the partitions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        written = read_json(folder / COUNTS)
        self.counts: list[list[int]] = written["edges"]
        self.weighted: bool = written["weighted"]
        self.kind = np.dtype(ENDS + WEIGHT if self.weighted else ENDS)

    @property
    def edges(self) -> int:
        """Number of all edges."""
        return sum(map(sum, self.counts))

    def read(self, bucket: Bucket, first: int, most: int) -> tuple[Tensor, Tensor]:
        """At most `most` edges from one on: rows, 2 × edges, and weights. Raises `InputError` if some are missing."""
        path = bucket_file(self.folder, bucket)
        wanted = min(most, self.counts[bucket[0]][bucket[1]] - first)
        found = np.fromfile(path, dtype=self.kind, count=wanted, offset=first * self.kind.itemsize)
        if len(found) < wanted:
            raise InputError(f"{path}: was cut short while it was in use; start the training again.")
        ends = torch.from_numpy(np.stack([found["source"], found["target"]]))
        weights = torch.from_numpy(found["weight"].copy()) if self.weighted else torch.ones(wanted)
        return ends, weights


def bucket_file(folder: Path, bucket: Bucket) -> Path:
    """The file of the edges from one partition to another."""
    return folder / "{}-{}.edges".format(*bucket)


def deal_into_buckets(graph: ImportedFolder, starts: Rows, output: Path) -> Buckets:
    """Write the edges of an imported graph by the partitions that begin at `starts`."""
    partitions = len(starts) - 1
    counts = np.zeros((partitions, partitions), dtype=np.int64)
    weighted = False
    with atomic_path(output) as folder:
        folder.mkdir(parents=True)
        for lhs, rhs in product(range(partitions), repeat=2):
            bucket_file(folder, (lhs, rhs)).touch()
        for sources, targets, weights in graph.weighted_edges(TRAINING):
            weighted = weights is not None
            records = np.empty(len(sources), dtype=ENDS + WEIGHT if weighted else ENDS)
            records["source"], records["target"] = sources, targets
            if weights is not None:
                records["weight"] = weights
            for bucket, edges in _dealt(records, starts):
                counts[bucket] += len(edges)
                with bucket_file(folder, bucket).open("ab") as file:
                    edges.tofile(file)
        write_json(folder / COUNTS, {"edges": counts.tolist(), "weighted": weighted})
        for path in list(folder.iterdir()):
            add_mark(path)
    return Buckets(output)


def _dealt(edges: NDArray[np.void], starts: Rows) -> Iterator[tuple[Bucket, NDArray[np.void]]]:
    """The edges of each bucket, in their order, with rows counted within the partitions."""
    partitions = len(starts) - 1
    number = np.zeros(len(edges), dtype=np.int64)
    for end in ("source", "target"):
        part = np.searchsorted(starts, edges[end], side="right") - 1
        number = number * partitions + part
        edges[end] -= starts[part]
    ends = np.cumsum(np.bincount(number, minlength=partitions**2))
    for bucket, dealt in enumerate(np.split(edges[np.argsort(number, kind="stable")], ends[:-1])):
        if len(dealt):
            yield divmod(bucket, partitions), dealt


def rounds_of_epoch(partitions: int, devices: int, *, seed: int, epoch: int) -> list[list[Pair]]:
    """Rounds of at most `devices` pairs without a partition in common; each two partitions meet in one of them."""
    if partitions == 1:
        return [[(0,)]]
    names = generator(seed, "torch", "order of partitions", epoch).permutation(partitions).tolist()
    rounds = _tournament(partitions, devices) if devices > 1 else [[pair] for pair in _walk(partitions)]
    return [[tuple(names[part] for part in pair) for pair in pairs] for pairs in rounds]


def buckets_of_round(rounds: list[list[Pair]], number: int) -> list[list[Bucket]]:
    """The buckets of each pair of a round: between the two partitions, and once an epoch each to itself."""
    met = {part for pairs in rounds[:number] for pair in pairs for part in pair}
    return [
        [(first, second) for first in pair for second in pair if first != second or first not in met]
        for pair in rounds[number]
    ]


def _walk(partitions: int) -> list[Pair]:
    """All pairs, each of which shares a partition with the one before."""
    walk: list[Pair] = []
    for first in range(partitions - 1):
        others = range(first + 1, partitions)
        walk += [(first, other) for other in (others if first % 2 == 0 else reversed(others))]
    return walk


def _tournament(partitions: int, devices: int) -> list[list[Pair]]:
    """The circle method: one stays, the others move on by a seat each round; with an odd number one rests."""
    seats = list(range(partitions + partitions % 2))
    rounds = []
    for _ in seats[1:]:
        facing = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
        pairs: list[Pair] = [pair for pair in facing if max(pair) < partitions]
        cuts = [*range(0, len(pairs), devices), len(pairs)]
        rounds += [pairs[start:stop] for start, stop in pairwise(cuts)]
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds
