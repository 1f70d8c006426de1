"""Pairs of papers that are cited together, or that cite together: counted in bounded memory, one bucket per job.

Two papers are co-cited as often as there are distinct papers, or sentences, that cite both (Small, 1973), and coupled
as often as there are distinct papers that both cite (Kessler, 1963). A job reads all citations, since any paper may
cite one of its bucket, but keeps only the groups with a query, at four bytes per member.

A strength corrects the count c of a pair for the number of groups that each paper is in, s; N is the number of groups.
With `pairs: query`, s and N are over all groups without excluded papers and within the size limit: every group with
both papers of a pair has a query, so its count is complete. With `pairs: all` they are over the groups with a query,
because pairs are counted only over these.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.config.graphs import PAIRS, Counting
from cocite.config.settings import GivenAsJson
from cocite.core.database import spill_folder
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, places_of
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Queries
from cocite.core.tables.files import write_omissions, write_table
from cocite.core.tables.papers import read_queries
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.graph.counting import UNIT, Counted, count_pairs_of, merge, spill_run
from cocite.graph.groups import (
    BYTES_A_MEMBER,
    LARGE_GROUPS,
    OF_KEPT_OUT,
    OF_LARGE_GROUPS,
    ROWS_READ,
    Occurrences,
    Source,
    Tally,
    count_occurrences,
    open_source,
    read_pieces,
)

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
