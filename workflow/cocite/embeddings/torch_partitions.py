"""The partitions of a graph embedding and the edges between them, in files and in the memory of a device. The state:

    progress.json                   the position, and the version of each partition that belongs to it
    vectors/<part>.<version>.npy    vectors of a partition, papers × dimension; squares/ has a number per paper
    scores/<epoch>.json             link prediction after each epoch
    edges/                          a file (bucket) of the edges to train on for each pair of partitions

A partition that has changed and leaves memory becomes a new version. A commit writes what has changed in memory,
replaces `progress.json`, and then removes older versions, so that a killed training resumes from its last commit. Two
partitions are on each device at a time. Several devices train in rounds of a tournament in which each two partitions
meet. A bucket keeps the random order of the import, and is read and shuffled a stretch at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.atomic import add_mark, atomic_path, read_json, remove_checked, write_json
from cocite.core.checkpoints import open_state, open_whole, write_checked_json
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables.files import open_table
from cocite.core.written_ids import look_up
from cocite.embeddings.edges import TRAINING, Papers, Rows
from cocite.embeddings.engines import Torch
from cocite.embeddings.imported import ImportedFolder, partition_starts
from cocite.embeddings.torch_step import Side
from cocite.embeddings.trained import VALUES_IN_MEMORY, score_file

PROGRESS, EDGES = "progress.json", "edges"
KINDS = ("vectors", "squares")
DEVIATION = 1e-3  # standard deviation of first vectors, as in PyTorch-BigGraph
COUNTS = "counts.json"
ENDS = [("source", np.int32), ("target", np.int32)]
WEIGHT = [("weight", np.float32)]

Bucket = tuple[int, int]
Pair = tuple[int, ...]  # partitions that are on a device at one time: two, or the only one there is


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
    partitions, weighted = len(starts) - 1, False
    counts = np.zeros((partitions, partitions), dtype=np.int64)
    with atomic_path(output) as folder:
        folder.mkdir(parents=True)
        for sources, targets, weights in graph.weighted_edges(TRAINING):
            weighted = weights is not None
            edges = np.empty(len(sources), dtype=ENDS + WEIGHT if weighted else ENDS)
            if weights is not None:
                edges["weight"] = weights
            number = np.zeros(len(edges), dtype=np.int64)
            for end, rows in (("source", sources), ("target", targets)):
                part = np.searchsorted(starts, rows, side="right") - 1
                edges[end] = rows - starts[part]
                number = number * partitions + part
            ends = np.cumsum(np.bincount(number, minlength=partitions**2))
            for at, dealt in enumerate(np.split(edges[np.argsort(number, kind="stable")], ends[:-1])):
                bucket = divmod(at, partitions)
                counts[bucket] += len(dealt)
                with bucket_file(folder, bucket).open("ab") as file:
                    dealt.tofile(file)
        write_json(folder / COUNTS, {"edges": counts.tolist(), "weighted": weighted})
        for path in list(folder.iterdir()):
            add_mark(path)
    return Buckets(output)


def rounds_of_epoch(partitions: int, devices: int, *, seed: int, epoch: int) -> list[list[Pair]]:
    """Rounds of at most `devices` pairs without a partition in common; each two partitions meet in one of them."""
    if partitions == 1:
        return [[(0,)]]
    rounds: list[list[Pair]] = []
    if devices == 1:  # each pair shares a partition with the one before
        for first in range(partitions - 1):
            others = range(first + 1, partitions)
            rounds += [[(first, other)] for other in (others if first % 2 == 0 else reversed(others))]
    else:  # the circle method: one stays, the others move on by a seat each round; with an odd number one rests
        seats = list(range(partitions + partitions % 2))
        for _ in seats[1:]:
            facing = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
            pairs: list[Pair] = [pair for pair in facing if max(pair) < partitions]
            rounds += [pairs[start : start + devices] for start in range(0, len(pairs), devices)]
            seats = [seats[0], seats[-1], *seats[1:-1]]
    names = generator(seed, "torch", "order of partitions", epoch).permutation(partitions).tolist()
    return [[tuple(names[part] for part in pair) for pair in pairs] for pairs in rounds]


def buckets_of_round(rounds: list[list[Pair]], number: int) -> list[list[Bucket]]:
    """The buckets of each pair of a round: between the two partitions, and once an epoch each to itself."""
    met = {part for pairs in rounds[:number] for pair in pairs for part in pair}
    return [
        [(first, second) for first in pair for second in pair if first != second or first not in met]
        for pair in rounds[number]
    ]


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
            with open_whole(self.file(kind, part, version)) as file:
                np.save(file, storable.numpy(), allow_pickle=False)

    def load(self, kind: str, part: int, version: int) -> Tensor:
        """The vectors or squares of a version, mapped from disk."""
        numbers = torch.from_numpy(np.load(self.file(kind, part, version), mmap_mode="c", allow_pickle=False))
        return numbers.view(torch.bfloat16) if numbers.dtype == torch.uint16 else numbers

    def commit(self, progress: Progress) -> None:
        """Make a killed training resume from `progress`, and remove all versions that are not in it."""
        write_checked_json(self.folder / PROGRESS, asdict(progress))
        kept = {self.file(kind, part, version) for kind in KINDS for part, version in enumerate(progress.versions)}
        for path in {path for kind in KINDS for path in (self.folder / kind).glob("*.npy")} - kept:
            remove_checked(path)

    def file(self, kind: str, part: int, version: int) -> Path:
        """The file of the vectors or squares of a version."""
        return self.folder / kind / f"{part}.{version}.npy"

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
                yield from (self.file(kind, part, version) for kind in KINDS)
        for epoch in range(1, progress.position.epoch + 1):
            yield score_file(self.folder, epoch)
        if edges.exists():
            yield edges / COUNTS
            parts = range(progress.partitions)
            yield from (bucket_file(edges, bucket) for bucket in product(parts, parts))


class FloatRows:
    """The rows of a tensor of any kind and device as float32 arrays. A tensor mapped from a file is opened for each
    window of rows, as pages that were read stay in memory while it is."""

    def __init__(self, opened: Callable[[], Tensor], window: int | None = None) -> None:
        self.opened, self.shape = opened, tuple(opened().shape)
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
            first = int(self.starts[part])
            drawn = torch.Generator(vectors.device).manual_seed(derive_seed(self.seed, "torch", "first vectors", first))
            vectors.normal_(std=DEVIATION, generator=drawn)
            for start in self.settings.files:
                self._take_over(start, vectors, self.ids[first : first + len(vectors)], first)
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
        for kind in KINDS if before != self.progress.versions[part] else ():
            remove_checked(self.state.file(kind, part, before))

    def vectors(self) -> list[FloatRows]:
        """The vectors of all partitions, read from disk on demand."""
        loads = [partial(self.state.load, "vectors", part, version) for part, version in enumerate(self.versions)]
        return [FloatRows(load, self.rows_at_once) for load in loads]

    def _take_over(self, start: Path, vectors: Tensor, papers: Papers, first: int) -> None:
        order, dimension = np.argsort(papers), vectors.shape[1]
        rising, kept = papers[order], 0
        with open_table(start, "graph_embeddings") as table:
            for batch in table.iter_batches(self.rows_at_once, columns=["corpusid", "vector"]):
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
