"""Pairs of papers that are cited together, or that cite together: counted in bounded memory, one bucket a job.

Two papers are co-cited as often as there are distinct papers that cite both (Small, 1973), or distinct sentences where
these are counted, and coupled as often as there are distinct papers that both cite (Kessler, 1963). In come all buckets
of the citations and the queries; out goes one bucket of pairs, by the smaller id, each pair once. A job reads all
citations, since any paper may cite one of its bucket, but keeps only the groups that hold a query, at four bytes a
member.

Papers that are kept out neither make nor join a pair.

A strength corrects the count c of a pair for how many groups each paper is in, s; N is the number of groups. For
co-citation a group is the references of a citing paper, so s is how often a paper is cited; for coupling it is the
papers that cite one paper, so s is how many references a paper has. All are counted over the same groups, or the
measures would be wrong. With `pairs: query` these are all groups that are left without the papers that are kept out and
the groups that are too large: every one that holds both papers of a pair holds a query, so its count is complete. With
`pairs: all` they are the groups that hold a query, because pairs are counted over these only; s then says how often a
paper occurs beside or as a query.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.config.graphs import Counting
from cocite.config.settings import GivenAsJson
from cocite.core.database import spill_folder
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, GrowingIdSet, Ids, IdSet, places_of, size
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Queries
from cocite.core.tables.files import write_omissions, write_table
from cocite.core.tables.splits import read_queries
from cocite.graph.citations import Source, open_citations
from cocite.graph.counting import UNIT, Counted, count_pairs_of, merge, spill_run
from cocite.graph.groups import (
    ANCHORED_GROUPS,
    BYTES_A_MEMBER,
    GROUPS,
    LARGE_GROUPS,
    OF_KEPT_OUT,
    OF_LARGE_GROUPS,
    ROWS_READ,
    Tally,
    read_members,
    read_pieces,
)

FIXED_MB = 500
"""Memory, MB, beside what grows with a piece: Python with its libraries 290 (measured), bitmaps of ids and blocks."""
LARGEST_PIECE = 2**31 - 2 * ROWS_READ
"""Members of a piece whose places fit into 32 bits."""
KEPT_OUT = "citations by or of papers that are kept out"

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Occurrences:
    """How many groups each paper is in."""

    papers: IdSet
    """The papers that a pair can have."""
    counts: NDArray[np.int32]
    """Groups that each is in, by its place."""
    groups: int
    """How many groups there are."""


@dataclass(kw_only=True)
class Met:
    """What the omissions are computed from, filled in while groups are read."""

    tally: Tally
    queries: Ids
    """The queries of the bucket."""
    paired: NDArray[np.bool_]
    """Which of them have a pair."""


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
    source = open_citations(settings.signal, citations, queries, settings.largest)
    asked = np.unique(read_queries(queries)["corpusid"].to_numpy())
    mine = asked[asked % buckets == bucket]
    met = Met(tally=Tally(bucket=bucket, buckets=buckets), queries=mine, paired=np.zeros(len(mine), dtype=bool))
    occurrences = None
    if settings.strength in MEASURES:
        occurrences = count_occurrences(source, all_pairs=settings.pairs == "all")
    capacity = min(max(ROWS_READ, (memory_mb - FIXED_MB) * 1_000_000 // BYTES_A_MEMBER), LARGEST_PIECE)
    with spill_folder(output.parent) as folder:
        blocks = _count(source, settings, met, capacity, Path(folder))
        batches = _as_batches(blocks, settings.strength, occurrences, output)
        write_table(output, source.signal.pairs, batches)
    groups, citations_of_groups = source.signal.too_large
    left_out = {
        KEPT_OUT: int(met.tally.numbers[OF_KEPT_OUT]),
        groups: int(met.tally.numbers[LARGE_GROUPS]),
        citations_of_groups: int(met.tally.numbers[OF_LARGE_GROUPS]),
        source.signal.alone: int((~met.paired).sum()),
    }
    write_omissions(omissions, left_out)


def _count(source: Source, settings: Counting, met: Met, capacity: int, folder: Path) -> Iterator[Counted]:
    """The pairs of one bucket; those of several pieces are laid by in the folder, and merged."""
    runs: list[Path] = []
    mine = (met.tally.bucket, met.tally.buckets)
    for piece, is_last in read_pieces(source, capacity, met.tally, all_pairs=settings.pairs == "all"):
        met.paired |= piece.ids[np.searchsorted(piece.ids[:-1], met.queries)] == met.queries
        blocks = count_pairs_of(piece, mine, fractional=settings.strength == "fractional")
        if is_last and not runs:
            yield from blocks
            return
        runs.append(folder / f"{len(runs)}.arrow")
        spill_run(runs[-1], blocks)
    if not runs:
        among = "" if settings.largest is None else f", among groups of at most {settings.largest} papers"
        raise InputError(f"{source.files[0].parent}: holds no pair for the graph; {source.signal.empty}{among}.")
    yield from merge(runs)


def _as_batches(
    blocks: Iterable[Counted], strength: str, occurrences: Occurrences | None, output: Path
) -> Iterator[pa.RecordBatch]:
    empty = NO_IDS, NO_IDS, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    for counted in chain([empty], blocks):
        columns = dict(zip(("paper", "other", "count"), counted, strict=False))
        if strength != "count":
            strengths = strengths_of(strength, counted, occurrences)
            if not np.isfinite(strengths).all():
                raise InputError(f"{output}: a {strength} is not a finite number; the citations do not fit together.")
            columns["strength"] = strengths
        yield pa.record_batch(columns)


def count_occurrences(source: Source, *, all_pairs: bool) -> Occurrences:
    """Count in two passes: which papers are in a group with a query, and how many groups each of them is in."""
    growing = GrowingIdSet()
    for members in read_members(source, Tally(), anchored=True):
        growing.add(members)
    papers = growing.finish()
    counts = np.zeros(size(papers), dtype=np.int32)
    tally = Tally()
    for members in read_members(source, tally, anchored=all_pairs):
        places = places_of(papers, members)
        np.add.at(counts, places[places >= 0], 1)
    groups = tally.numbers[ANCHORED_GROUPS if all_pairs else GROUPS]
    return Occurrences(papers=papers, counts=counts, groups=int(groups))


def strengths_of(measure: str, counted: Counted, occurrences: Occurrences | None) -> Numbers:
    """The strength of each pair, float64."""
    paper, other, count, shares = counted
    if occurrences is None:
        return shares / UNIT
    counts = occurrences.counts
    one, two = (counts[places_of(occurrences.papers, end)].astype(np.float64) for end in (paper, other))
    return MEASURES[measure](count.astype(np.float64), one, two, occurrences.groups)
