"""Groups of papers that occur together, read from citations in pieces that fit into memory.

Co-citation and bibliographic coupling both pair the members of groups: the papers that one paper cites (co-citation),
or one sentence of a paper, or the papers that cite one paper (coupling). Citations are sharded and sorted by the paper
that makes a group (see `citations.py`), so a group is one run of rows in one file, or one list. Only groups with a
query can make a requested pair; the others are skipped while reading.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from cocite.config.graphs import Counting
from cocite.core.id_sets import (
    BYTES_A_WORD,
    HIGH_WORDS,
    GrowingIdSet,
    IdSet,
    are_in,
    check_ids,
    contains,
    id_set,
    places_of,
    set_of,
    size,
)
from cocite.core.tables import TABLES
from cocite.core.tables.files import open_table
from cocite.core.tables.papers import read_kept_out, read_queries, read_twins
from cocite.core.written_ids import Ids

ROWS_READ = 1_000_000
LISTS_READ = 100_000
"""Rows with lists of members that are read at once, of which the longest piece is no longer than `ROWS_READ` or so."""
BYTES_A_MEMBER = 16
"""Memory for each member of a piece: 4 for its place, and up to 29 for each paper at hand, of which there are fewer.
With 24.5 million members of half a million papers, a job took 550 to 670 MB in all."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """How citations make groups."""

    citations: str
    """The table of citations, sorted by the group."""
    group: str
    """The column of the paper that makes the group, or that the sentence is of which does."""
    member: str
    """The column of the papers that are in it: one of them, or all in a list."""
    too_large: tuple[str, str]
    """What groups that are too large and their citations are called."""
    alone: str
    """What queries without a pair are called."""


SIGNALS = {
    "cocitation": Signal(
        citations="citations",
        group="citing",
        member="cited",
        too_large=("papers with more references than max_references", "references of such papers"),
        alone="queries that no paper cites together with another",
    ),
    "sentence-cocitation": Signal(
        citations="contexts",
        group="citing",
        member="cited",
        too_large=("sentences that cite more papers than max_papers", "citations in such sentences"),
        alone="queries that no sentence cites together with another paper",
    ),
    "coupling": Signal(
        citations="citations_by_cited",
        group="cited",
        member="citing",
        too_large=("papers with more citations than max_citations", "citations of such papers"),
        alone="queries that share no reference with another paper",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """The citations of a graph, and which groups and members of them count."""

    signal: Signal
    files: Sequence[Path]
    """All buckets of the table of citations."""
    queries: IdSet
    kept_out: IdSet
    """The papers that neither make a group nor are in one."""
    largest: int
    """A group of more members, those that are kept out among them, is dropped; 0 for no limit."""
    mine: tuple[int, int]
    """The bucket whose pairs are counted, and how many there are."""


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


Rows = tuple[Ids, Ids, Ids]
"""Some whole groups, a row for each member: what tells groups apart (the paper that makes each or, if sentences do, the
number of the sentence), the paper that makes each or that the sentence is of, and the members."""
Occurrences = tuple[IdSet, NDArray[np.int32], int]
"""The papers that a pair can have, how many groups each is in, by its place, and how many groups there are."""


def open_source(files: Sequence[Path], queries: Path, settings: Counting, mine: tuple[int, int]) -> Source:
    """Citations to make groups of; twins of queries count as queries. Raises `InputError` if a file is missing or a
    query has a negative id."""
    signal = SIGNALS[settings.signal]
    for file in files:
        open_table(file, signal.citations).close()
    asked, kept_out = (read(queries)["corpusid"].to_numpy() for read in (read_queries, read_kept_out))
    twins = read_twins(queries)
    asked = np.concatenate([asked, twins.papers[np.isin(twins.works, asked)]])
    for ids in (asked, kept_out):
        check_ids(ids, queries)
    sets = {"queries": set_of(asked), "kept_out": set_of(kept_out)}
    return Source(signal=signal, files=files, **sets, largest=settings.largest or 0, mine=mine)


def read_pieces(source: Source, capacity: int, tally: Tally, *, all_pairs: bool) -> Iterator[tuple[Piece, bool]]:
    """The groups of two or more members with a query among them, in pieces; and whether a piece is the last. A piece
    has `capacity` members or a bit more, fewer where ids are high. The next piece overwrites it."""
    members = np.empty(capacity + ROWS_READ, dtype=np.int32)
    sizes: list[NDArray[np.int64]] = []
    papers, written = GrowingIdSet(), 0

    def piece() -> Piece:
        places = members[:written]
        ids = papers.place(places)
        is_full = np.ones(len(ids), dtype=bool) if all_pairs else are_in(source.queries, ids)
        queries = places[:0] if all_pairs else places[is_full[places]]
        return Piece(ids, places, np.concatenate(sizes), queries, is_full)

    # The papers at hand may take what a piece of this capacity has for them, and must not be too many to be numbered.
    most_words = min(capacity * (BYTES_A_MEMBER - 4) // BYTES_A_WORD, HIGH_WORDS - ROWS_READ)
    for rows in _whole_groups(source):
        taken, taken_sizes = _take(source, rows, tally, least=2, anchored=True)
        if written and (written + len(taken) > len(members) or papers.high_words > most_words):
            yield piece(), False
            sizes, papers, written = [], GrowingIdSet(), 0
        if len(taken) > len(members):
            members = np.empty(len(taken), dtype=np.int32)
        papers.number(taken, members[written : written + len(taken)])
        sizes.append(taken_sizes)
        written += len(taken)
    if written:
        yield piece(), True


def count_occurrences(source: Source, *, all_pairs: bool) -> Occurrences:
    """Count in two passes: which papers are in a group with a query, and how many groups each of them is in."""

    def members_of_groups(tally: Tally, *, anchored: bool) -> Iterator[Ids]:
        return (_take(source, rows, tally, least=1, anchored=anchored)[0] for rows in _whole_groups(source))

    tallies = np.zeros((2, 5), dtype=np.int64)
    papers = id_set(members_of_groups(tallies[0], anchored=True))
    counts = np.zeros(size(papers), dtype=np.int32)
    for members in members_of_groups(tallies[1], anchored=all_pairs):
        places = places_of(papers, members)
        np.add.at(counts, places[places >= 0], 1)
    return papers, counts, int(tallies[1, ANCHORED_GROUPS if all_pairs else GROUPS])


def _whole_groups(source: Source) -> Iterator[Rows]:
    """The groups, file after file, some at a time."""
    is_listed = pa.types.is_list(TABLES[source.signal.citations].columns[source.signal.member].type)
    number = 0
    for path in source.files:
        if is_listed:
            for owners, members in _batches(source, path, LISTS_READ):
                rows = pc.list_parent_indices(members).to_numpy()
                yield number + rows, owners[rows], members.flatten().to_numpy()
                number += len(owners)
        else:
            yield from ((groups, groups, ids) for groups, ids in _groups_by_row(source, path))


def _batches(source: Source, path: Path, rows: int) -> Iterator[tuple[Ids, pa.Array]]:
    """The columns of groups and members of a file, some rows at a time. Raises `InputError` for a negative id."""
    columns = [source.signal.group, source.signal.member]
    with open_table(path, source.signal.citations) as file:
        for batch in file.iter_batches(rows, columns=columns, use_threads=False):
            groups, members = batch[columns[0]].to_numpy(), batch[columns[1]]
            check_ids(groups, path)
            check_ids((members.flatten() if pa.types.is_list(members.type) else members).to_numpy(), path)
            yield groups, members


def _groups_by_row(source: Source, path: Path) -> Iterator[tuple[Ids, Ids]]:
    """The rows of a file, cut between groups; a group that spans several batches comes separately."""
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
    count = len(rows[0])
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
