"""Groups of papers that occur together, read from citations in pieces that fit into memory.

What co-citation and bibliographic coupling have in common is the group: the papers that one paper cites (co-citation),
or the papers that cite one paper (coupling). Citations are sharded and sorted by that one paper, so a group lies in
one file and in one run of rows. Only groups that hold a query can make a pair that is asked for; the others are
passed over as they are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.ground.id_sets import BYTES_A_WORD, HIGH_WORDS, GrowingIdSet, Ids, IdSet, check_ids, contains, set_of
from cocite.tables.files import open_table
from cocite.tables.splits import read_kept_out, read_queries

ROWS_READ = 1_000_000
BYTES_A_MEMBER = 16
"""Memory for each member of a piece: 4 for its place, and up to 29 for each paper at hand, of which there are fewer.
With 24.5 million members of half a million papers, a job took 550 to 670 MB in all."""

OF_KEPT_OUT, LARGE_GROUPS, OF_LARGE_GROUPS, GROUPS, ANCHORED_GROUPS = range(5)
"""Places in the numbers of a tally."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """How citations make groups, and where their pairs lie."""

    citations: str
    """The table of citations, sorted by the group."""
    group: str
    """The column of the paper that makes the group."""
    member: str
    """The column of the papers that are in it."""
    pairs: str
    """The table of the pairs."""
    too_large: tuple[str, str]
    """What groups that are too large and their citations are called."""
    alone: str
    """What queries without a pair are called."""
    empty: str
    """Why there may be no pair at all."""


SIGNALS = {
    "cocitation": Signal(
        citations="citations",
        group="citing",
        member="cited",
        pairs="cocitations",
        too_large=("papers with more references than max_references", "references of such papers"),
        alone="queries that no paper cites together with another",
        empty="no paper cites a query together with another paper",
    ),
    "coupling": Signal(
        citations="citations_by_cited",
        group="cited",
        member="citing",
        pairs="couplings",
        too_large=("papers with more citations than max_citations", "citations of such papers"),
        alone="queries that share no reference with another paper",
        empty="no query shares a reference with another paper",
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


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Some groups, whose members are given by their places among the papers at hand."""

    ids: Ids
    """The papers at hand, rising."""
    members: NDArray[np.int32]
    """Members of the groups, one group after the other, rising in each."""
    sizes: NDArray[np.int64]
    """Members of each group."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What is met while groups are read.

    Citations by or of papers that are kept out, groups that are too large and their citations are counted for one
    bucket of groups, so that the jobs of all buckets count each once; groups that are left, and those of them that hold
    a query, are counted for all buckets.
    """

    bucket: int = 0
    buckets: int = 1
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(5, dtype=np.int64))


def open_citations(signal: str, files: Sequence[Path], queries: Path, largest: int | None) -> Source:
    """Citations to make groups of. Raises `InputError` if a file is missing or a query has a negative id."""
    for file in files:
        open_table(file, SIGNALS[signal].citations).close()
    query_ids, kept_out = (read(queries)["corpusid"].to_numpy() for read in (read_queries, read_kept_out))
    for ids in (query_ids, kept_out):
        check_ids(ids, queries)
    return Source(
        signal=SIGNALS[signal], files=files, queries=set_of(query_ids), kept_out=set_of(kept_out), largest=largest or 0
    )


def read_pieces(source: Source, capacity: int, tally: Tally) -> Iterator[tuple[Groups, bool]]:
    """The groups of two or more members with a query among them, and whether these are the last.

    They come in pieces of `capacity` members or a bit more, in fewer where ids are high; a piece is overwritten by the
    next one.
    """
    members = np.empty(capacity + ROWS_READ, dtype=np.int32)
    sizes: list[NDArray[np.int64]] = []
    papers, written = GrowingIdSet(), 0
    for rows in _whole_groups(source):
        taken, taken_sizes = _take(source, rows, tally, least=2, anchored=True)
        if written and (written + len(taken) > len(members) or _is_full(papers, capacity)):
            yield _placed(papers, members[:written], sizes), False
            sizes, papers, written = [], GrowingIdSet(), 0
        if len(taken) > len(members):
            members = np.empty(len(taken), dtype=np.int32)
        papers.number(taken, members[written : written + len(taken)])
        sizes.append(taken_sizes)
        written += len(taken)
    if written:
        yield _placed(papers, members[:written], sizes), True


def read_members(source: Source, tally: Tally, *, anchored: bool) -> Iterator[Ids]:
    """The ids of the members of all groups, or of those that hold a query, bit by bit."""
    for rows in _whole_groups(source):
        yield _take(source, rows, tally, least=1, anchored=anchored)[0]


def _is_full(papers: GrowingIdSet, capacity: int) -> bool:
    """Whether the papers at hand take what a piece of this capacity has for them, or more could have no numbers."""
    room = capacity * (BYTES_A_MEMBER - 4) // BYTES_A_WORD
    return papers.high_words > min(room, HIGH_WORDS - ROWS_READ)


def _placed(papers: GrowingIdSet, members: NDArray[np.int32], sizes: list[NDArray[np.int64]]) -> Groups:
    """Groups of these sizes, whose members `papers` has numbered."""
    return Groups(ids=papers.place(members), members=members, sizes=np.concatenate(sizes))


def _whole_groups(source: Source) -> Iterator[tuple[Ids, Ids]]:
    """The columns of groups and members, file after file, cut between groups.

    A group whose rows lie in two batches or more comes alone.
    """
    columns = [source.signal.group, source.signal.member]
    for path in source.files:
        left = np.empty((2, 0), dtype=np.int64)
        with open_table(path, source.signal.citations) as file:
            for batch in file.iter_batches(ROWS_READ, columns=columns, use_threads=False):
                groups, members = (batch[column].to_numpy() for column in columns)
                check_ids(groups, path)
                check_ids(members, path)
                first = int(np.searchsorted(groups, left[0, 0], "right")) if left.size else 0
                left = np.concatenate([left, [groups[:first], members[:first]]], axis=1)
                if first < len(groups):
                    yield left[0], left[1]
                    last = int(np.searchsorted(groups, groups[-1]))
                    yield groups[first:last], members[first:last]
                    left = np.stack([groups[last:], members[last:]])
        yield left[0], left[1]


def _take(
    source: Source, rows: tuple[Ids, Ids], tally: Tally, *, least: int, anchored: bool
) -> tuple[Ids, NDArray[np.int64]]:
    """Members and sizes of whole groups of `least` members or more, with a query among them if `anchored`."""
    taken, sizes = np.empty(len(rows[0]), dtype=np.int64), np.empty(len(rows[0]) // least, dtype=np.int64)
    sets = (source.queries, source.kept_out)
    limits, mine = (least, source.largest), (tally.bucket, tally.buckets)
    members, groups = take_groups(*rows, sets, limits, anchored, taken, sizes, tally.numbers, mine)
    return taken[:members], sizes[:groups].copy()


@njit(nogil=True, cache=True)
def take_groups(groups, members, sets, limits, anchored_only, taken, sizes, tally, mine):  # type: ignore[no-untyped-def]
    """Copy the members of the groups within limits of size, if asked for only where one of them is a query.

    Returns how many members and groups there are.
    """
    queries, kept_out = sets
    least, most = limits
    bucket, buckets = mine
    row, written, found = 0, 0, 0
    while row < len(groups):
        first, start, group, anchored = row, written, groups[row], False
        while row < len(groups) and groups[row] == group:
            member = members[row]
            row += 1
            if not contains(kept_out, member):
                taken[written] = member
                written += 1
                anchored |= contains(queries, member)
        if contains(kept_out, group):
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
