"""Runs of counted pairs, laid by on disk, and added up to one: an external merge.

Where the groups of a graph do not fit into memory at once, each piece of them gives a run of pairs in the order of
their ids. The runs are read side by side, block by block. The pairs up to the smallest last pair of the blocks at hand
are complete, and are merged two runs at a time. Many runs are first merged to fewer and longer ones, so that memory
does not grow with their number.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numba import njit

from cocite.graph.counting import Counted

RUNS_SIDE_BY_SIDE = 16
"""Runs that are read at once: a block of each takes 5 MB, and merging makes up to two copies of what is at hand."""
PAIRS_IN_BLOCK = 3 << 16


def lay_by(path: Path, blocks: Iterable[Counted]) -> None:
    """Write a run to a file that lives no longer than the step."""
    schema = pa.schema([("paper", "int64"), ("other", "int64"), ("count", "int32"), ("shares", "int64")])
    with pa.ipc.new_file(path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
        for paper, other, count, shares in blocks:
            filled = shares if len(shares) else np.zeros(len(paper), dtype=np.int64)
            table = pa.table([paper, other, count, filled], schema=schema)
            file.write_table(table, max_chunksize=PAIRS_IN_BLOCK)


def merge(runs: Sequence[Path]) -> Iterator[Counted]:
    """The pairs of all runs in the order of their ids, in blocks; counts and shares of the same pair are added.

    Where there are more than `RUNS_SIDE_BY_SIDE`, the runs are used up: longer ones take their place on disk.
    """
    while len(runs) > RUNS_SIDE_BY_SIDE:
        runs = [_to_one(runs[first : first + RUNS_SIDE_BY_SIDE]) for first in range(0, len(runs), RUNS_SIDE_BY_SIDE)]
    yield from _side_by_side(runs)


def _to_one(runs: Sequence[Path]) -> Path:
    merged = runs[0].with_suffix(f".merged{runs[0].suffix}")
    lay_by(merged, _side_by_side(runs))
    for path in runs:
        path.unlink()
    return merged


def _side_by_side(runs: Sequence[Path]) -> Iterator[Counted]:
    readers = [_blocks(path) for path in runs]
    heads: list[Counted | None] = [next(reader, None) for reader in readers]
    while any(head is not None for head in heads):
        limit = min((head[0][-1], head[1][-1]) for head in heads if head is not None)
        complete: list[Counted] = []
        for number, head in enumerate(heads):
            if head is not None:
                cut = _place_after(head, *limit)
                complete.append(_slice(head, 0, cut))
                rest = _slice(head, cut, len(head[0]))
                heads[number] = rest if len(rest[0]) else next(readers[number], None)
        yield _merge_all(complete)


def _blocks(path: Path) -> Iterator[Counted]:
    # By its name Arrow would map the file, and all of it that was read would count as the job's memory.
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            if len(batch):
                paper, other, count, shares = (batch.column(column).to_numpy() for column in range(4))
                yield paper, other, count, shares


def _place_after(block: Counted, paper: np.int64, other: np.int64) -> int:
    """How many pairs of a block are not beyond a pair."""
    first, end = (int(np.searchsorted(block[0], paper, side)) for side in ("left", "right"))
    return first + int(np.searchsorted(block[1][first:end], other, "right"))


def _slice(block: Counted, first: int, end: int) -> Counted:
    paper, other, count, shares = block
    return paper[first:end], other[first:end], count[first:end], shares[first:end]


def _merge_all(blocks: list[Counted]) -> Counted:
    while len(blocks) > 1:
        merged = [_merge_two(*blocks[number : number + 2]) for number in range(0, len(blocks) - 1, 2)]
        blocks = merged + blocks[len(blocks) - len(blocks) % 2 :]
    return blocks[0]


def _merge_two(one: Counted, other: Counted) -> Counted:
    size = len(one[0]) + len(other[0])
    ids = np.empty(size, np.int64), np.empty(size, np.int64)
    out = (*ids, np.empty(size, np.int32), np.empty(size, np.int64))
    return _slice(out, 0, add_pairs(one, other, out))


@njit(nogil=True, cache=True)
def add_pairs(one, other, out):  # type: ignore[no-untyped-def]
    """Merge two blocks that are in order into `out`; return the number of distinct pairs."""
    left, right, written = 0, 0, 0
    while left < len(one[0]) or right < len(other[0]):
        if right == len(other[0]):
            order = -1
        elif left == len(one[0]):
            order = 1
        else:
            order = one[0][left] - other[0][right]
            if order == 0:
                order = one[1][left] - other[1][right]
        out[2][written], out[3][written] = 0, 0
        if order <= 0:
            out[0][written], out[1][written] = one[0][left], one[1][left]
            out[2][written] += one[2][left]
            out[3][written] += one[3][left]
            left += 1
        if order >= 0:
            out[0][written], out[1][written] = other[0][right], other[1][right]
            out[2][written] += other[2][right]
            out[3][written] += other[3][right]
            right += 1
        written += 1
    return written
