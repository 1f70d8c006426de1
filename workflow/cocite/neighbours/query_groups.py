"""What every ranking of neighbours shares: a shard of the queries in groups, the state it resumes from, and its rows.

group.json       the queries of a group
groups/          the keys of the neighbours of each finished group of queries
going.npz        the pools of the group that is being searched, and the number of row groups that they have met
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.atomic import read_json
from cocite.core.checkpoints import open_state, open_whole, remove_state, write_checked_json
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.files import write_table
from cocite.core.tables.papers import read_kept_out, read_queries
from cocite.core.written_ids import Ids
from cocite.neighbours.nearest import FARTHEST, Keys, Numbers, Pools, distances_in, numbers_in

RESERVED_MB = 400
"""Memory for the program and what it writes."""
ROWS_WRITTEN = 500_000
SECONDS_BETWEEN_SAVES = 60.0


class Checkpoint:
    """How far the search of one group of queries is."""

    def __init__(self, file: Path, first: int) -> None:
        self.file, self.first = file, first
        self.saved = time.monotonic()

    def restore(self, pools: Pools) -> int:
        """Fill the pools as they were saved; return the number of row groups that they have met."""
        if self.file.exists():
            with np.load(self.file) as saved:
                if int(saved["first"]) == self.first:
                    pools.keys[:], pools.counts[:], pools.worst[:] = saved["keys"], saved["counts"], saved["worst"]
                    return int(saved["met"])
        return 0

    def save(self, pools: Pools, met: int) -> None:
        """Save the pools and how many row groups they have met, if the last save is long enough ago."""
        if time.monotonic() - self.saved < SECONDS_BETWEEN_SAVES:
            return
        with open_whole(self.file) as file:
            np.savez(file, keys=pools.keys, counts=pools.counts, worst=pools.worst, met=met, first=self.first)
        self.saved = time.monotonic()


def open_search(state: Path, fingerprint: dict[str, Any], room: int) -> int:
    """Make the folder ready; return the size of a group of queries, which is at most `room`. Finished groups stay if
    they belong to the same search and are not too large; others are removed. So a search that is tried again with more
    memory resumes with the groups that it began with."""
    group = state / "group.json"
    if open_state(state, fingerprint, work="search", independent=True):
        if group.exists():
            if (size := int(read_json(group))) <= room:
                finished = len(list((state / "groups").glob("*.np[yz]")))
                report(f"resuming after {finished} groups of a search that was killed")
                return size
            report(f"{state}: its groups of {size:,} queries need more memory than there is; starting afresh")
        remove_state(state)
        open_state(state, fingerprint, work="search")
    write_checked_json(group, room)
    return room


def queries_of_shard(queries: Path, shard: tuple[int, int]) -> Ids:
    """The queries of a shard: its number and how many there are. Raises `InputError` if there is no such shard."""
    if not 0 <= shard[0] < shard[1]:
        raise InputError(f"--shard is {shard[0]}, but of {shard[1]} shards it must be from 0 to {shard[1] - 1}.")
    ids: Ids = read_queries(queries)["corpusid"].to_numpy()
    return ids[ids % shard[1] == shard[0]]


def check_papers(
    source: Path, are_there: Callable[[Ids], NDArray[np.bool_]], papers: int, queries: Path, k: int, key: str
) -> None:
    """Raise `InputError` if a source has excluded papers, or not more than k papers for each query. `papers` are those
    that can have a rank, and `key` the path of k in the configuration."""
    kept_out = read_kept_out(queries)["corpusid"].to_numpy()
    if len(leaked := kept_out[are_there(kept_out)]):
        found = f"{source}: contains {len(leaked)} excluded papers, {leaked[0]} among them"
        raise InputError(f"{found}; a graph must be built without the papers that {queries} excludes.")
    if k >= papers - 1:
        least = f"k must be smaller than {max(papers - 1, 0)}"
        raise InputError(f"{key} is {k}, but {source} contains {papers} papers; {least}.")


def write_neighbours(
    queries: Numbers,
    room: int,
    search: Callable[[slice, Checkpoint], Keys],
    ids_of: Callable[[Numbers], Ids],
    *,
    depends_on: dict[str, Any],
    state: Path,
    output: Path,
) -> int:
    """Write the table `neighbours` by a search of groups of at most `room` queries; return the number of its rows.
    Finished groups in the state are not searched again, if it belongs to the same search."""
    size = open_search(state, depends_on, room)
    files = {start: state / "groups" / f"{start}.npy" for start in range(0, len(queries), size)}
    for number, (start, file) in enumerate(files.items(), start=1):
        if not file.exists():
            report(f"group {number} of {len(files)}")
            keys = search(slice(start, start + size), Checkpoint(state / "going.npz", start))
            with open_whole(file) as opened:
                np.save(opened, keys)

    def rows() -> Iterator[pa.RecordBatch]:
        for start, file in files.items():
            saved = np.load(file, mmap_mode="r")
            step = max(1, ROWS_WRITTEN // saved.shape[1])
            for first in range(start, start + len(saved), step):
                keys = np.array(saved[first - start : first - start + step])
                met = keys != FARTHEST
                ranks = np.broadcast_to(np.arange(1, keys.shape[1] + 1, dtype=np.int32), keys.shape)[met]
                of_rows = np.repeat(ids_of(queries[first : first + len(keys)]), met.sum(axis=1))
                found = [ids_of(numbers_in(keys[met])), distances_in(keys[met]).astype(np.float32)]
                yield pa.record_batch([of_rows, ranks, *found], ["query", "rank", "neighbour", "distance"])

    return write_table(output, "neighbours", rows())
