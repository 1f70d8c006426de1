"""What every ranking of neighbours shares: a shard of the queries in groups, the state it resumes from, and its rows.

The state is a folder that Snakemake does not know (see `core/checkpoints.py`):

group.json       the queries of a group
groups/          the keys of the neighbours of each finished group of queries
going.npz        the pools of the group that is being searched, and the number of row groups that they have met
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cocite.core.atomic import read_json
from cocite.core.checkpoints import open_state, open_whole, remove_state, write_checked_json
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.core.progress import report
from cocite.core.tables.files import write_table
from cocite.core.tables.splits import read_kept_out, read_queries
from cocite.neighbours.distances import FARTHEST, Keys, Numbers, distances_in, numbers_in
from cocite.neighbours.pools import Pools

RESERVED_MB = 400
"""Memory for the program and what it writes."""
ROWS_WRITTEN = 500_000
"""Rows of neighbours that are written at once."""
SECONDS_BETWEEN_SAVES = 60.0

IdsOf = Callable[[Numbers], Ids]
"""The ids of papers by the numbers that stand for them."""


class Checkpoint:
    """How far the search of one group of queries is."""

    def __init__(self, file: Path, first: int) -> None:
        self.file, self.first = file, first
        self.saved = time.monotonic()

    def restore(self, pools: Pools) -> int:
        """Fill the pools as they were saved; return the number of row groups that they have met."""
        if not self.file.exists():
            return 0
        with np.load(self.file) as saved:
            if int(saved["first"]) != self.first:
                return 0
            pools.keys[:], pools.counts[:], pools.worst[:] = saved["keys"], saved["counts"], saved["worst"]
            return int(saved["met"])

    def save(self, pools: Pools, met: int) -> None:
        """Save the pools and how many row groups they have met, if the last save is long enough ago."""
        if time.monotonic() - self.saved < SECONDS_BETWEEN_SAVES:
            return
        with open_whole(self.file) as file:
            np.savez(file, keys=pools.keys, counts=pools.counts, worst=pools.worst, met=met, first=self.first)
        self.saved = time.monotonic()


def open_search(state: Path, fingerprint: dict[str, Any], room: int) -> int:
    """Make the folder ready; return the size of a group of queries, which is at most `room`.

    Finished groups stay if they belong to the same search and are not too large; others are removed. So a search that
    is tried again with more memory resumes with the groups that it began with.
    """
    group = state / "group.json"
    if open_state(state, fingerprint, work="search", independent=True):
        if group.exists():
            size: int = read_json(group)
            if size <= room:
                finished = len(list((state / "groups").glob("*.np[yz]")))
                report(f"going on after {finished} groups of a search that was killed")
                return size
            report(f"{state}: its groups of {size:,} queries need more memory than there is; starting afresh")
        remove_state(state)
        open_state(state, fingerprint, work="search")
    write_checked_json(group, room)
    return room


def queries_of_shard(queries: Path, shard: tuple[int, int]) -> Ids:
    """The queries of a shard: its number and how many there are. Raises `InputError` where there is no such shard."""
    if not 0 <= shard[0] < shard[1]:
        raise InputError(f"--shard is {shard[0]}, but of {shard[1]} shards it must be from 0 to {shard[1] - 1}.")
    ids: Ids = read_queries(queries)["corpusid"].to_numpy()
    return ids[ids % shard[1] == shard[0]]


def count_papers(batches: Iterable[Ids], queries: Path, source: Path) -> int:
    """How many papers a source holds. Raises `InputError` where one of them is kept out."""
    kept_out = read_kept_out(queries)["corpusid"].to_numpy()
    papers, leaked = 0, []
    for ids in batches:
        papers += len(ids)
        leaked += ids[np.isin(ids, kept_out)].tolist()
    if leaked:
        raise InputError(
            f"{source}: holds {len(leaked)} papers that are kept out, {leaked[0]} among them; "
            f"a graph must be built without the papers that {queries} keeps out."
        )
    return papers


def write_neighbours(
    queries: Numbers,
    room: int,
    search: Callable[[slice, Checkpoint], Keys],
    ids_of: IdsOf,
    *,
    depends_on: dict[str, Any],
    state: Path,
    output: Path,
) -> int:
    """Write the table `neighbours` by a search of groups of at most `room` queries; return the number of its rows.

    Groups that the state holds are not searched again, if it belongs to a search that depends on the same.
    """
    size = open_search(state, depends_on, room)
    starts = range(0, len(queries), size)
    files = [state / "groups" / f"{start}.npy" for start in starts]
    for number, (start, file) in enumerate(zip(starts, files, strict=True), start=1):
        if not file.exists():
            report(f"group {number} of {len(files)}")
            keys = search(slice(start, start + size), Checkpoint(state / "going.npz", start))
            with open_whole(file) as opened:
                np.save(opened, keys)
    return write_table(output, "neighbours", _rows_of(queries, files, size, ids_of))


def _rows_of(queries: Numbers, files: Sequence[Path], size: int, ids_of: IdsOf) -> Iterator[pa.RecordBatch]:
    for start, file in zip(range(0, len(queries), size), files, strict=True):
        keys = np.load(file, mmap_mode="r")
        step = max(1, ROWS_WRITTEN // keys.shape[1])
        for first in range(0, len(keys), step):
            part = np.array(keys[first : first + step])
            yield _as_rows(queries[start + first : start + first + len(part)], part, ids_of)


def _as_rows(queries: Numbers, keys: Keys, ids_of: IdsOf) -> pa.RecordBatch:
    met = keys != FARTHEST
    ranks = np.broadcast_to(np.arange(1, keys.shape[1] + 1, dtype=np.int32), keys.shape)
    return pa.record_batch(
        {
            "query": np.repeat(ids_of(queries), met.sum(axis=1)),
            "rank": ranks[met],
            "neighbour": ids_of(numbers_in(keys[met])),
            "distance": distances_in(keys[met]).astype(np.float32),
        }
    )
