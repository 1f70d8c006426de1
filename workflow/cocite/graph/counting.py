"""Count the pairs of papers in groups, row by row, in machine code that Numba compiles and keeps.

The counts are a product of sparse matrices, and are computed in Gustavson's (1978) manner: one row of the product at a
time, in a dense counter over the papers at hand. A row is the smaller paper of its pairs; each group that it is in
adds a run of partners: the members after it or, if it is no query and pairs need one, the queries after it. So each
pair is met once for each group. Nothing is hashed or sorted: a bitmap of three levels records which places of the
counter are in use, and its set bits come in order.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import Ids
from cocite.core.id_words import lowest
from cocite.graph.groups import Piece

PAIRS_AT_ONCE = 1 << 18
RUNS_AT_ONCE = 1 << 23
"""Runs that are laid out at once, of 8 bytes each, 16 with shares."""
UNIT = 1 << 36
"""Fractions of 1 that shares are summed in: whole numbers, so that the sum does not depend on its order. A share of
1/999 is off by 7e-9 of itself at most, and 134 million shares of 1 fit."""

_U = np.uint64
_ONE = _U(1)

Counted = tuple[Ids, Ids, NDArray[np.int32], NDArray[np.int64]]
"""Smaller ids, larger ids, counts, and sums of shares in `UNIT` (empty unless asked for), one a pair."""


def count_pairs_of(piece: Piece, mine: tuple[int, int], *, fractional: bool) -> Iterator[Counted]:
    """The pairs whose smaller id is in one bucket, in blocks, in the order of their ids.

    `mine` is the bucket, and how many there are.
    """
    ids, papers = piece.ids, len(piece.ids)
    counter = np.zeros(papers, dtype=np.int32)
    sums = np.zeros(papers if fractional else 0, dtype=np.int64)
    used = tuple(np.zeros((papers >> shift) + 1, dtype=np.uint64) for shift in (6, 12, 18))
    for rows, starts in _ranges(piece, *mine):
        runs, shares = _lay_out(piece, rows, starts, fractional)
        widest = int(np.add.reduceat(runs[:, 1] - runs[:, 0], starts[:-1], dtype=np.int64).max())
        size = max(PAIRS_AT_ONCE, min(papers, widest))
        out = tuple(np.empty(size, dtype=np.int32) for _ in range(3))
        out_shares = np.empty(size if fractional else 0, dtype=np.int64)
        laid_out, row = (starts, runs, shares), 0
        while row < len(rows):
            row, pairs = count_rows(rows, row, laid_out, piece, counter, sums, used, out, out_shares)
            yield ids[out[0][:pairs]], ids[out[1][:pairs]], out[2][:pairs].copy(), out_shares[:pairs].copy()


def _ranges(piece: Piece, bucket: int, buckets: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows with runs in the bucket, so many at once as make `RUNS_AT_ONCE`, and where the runs of each start."""
    papers = len(piece.ids)
    slots = np.arange(papers, dtype=np.int32)
    slots[piece.ids % buckets != bucket] = -1
    lengths = np.zeros(papers, dtype=np.int32)
    find_runs(piece, slots, lengths, np.empty((0, 2), dtype=np.int32), np.empty(0, dtype=np.int64), 0)
    rows = np.flatnonzero(lengths)
    ends = np.cumsum(lengths[rows], dtype=np.int64)
    del slots, lengths  # Rows are counted while this waits, and there may be a hundred million papers.
    first = 0
    while first < len(rows):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + RUNS_AT_ONCE, "right")))
        yield rows[first:last], np.concatenate([[0], ends[first:last] - before])
        first = last


def _lay_out(
    piece: Piece, rows: NDArray[np.int64], starts: NDArray[np.int64], fractional: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The runs of these rows, two numbers each: the place of its first partner and the end; and what each shares."""
    slots = np.full(len(piece.ids), -1, dtype=np.int32)
    slots[rows] = np.arange(len(rows), dtype=np.int32)
    runs = np.empty((starts[-1], 2), dtype=np.int32)
    shares = np.empty(starts[-1] if fractional else 0, dtype=np.int64)
    find_runs(piece, slots, starts[:-1].copy(), runs, shares, UNIT if fractional else 0)
    return runs, shares


@njit(nogil=True, cache=True)
def find_runs(piece, slots, free, runs, shares, unit):  # type: ignore[no-untyped-def]
    """Write each run that is not empty to the next free place of its row, and what it shares.

    `slots` holds the number of each paper's row, less than 0 where it is not wanted. With no room for runs, they are
    only counted.
    """
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
