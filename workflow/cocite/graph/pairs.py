"""Pairs of papers that are cited together, or that cite together: counted in bounded memory, one bucket per job.

Two papers are co-cited as often as there are distinct papers, or sentences, that cite both (Small, 1973), and coupled
as often as there are distinct papers that both cite (Kessler, 1963). The input is all buckets of the citations and the
queries; the output is one bucket of pairs, by the smaller id, each pair once. A job reads all citations, since any
paper may cite one of its bucket, but keeps only the groups with a query, at four bytes per member. Excluded papers
neither make nor join a pair.

A strength corrects the count c of a pair for the number of groups that each paper is in, s; N is the number of groups.
For co-citation a group is the references of a citing paper, so s is how often a paper is cited; for coupling it is the
papers that cite one paper, so s is how many references a paper has. With `pairs: query`, s and N are over all groups
without excluded papers and within the size limit: every group with both papers of a pair has a query, so its count is
complete. With `pairs: all` they are over the groups with a query, because pairs are counted only over these; s then
counts how often a paper occurs with a query, or is one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.config.graphs import PAIRS, Counting
from cocite.config.settings import GivenAsJson
from cocite.core.database import spill_folder
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, IdSet, check_ids, id_set, places_of, set_of, size
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Queries
from cocite.core.tables.files import open_table, write_omissions, write_table
from cocite.core.tables.papers import read_kept_out, read_queries, read_twins
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.graph.citations import SIGNALS, Source
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
    new_tally,
    read_members,
    read_pieces,
)

FIXED_MB = 500
"""Memory, MB, in addition to a piece: Python with its libraries 290 (measured), bitmaps of ids and blocks."""
LARGEST_PIECE = 2**31 - 2 * ROWS_READ
"""Members of a piece whose places fit into 32 bits."""
KEPT_OUT = "citations by or of papers that are kept out"

Numbers = NDArray[np.float64]


class Occurrences(NamedTuple):
    """How many groups each paper is in."""

    papers: IdSet
    """The papers that a pair can have."""
    counts: NDArray[np.int32]
    """Groups that each is in, by its place."""
    groups: int
    """How many groups there are."""


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
    source = _open(citations, queries, settings, (bucket, buckets))
    occurrences = None
    if settings.strength in MEASURES:
        occurrences = count_occurrences(source, all_pairs=settings.pairs == "all")
    capacity = min(max(ROWS_READ, (memory_mb - FIXED_MB) * 1_000_000 // BYTES_A_MEMBER), LARGEST_PIECE)
    asked = distinct(read_queries(queries)["corpusid"].to_numpy())
    own = asked[asked % buckets == bucket]
    tally, alone = new_tally(), np.ones(len(own), dtype=bool)
    with spill_folder(output.parent) as folder:
        blocks = _count(source, settings, capacity, tally, own, alone, Path(folder))
        write_table(output, PAIRS[settings.signal], _as_batches(blocks, settings.strength, occurrences, output))
    reasons = (KEPT_OUT, *source.signal.too_large)
    left_out = dict(zip(reasons, tally[[OF_KEPT_OUT, LARGE_GROUPS, OF_LARGE_GROUPS]].tolist(), strict=True))
    write_omissions(omissions, left_out | {source.signal.alone: int(alone.sum())})


def _open(files: Sequence[Path], queries: Path, settings: Counting, mine: tuple[int, int]) -> Source:
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


def _count(
    source: Source,
    settings: Counting,
    capacity: int,
    tally: Tally,
    queries: Ids,
    alone: NDArray[np.bool_],
    folder: Path,
) -> Iterator[Counted]:
    """The pairs of one bucket; several pieces are merged on disk. Queries with a pair are removed from `alone`."""
    runs: list[Path] = []
    for piece, is_last in read_pieces(source, capacity, tally, all_pairs=settings.pairs == "all"):
        alone &= ~look_up(piece.ids, queries)[1]
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
    for counted in chain([empty], blocks):
        columns = dict(zip(("paper", "other", "count"), counted, strict=False))
        if strength != "count":
            strengths = columns["strength"] = _strengths(strength, counted, occurrences)
            if not np.isfinite(strengths).all():
                raise InputError(f"{output}: a {strength} is not a finite number; the citations do not fit together.")
        yield pa.record_batch(columns)


def count_occurrences(source: Source, *, all_pairs: bool) -> Occurrences:
    """Count in two passes: which papers are in a group with a query, and how many groups each of them is in."""
    papers = id_set(read_members(source, new_tally(), anchored=True))
    counts, tally = np.zeros(size(papers), dtype=np.int32), new_tally()
    for members in read_members(source, tally, anchored=all_pairs):
        places = places_of(papers, members)
        np.add.at(counts, places[places >= 0], 1)
    return Occurrences(papers, counts, int(tally[ANCHORED_GROUPS if all_pairs else GROUPS]))


def _strengths(measure: str, counted: Counted, occurrences: Occurrences | None) -> Numbers:
    """The strength of each pair, float64."""
    paper, other, count, shares = counted
    if occurrences is None:
        return shares / UNIT
    papers, counts, groups = occurrences
    one, two = (counts[places_of(papers, end)].astype(np.float64) for end in (paper, other))
    return MEASURES[measure](count.astype(np.float64), one, two, groups)
