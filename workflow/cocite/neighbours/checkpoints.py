"""What a killed search goes on from, in a folder that Snakemake does not know.

settings.json    what the search depends on: its settings, the state of what it reads; and the queries of a group
groups/          the keys of the neighbours of each finished group of queries
going.npz        the pools of the group that is searched, and the row groups that have gone past them
"""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cocite.ground.progress import report
from cocite.neighbours.distances import Keys
from cocite.neighbours.pools import Pools
from cocite.tables.files import atomic_path, read_json, write_json

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
        """Save the pools, which have met so many row groups, if the last time is long enough ago."""
        if time.monotonic() - self.saved < SECONDS_BETWEEN_SAVES:
            return
        with atomic_path(self.file) as temporary, temporary.open("wb") as file:
            np.savez(file, keys=pools.keys, counts=pools.counts, worst=pools.worst, met=met, first=self.first)
        self.saved = time.monotonic()


def open_state(state: Path, belongs_to: dict[str, Any], room: int) -> int:
    """Make the folder ready; return the size of a group of queries, at most those that there is room for.

    Finished groups stay if they belong to the same search and are not too large, others are removed. A search that is
    tried again with more memory so goes on with the groups that it began with.
    """
    owner = state / "settings.json"
    before = read_json(owner) if owner.exists() else {"group": 0}
    if before == {**belongs_to, "group": before["group"]} and before["group"] <= room:
        report(f"going on after {len(list((state / 'groups').glob('*.npy')))} groups of a search that was killed")
        return int(before["group"])
    remove_state(state)
    write_json(owner, {**belongs_to, "group": room})
    return room


def search_groups(state: Path, starts: Sequence[int], search: Callable[[int, Checkpoint], Keys]) -> list[Path]:
    """The files of the keys of each group of queries, which begin at `starts`; searched are those not yet there."""
    files = [state / "groups" / f"{start}.npy" for start in starts]
    for number, (start, file) in enumerate(zip(starts, files, strict=True), start=1):
        if not file.exists():
            report(f"group {number} of {len(files)}")
            keys = search(start, Checkpoint(state / "going.npz", start))
            with atomic_path(file) as temporary, temporary.open("wb") as opened:
                np.save(opened, keys)
    return files


def remove_state(state: Path) -> None:
    """Remove the folder; the owner goes first, so that what a kill may leave of it belongs to no search."""
    (state / "settings.json").unlink(missing_ok=True)
    shutil.rmtree(state, ignore_errors=True)


def state_of(path: Path) -> list[int]:
    """Size and time of change of a file; its content may be too much to read for a hash."""
    known = path.stat()
    return [known.st_size, known.st_mtime_ns]
