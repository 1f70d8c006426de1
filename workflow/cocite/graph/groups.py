"""Groups of papers that occur together, read from citations in pieces that fit into memory.

Citations are sharded and sorted by the paper that makes a group (see `citations.py`), so a group is one run of rows in
one file. A sentence lists the papers that it cites: each sentence is a separate group, owned by its paper. Only groups
with a query can make a requested pair; the others are skipped while reading.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import BYTES_A_WORD, HIGH_WORDS, GrowingIdSet, are_in, check_ids, contains
from cocite.core.tables import TABLES
from cocite.core.tables.files import open_table
from cocite.core.written_ids import Ids
from cocite.graph.citations import Source

ROWS_READ = 1_000_000
LISTS_READ = 100_000
"""Rows with lists of members that are read at once, of which the longest piece is no longer than `ROWS_READ` or so."""
BYTES_A_MEMBER = 16
"""Memory for each member of a piece: 4 for its place, and up to 29 for each paper at hand, of which there are fewer.
With 24.5 million members of half a million papers, a job took 550 to 670 MB in all."""

OF_KEPT_OUT, LARGE_GROUPS, OF_LARGE_GROUPS, GROUPS, ANCHORED_GROUPS = range(5)
"""Places in a tally, which counts while groups are read. Citations by or of excluded papers, groups that are too large
and their citations are counted for one bucket of groups, so that the jobs of all buckets count each once. The remaining
groups, and those of them with a query, are counted for all buckets."""
Tally = NDArray[np.int64]


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


class Rows(NamedTuple):
    """Some whole groups, a row for each member."""

    groups: Ids
    """What tells groups apart: the paper that makes each or, where sentences do, the number of the sentence."""
    owners: Ids
    """The paper that makes each, or that the sentence is of."""
    members: Ids


def new_tally() -> Tally:
    """A tally of nothing."""
    return np.zeros(5, dtype=np.int64)


def read_pieces(source: Source, capacity: int, tally: Tally, *, all_pairs: bool) -> Iterator[tuple[Piece, bool]]:
    """The groups of two or more members with a query among them, in pieces; and whether a piece is the last. A piece
    has `capacity` members or a bit more, fewer where ids are high. The next piece overwrites it."""
    members = np.empty(capacity + ROWS_READ, dtype=np.int32)
    sizes: list[NDArray[np.int64]] = []
    papers, written = GrowingIdSet(), 0
    # The papers at hand may take what a piece of this capacity has for them, and must not be too many to be numbered.
    most_words = min(capacity * (BYTES_A_MEMBER - 4) // BYTES_A_WORD, HIGH_WORDS - ROWS_READ)
    for rows in _whole_groups(source):
        taken, taken_sizes = _take(source, rows, tally, least=2, anchored=True)
        if written and (written + len(taken) > len(members) or papers.high_words > most_words):
            yield _placed(source, papers, members[:written], sizes, all_pairs), False
            sizes, papers, written = [], GrowingIdSet(), 0
        if len(taken) > len(members):
            members = np.empty(len(taken), dtype=np.int32)
        papers.number(taken, members[written : written + len(taken)])
        sizes.append(taken_sizes)
        written += len(taken)
    if written:
        yield _placed(source, papers, members[:written], sizes, all_pairs), True


def read_members(source: Source, tally: Tally, *, anchored: bool) -> Iterator[Ids]:
    """The ids of the members of all groups, or of those with a query, in batches."""
    for rows in _whole_groups(source):
        yield _take(source, rows, tally, least=1, anchored=anchored)[0]


def _placed(
    source: Source, papers: GrowingIdSet, members: NDArray[np.int32], sizes: list[NDArray[np.int64]], all_pairs: bool
) -> Piece:
    """Groups of these sizes, whose members `papers` has numbered."""
    ids = papers.place(members)
    is_full = np.ones(len(ids), dtype=bool) if all_pairs else are_in(source.queries, ids)
    queries = members[:0] if all_pairs else members[is_full[members]]
    return Piece(ids, members, np.concatenate(sizes), queries, is_full)


def _whole_groups(source: Source) -> Iterator[Rows]:
    """The groups, file after file, some at a time."""
    if pa.types.is_list(TABLES[source.signal.citations].columns[source.signal.member].type):
        return _listed_groups(source)
    return (Rows(groups, groups, members) for path in source.files for groups, members in _groups_by_row(source, path))


def _batches(source: Source, path: Path, rows: int) -> Iterator[tuple[Ids, pa.Array]]:
    """The columns of groups and members of a file, some rows at a time. Raises `InputError` for a negative id."""
    columns = [source.signal.group, source.signal.member]
    with open_table(path, source.signal.citations) as file:
        for batch in file.iter_batches(rows, columns=columns, use_threads=False):
            groups, members = batch[columns[0]].to_numpy(), batch[columns[1]]
            check_ids(groups, path)
            check_ids((members.flatten() if pa.types.is_list(members.type) else members).to_numpy(), path)
            yield groups, members


def _listed_groups(source: Source) -> Iterator[Rows]:
    """The groups whose members a row has in a list."""
    number = 0
    for path in source.files:
        for owners, members in _batches(source, path, LISTS_READ):
            rows = pc.list_parent_indices(members).to_numpy()
            yield Rows(number + rows, owners[rows], members.flatten().to_numpy())
            number += len(owners)


def _groups_by_row(source: Source, path: Path) -> Iterator[tuple[Ids, Ids]]:
    """The columns of groups and members, cut between groups; a group that spans several batches comes separately."""
    left = np.empty((2, 0), dtype=np.int64)
    for groups, column in _batches(source, path, ROWS_READ):
        members = column.to_numpy()
        first = int(np.searchsorted(groups, left[0, 0], "right")) if left.size else 0
        left = np.concatenate([left, [groups[:first], members[:first]]], axis=1)
        if first < len(groups):
            yield left[0], left[1]
            last = int(np.searchsorted(groups, groups[-1]))
            yield groups[first:last], members[first:last]
            left = np.stack([groups[last:], members[last:]])
    yield left[0], left[1]


def _take(source: Source, rows: Rows, tally: Tally, *, least: int, anchored: bool) -> tuple[Ids, NDArray[np.int64]]:
    """Members and sizes of whole groups of `least` members or more, with a query among them if `anchored`."""
    count = len(rows.members)
    taken, sizes = np.empty(count, dtype=np.int64), np.empty(count // least, dtype=np.int64)
    sets, limits = (source.queries, source.kept_out), (least, source.largest)
    members, groups = take_groups(*rows, sets, limits, anchored, taken, sizes, tally, source.mine)
    return taken[:members], sizes[:groups].copy()


@njit(nogil=True, cache=True)
def take_groups(groups, owners, members, sets, limits, anchored_only, taken, sizes, tally, mine):  # type: ignore[no-untyped-def]
    """Copy the members of the groups within limits of size, optionally only those with a query. Returns the numbers of
    members and groups."""
    queries, kept_out = sets
    least, most = limits
    bucket, buckets = mine
    row, written, found = 0, 0, 0
    while row < len(groups):
        first, start, group, owner, anchored = row, written, groups[row], owners[row], False
        while row < len(groups) and groups[row] == group:
            member = members[row]
            row += 1
            if not contains(kept_out, member):
                taken[written] = member
                written += 1
                anchored |= contains(queries, member)
        if contains(kept_out, owner):
            written = start
        size = written - start
        is_mine = group % buckets == bucket
        tally[OF_KEPT_OUT] += (row - first - size) * is_mine
        if most and size > most:
            tally[LARGE_GROUPS] += is_mine and size > 0
            tally[OF_LARGE_GROUPS] += size * is_mine
            size = 0
        tally[GROUPS] += size > 0
        tally[ANCHORED_GROUPS] += size > 0 and anchored
        if size >= least and (anchored or not anchored_only):
            sizes[found] = size
            found += 1
        else:
            written = start
    return written, found
