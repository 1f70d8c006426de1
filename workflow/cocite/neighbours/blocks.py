"""What a killed search goes on from: the neighbours of each finished block of queries, in a file of its own.

settings.json    what the search hangs on: metric, k, the size of a block, hashes of vectors and queries
blocks/          table `neighbours` of each finished block
"""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cocite.files import read_json, scan_table, write_json, write_table
from cocite.progress import progress, report


def open_state(state: Path, belongs_to: dict[str, Any]) -> None:
    """Make the folder ready; finished blocks stay if they belong to the same search, others are removed."""
    owner = state / "settings.json"
    before = read_json(owner) if owner.exists() else None
    if before == belongs_to:
        report(f"going on after {len(list((state / 'blocks').glob('*.parquet')))} blocks of a search that was killed")
        return
    _remove(state)
    write_json(owner, belongs_to)


def search_in_blocks(state: Path, output: Path, starts: Sequence[int], search: Callable[[int], pa.RecordBatch]) -> None:
    """Write table `neighbours` from the blocks that begin at `starts`, searching those that are not finished."""
    files = [state / "blocks" / f"{start}.parquet" for start in starts]
    for start, file in progress(list(zip(starts, files, strict=True)), of="search", unit="blocks"):
        if not file.exists():
            write_table(file, "neighbours", [search(start)])
    write_table(output, "neighbours", scan_table(files, "neighbours").to_batches())
    _remove(state)


def hash_of(path: Path) -> str:
    """Hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _remove(state: Path) -> None:
    """Remove the folder; the owner goes first, so that what a kill may leave of it belongs to no search."""
    (state / "settings.json").unlink(missing_ok=True)
    shutil.rmtree(state, ignore_errors=True)
