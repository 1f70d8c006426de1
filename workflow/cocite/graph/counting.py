"""Count the pairs of papers in groups, row by row, in machine code that Numba compiles and keeps.

It is a product of sparse matrices in Gustavson's (1978) manner: one row, the smaller paper of its pairs, at a time, in
a dense counter over the papers at hand. Each group of a row's paper adds a run of partners: the members after it or, if
it is no query and pairs need one, the queries after it. A bitmap of three levels gives the places in use, in order.
Each piece of groups that do not fit into memory at once gives a sorted run of pairs on disk; an external merge adds
these up, block by block.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import NO_NUMBERS, lowest
from cocite.core.written_ids import Ids

PAIRS_AT_ONCE = 1 << 18
RUNS_AT_ONCE = 1 << 23
"""Runs that are laid out at once, of 8 bytes each, 16 with shares."""
RUNS_SIDE_BY_SIDE = 16
"""Runs that are read at once: a block of each takes 5 MB, and merging makes up to two copies of what is at hand."""
PAIRS_IN_BLOCK = 3 << 16
UNIT = 1 << 36
"""Fractions of 1 in which shares are summed: whole numbers, so that the sum does not depend on the order. A share of
1/999 has a relative error below 7e-9, and 134 million shares of 1 fit."""

_U = np.uint64
_ONE = _U(1)

LaidOut = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]
"""Where the runs of each row start, with the end; the places of their first partners and the ends; what each shares."""
Counted = tuple[Ids, Ids, NDArray[np.int32], NDArray[np.int64]]
"""Smaller ids, larger ids, counts, and sums of shares in `UNIT` (empty if unused), one per pair."""


class Piece(NamedTuple):
    """Some groups, whose members are given by their places among the papers at hand, and which of them pair."""

    ids: Ids
    """The papers at hand, rising."""
    members: NDArray[np.int32]
    """Members of the groups, one group after the other, rising in each."""
    sizes: NDArray[np.int64]
    """Members of each group."""
    queries: NDArray[np.int32]
    """The members that are queries, in the same order; empty if all pairs are counted."""
    is_full: NDArray[np.bool_]
    """Whether a paper pairs with all members, not only with queries."""


def count_pairs_of(piece: Piece, mine: tuple[int, int], *, fractional: bool) -> Iterator[Counted]:
    """The pairs whose smaller id is in one bucket (its number, and how many there are), in the order of their ids."""
    ids, papers = piece.ids, len(piece.ids)
    counter = np.zeros(papers, dtype=np.int32)
    sums = np.zeros(papers if fractional else 0, dtype=np.int64)
    used = tuple(np.zeros((papers >> shift) + 1, dtype=np.uint64) for shift in (6, 12, 18))
    for rows, laid_out in _lay_out(piece, *mine, fractional):
        starts, runs, _ = laid_out
        widest = int(np.add.reduceat(runs[:, 1] - runs[:, 0], starts[:-1], dtype=np.int64).max())
        size = max(PAIRS_AT_ONCE, min(papers, widest))
        out = tuple(np.empty(size, dtype=np.int32) for _ in range(3))
        out_shares = np.empty(size if fractional else 0, dtype=np.int64)
        row = 0
        while row < len(rows):
            row, pairs = count_rows(rows, row, laid_out, piece, counter, sums, used, out, out_shares)
            yield ids[out[0][:pairs]], ids[out[1][:pairs]], out[2][:pairs].copy(), out_shares[:pairs].copy()


def _lay_out(piece: Piece, bucket: int, buckets: int, fractional: bool) -> Iterator[tuple[Ids, LaidOut]]:
    """The rows with runs in the bucket, and these runs, about `RUNS_AT_ONCE` at a time."""
    papers = len(piece.ids)
    slots = np.arange(papers, dtype=np.int32)
    slots[piece.ids % buckets != bucket] = -1
    lengths = np.zeros(papers, dtype=np.int32)
    find_runs(piece, slots, lengths, np.empty((0, 2), dtype=np.int32), np.empty(0, dtype=np.int64), 0)
    rows = np.flatnonzero(lengths)
    ends = np.cumsum(lengths[rows], dtype=np.int64)
    first = 0
    while first < len(rows):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + RUNS_AT_ONCE, "right")))
        some, starts = rows[first:last], np.concatenate([[0], ends[first:last] - before])
        slots = np.full(papers, -1, dtype=np.int32)
        slots[some] = np.arange(len(some), dtype=np.int32)
        runs = np.empty((starts[-1], 2), dtype=np.int32)
        shares = np.empty(starts[-1] if fractional else 0, dtype=np.int64)
        find_runs(piece, slots, starts[:-1].copy(), runs, shares, UNIT if fractional else 0)
        slots = lengths = NO_NUMBERS  # Rows are counted while this waits, and there may be a hundred million papers.
        yield some, (starts, runs, shares)
        first = last


@njit(nogil=True, cache=True)
def find_runs(piece, slots, free, runs, shares, unit):  # type: ignore[no-untyped-def]
    """Write each run that is not empty to the next free place of its row, and its share; without room, only count them.
    `slots` has the number of each paper's row, negative if it is not wanted."""
    _, places, sizes, queries, is_full = piece
    first, first_query = 0, 0
    for size in sizes:
        end, end_query = first + size, first_query
        for member in range(first, end):
            end_query += is_full[places[member]]
        query = first_query
        for member in range(first, end):
            paper = places[member]
            low, high = member + 1, end
            if not is_full[paper]:
                while query < end_query and queries[query] < paper:
                    query += 1
                low, high = query, end_query
            slot = slots[paper]
            if slot >= 0 and low < high:
                if len(runs):
                    runs[free[slot], 0], runs[free[slot], 1] = low, high
                    if unit:
                        shares[free[slot]] = (2 * unit + size - 1) // (2 * (size - 1))
                free[slot] += 1
        first, first_query = end, end_query


