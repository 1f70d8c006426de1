"""Pairs of papers that are cited together, or that cite together: counted in bounded memory, one bucket per job.

Both are pairs of members of groups: the papers that one paper cites, or one sentence (co-citation; Small, 1973), or the
papers that cite one paper (coupling; Kessler, 1963). Citations are sorted by the paper that makes a group, so a group
is one run of rows, or one list. A job reads all buckets of citations, but keeps only groups with a query, in pieces; it
writes one bucket of pairs, by the smaller id, each pair once. Excluded papers neither make nor join a pair.

A strength corrects the count c of a pair for the number of groups that each paper is in, s; N is the number of groups.
With `pairs: query`, both are over all groups within the size limit, since every group of a pair has a query; with
`pairs: all`, over the groups with a query, because pairs are counted only over these.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numba import njit
from numpy.typing import NDArray

from cocite.config.graphs import PAIRS, Counting
from cocite.config.settings import GivenAsJson
from cocite.core import id_sets
from cocite.core.database import spill_folder
from cocite.core.errors import InputError
from cocite.core.id_sets import (
    NO_IDS,
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
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Queries
from cocite.core.tables import TABLES
from cocite.core.tables.files import open_table, write_omissions, write_table
from cocite.core.tables.papers import read_kept_out, read_queries, read_twins
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.graph.counting import UNIT, Counted, Piece, count_pairs_of, merge, spill_run

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
    group: str = "citing"
    """The column of the paper that makes the group, or that the sentence is of which does."""
    member: str = "cited"
    """The column of the papers that are in it: one of them, or all in a list."""
    too_large: tuple[str, str]
    """What groups that are too large and their citations are called."""
    alone: str
    """What queries without a pair are called."""


SIGNALS = {
    "cocitation": Signal(
        citations="citations",
        too_large=("papers with more references than max_references", "references of such papers"),
        alone="queries that no paper cites together with another",
    ),
    "sentence-cocitation": Signal(
        citations="contexts",
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
Rows = tuple[Ids, Ids, Ids]
"""Some whole groups, a row for each member: what tells groups apart (the paper that makes each or, if sentences do, the
number of the sentence), the paper that makes each or that the sentence is of, and the members."""
Occurrences = tuple[IdSet, NDArray[np.int32], int]
"""The papers that a pair can have, how many groups each is in, by its place, and how many groups there are."""

FIXED_MB = 500
"""Memory, MB, in addition to a piece: Python with its libraries 290 (measured), bitmaps of ids and blocks."""
LARGEST_PIECE = 2**31 - 2 * ROWS_READ
"""Members of a piece whose places fit into 32 bits."""
KEPT_OUT = "citations by or of papers that are kept out"

Numbers = NDArray[np.float64]


def cosine(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Salton's cosine, c / √(s·s) (Salton and McGill, 1983, Introduction to Modern Information Retrieval)."""
    return count / np.sqrt(one * other)


def jaccard(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Jaccard's index, c / (s + s − c): of the groups with either, the share with both (Jaccard, 1901; Small, 1973)."""
    return count / (one + other - count)


def association(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Association strength, c / (s·s) (van Eck and Waltman, 2009), proportional to observed over expected."""
    return count / (one * other)


def pmi(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Pointwise mutual information in bits, log₂(N·c / (s·s)) (Church and Hanks, 1990). It can be 0 or less."""
    return np.log2(groups * count / (one * other))


MEASURES = {measure.__name__: measure for measure in (cosine, jaccard, association, pmi)}
"""The measures that take occurrences. `fractional` sums 1/(members − 1) over the groups of a pair instead, so that each
member of a group gives 1 in all, however large the group (Perianes-Rodriguez, Waltman and van Eck, 2016)."""


def count_pairs(
    citations: Annotated[
        list[Path],
        typer.Argument(
            help="All buckets of citations; for coupling, of citations_by_cited; for sentences, of contexts."
        ),
    ],
    queries: Queries,
    settings: GivenAsJson[Counting],
    *,
    bucket: Bucket,
    buckets: Buckets,
    memory_mb: MemoryMb,
    output: Output,
    omissions: Omissions,
) -> None:
    """Write one bucket of `cocitations` or `couplings`, and what was left out.

    Raises `InputError` if a bucket is missing, an id is negative, or there is no pair at all.
    """
    if len(citations) != buckets:
        raise InputError(f"{citations[0].parent}: there are {buckets} buckets, but {len(citations)} are given.")
    source = open_source(citations, queries, settings, (bucket, buckets))
    occurrences = None
    if settings.strength in MEASURES:
        occurrences = count_occurrences(source, all_pairs=settings.pairs == "all")
    capacity = min(max(ROWS_READ, (memory_mb - FIXED_MB) * 1_000_000 // BYTES_A_MEMBER), LARGEST_PIECE)
    asked = distinct(read_queries(queries)["corpusid"].to_numpy())
    own = asked[asked % buckets == bucket]
    tally, alone = np.zeros(5, dtype=np.int64), np.ones(len(own), dtype=bool)
    with spill_folder(output.parent) as folder:
        blocks = _count(source, settings, capacity, tally, own, alone, Path(folder))
        write_table(output, PAIRS[settings.signal], _as_batches(blocks, settings.strength, occurrences, output))
    reasons = (KEPT_OUT, *source.signal.too_large)
    left_out = dict(zip(reasons, tally[[OF_KEPT_OUT, LARGE_GROUPS, OF_LARGE_GROUPS]].tolist(), strict=True))
    write_omissions(omissions, left_out | {source.signal.alone: int(alone.sum())})


def _count(
    source: Source, settings: Counting, capacity: int, tally: Tally, own: Ids, alone: NDArray[np.bool_], folder: Path
) -> Iterator[Counted]:
    """The pairs of one bucket; several pieces are merged on disk. Queries with a pair are removed from `alone`."""
    runs: list[Path] = []
    for piece, is_last in read_pieces(source, capacity, tally, all_pairs=settings.pairs == "all"):
        alone &= ~look_up(piece.ids, own)[1]
        blocks = count_pairs_of(piece, source.mine, fractional=settings.strength == "fractional")
        if is_last and not runs:
            yield from blocks
            return
        runs.append(folder / f"{len(runs)}.arrow")
        spill_run(runs[-1], blocks)
    if not runs:
        among = "" if settings.largest is None else f", among groups of at most {settings.largest} papers"
        raise InputError(f"{source.files[0].parent}: has no pair for the graph, only {source.signal.alone}{among}.")
    yield from merge(runs)


def _as_batches(
    blocks: Iterable[Counted], strength: str, occurrences: Occurrences | None, output: Path
) -> Iterator[pa.RecordBatch]:
    empty = NO_IDS, NO_IDS, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    for paper, other, count, shares in chain([empty], blocks):
        columns: dict[str, NDArray] = {"paper": paper, "other": other, "count": count}
        if occurrences is not None:
            papers, counts, groups = occurrences
            one, two = (counts[places_of(papers, end)].astype(np.float64) for end in (paper, other))
            columns["strength"] = MEASURES[strength](count.astype(np.float64), one, two, groups)
        elif strength == "fractional":
            columns["strength"] = shares / UNIT
        if "strength" in columns and not np.isfinite(columns["strength"]).all():
            raise InputError(f"{output}: a {strength} is not a finite number; the citations do not fit together.")
        yield pa.record_batch(columns)


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
    most_words = min(capacity * (BYTES_A_MEMBER - 4) // id_sets.BYTES_A_WORD, id_sets.HIGH_WORDS - ROWS_READ)
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
