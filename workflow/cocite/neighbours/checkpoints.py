"""The state that a killed search resumes from, in a folder that Snakemake does not know (see `core/checkpoints.py`).

group.json       the queries of a group
groups/          the keys of the neighbours of each finished group of queries
going.npz        the pools of the group that is being searched, and the number of row groups that they have met
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cocite.core.checkpoints import open_state, open_whole, remove_state, write_checked_json
from cocite.core.progress import report
from cocite.core.tables.files import read_json
from cocite.neighbours.distances import Keys
from cocite.neighbours.pools import Pools

SECONDS_BETWEEN_SAVES = 60.0


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


def search_groups(state: Path, starts: Sequence[int], search: Callable[[int, Checkpoint], Keys]) -> list[Path]:
    """The files of the keys of each group of queries, which begin at `starts`; only missing ones are searched."""
    files = [state / "groups" / f"{start}.npy" for start in starts]
    for number, (start, file) in enumerate(zip(starts, files, strict=True), start=1):
        if not file.exists():
            report(f"group {number} of {len(files)}")
            keys = search(start, Checkpoint(state / "going.npz", start))
            with open_whole(file) as opened:
                np.save(opened, keys)
    return files