@njit(nogil=True, cache=True)
def count_rows(rows, row, laid_out, piece, counter, sums, used, out, out_shares):  # type: ignore[no-untyped-def]
    """Count rows from number `row` on until the output may be full; return the next row and the number of pairs."""
    starts, runs, shares = laid_out
    _, places, _, queries, is_full = piece
    written = 0
    while row < len(rows):
        most = 0
        for run in range(starts[row], starts[row + 1]):
            most += runs[run, 1] - runs[run, 0]
        if written and written + min(most, len(counter)) > len(out[0]):
            break
        partners = places if is_full[rows[row]] else queries
        for run in range(starts[row], starts[row + 1]):
            for number in range(runs[run, 0], runs[run, 1]):
                partner = partners[number]
                if counter[partner] == 0:
                    used[0][partner >> 6] |= _ONE << _U(partner & 63)
                    used[1][partner >> 12] |= _ONE << _U((partner >> 6) & 63)
                    used[2][partner >> 18] |= _ONE << _U((partner >> 12) & 63)
                counter[partner] += 1
                if len(shares):
                    sums[partner] += shares[run]
        written = _empty_counter(rows[row], counter, sums, used, out, out_shares, written)
        row += 1
    return row, written


@njit(nogil=True)
def _empty_counter(paper, counter, sums, used, out, out_shares, written):  # type: ignore[no-untyped-def]
    """Write the partners of a row in their order, and leave the counter at zero; return the number of pairs."""
    for high in range(len(used[2])):
        highs, used[2][high] = used[2][high], _U(0)
        while highs != _U(0):
            middle = high * 64 + lowest(highs)
            highs &= highs - _ONE
            middles, used[1][middle] = used[1][middle], _U(0)
            while middles != _U(0):
                low = middle * 64 + lowest(middles)
                middles &= middles - _ONE
                lows, used[0][low] = used[0][low], _U(0)
                while lows != _U(0):
                    partner = low * 64 + lowest(lows)
                    lows &= lows - _ONE
                    out[0][written], out[1][written], out[2][written] = paper, partner, counter[partner]
                    counter[partner] = 0
                    if len(sums):
                        out_shares[written] = sums[partner]
                        sums[partner] = 0
                    written += 1
    return written


def spill_run(path: Path, blocks: Iterable[Counted]) -> None:
    """Write a run to a file that lives no longer than the step."""
    schema = pa.schema([("paper", "int64"), ("other", "int64"), ("count", "int32"), ("shares", "int64")])
    with pa.ipc.new_file(path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
        for paper, other, count, shares in blocks:
            filled = shares if len(shares) else np.zeros(len(paper), dtype=np.int64)
            table = pa.table([paper, other, count, filled], schema=schema)
            file.write_table(table, max_chunksize=PAIRS_IN_BLOCK)


def merge(runs: Sequence[Path]) -> Iterator[Counted]:
    """The pairs of all runs in the order of their ids, in blocks; counts and shares of the same pair are added.

    If there are more than `RUNS_SIDE_BY_SIDE`, longer runs replace them on the disk.
    """
    while len(runs) > RUNS_SIDE_BY_SIDE:
        longer = []
        for first in range(0, len(runs), RUNS_SIDE_BY_SIDE):
            shorter = runs[first : first + RUNS_SIDE_BY_SIDE]
            longer.append(shorter[0].with_suffix(f".merged{shorter[0].suffix}"))
            spill_run(longer[-1], _side_by_side(shorter))
            for path in shorter:
                path.unlink()
        runs = longer
    yield from _side_by_side(runs)


def _side_by_side(runs: Sequence[Path]) -> Iterator[Counted]:
    readers = [_blocks(path) for path in runs]
    heads = {reader: head for reader in readers if (head := next(reader, None))}
    while heads:
        limit = min((head[0][-1], head[1][-1]) for head in heads.values())
        complete: list[Counted] = []
        for reader, head in list(heads.items()):
            cut = _place_after(head, *limit)
            complete.append(_slice(head, 0, cut))
            rest = _slice(head, cut, len(head[0])) if cut < len(head[0]) else next(reader, None)
            if rest:
                heads[reader] = rest
            else:
                del heads[reader]
        yield _merge_all(complete)


def _blocks(path: Path) -> Iterator[Counted]:
    # By its name Arrow would map the file, and all of it that was read would count as the job's memory.
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
        for batch in map(file.get_batch, range(file.num_record_batches)):
            if len(batch):
                paper, other, count, shares = (column.to_numpy() for column in batch.columns)
                yield paper, other, count, shares


def _place_after(block: Counted, paper: np.int64, other: np.int64) -> int:
    """How many pairs of a block are not beyond a pair."""
    first, end = (int(np.searchsorted(block[0], paper, side)) for side in ("left", "right"))
    return first + int(np.searchsorted(block[1][first:end], other, "right"))


def _slice(block: Counted, first: int, end: int) -> Counted:
    paper, other, count, shares = block
    return paper[first:end], other[first:end], count[first:end], shares[first:end]


def _merge_all(blocks: list[Counted]) -> Counted:
    """Merge two and two, so that all blocks are merged about as often."""
    if len(blocks) == 1:
        return blocks[0]
    one, other = _merge_all(blocks[::2]), _merge_all(blocks[1::2])
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
