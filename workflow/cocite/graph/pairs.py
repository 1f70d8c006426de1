"""Pairs of papers that are cited together, or that cite together: counted in bounded memory, one bucket a job.

Two papers are co-cited as often as there are distinct papers that cite both (Small, 1973), or distinct sentences where
these are counted, and coupled as often as there are distinct papers that both cite (Kessler, 1963). In come all buckets
of the citations and the queries; out goes one bucket of pairs, by the smaller id, each pair once. A job reads all
citations, since any paper may cite one of its bucket, but keeps only the groups that hold a query, at four bytes a
member.

Papers that are kept out neither make nor join a pair.
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
from cocite.core.id_sets import NO_IDS, Ids
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Queries
from cocite.core.tables.files import write_omissions, write_table
from cocite.core.tables.splits import read_queries
from cocite.graph.citations import Source, open_citations
from cocite.graph.counting import Counted, count_pairs_of
from cocite.graph.groups import (
    BYTES_A_MEMBER,
    LARGE_GROUPS,
    OF_KEPT_OUT,
    OF_LARGE_GROUPS,
    ROWS_READ,
    Tally,
    read_pieces,
)
from cocite.graph.merging import lay_by, merge
from cocite.graph.strengths import MEASURES, Occurrences, count_occurrences, strengths_of

FIXED_MB = 500
"""Memory, MB, beside what grows with a piece: Python with its libraries 290 (measured), bitmaps of ids and blocks."""
LARGEST_PIECE = 2**31 - 2 * ROWS_READ
"""Members of a piece whose places fit into 32 bits."""
KEPT_OUT = "citations by or of papers that are kept out"


@dataclass(kw_only=True)
class Met:
    """What the omissions are computed from, filled in while groups are read."""

    tally: Tally
    queries: Ids
    """The queries of the bucket."""
    paired: NDArray[np.bool_]
    """Which of them have a pair."""


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

    `citations` are all buckets of the table `citations` or, for coupling, `citations_by_cited`, or, for sentences,
    `contexts`. Raises `InputError` if one is missing, an id is negative, or there is no pair at all.
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
        lay_by(runs[-1], blocks)
    if not runs:
        among = "" if settings.largest is None else f", among groups of at most {settings.largest} papers"
        raise InputError(f"{source.files[0].parent}: holds no pair for the graph; {source.signal.empty}{among}.")
    yield from merge(runs)


def _as_batches(
    blocks: Iterable[Counted], strength: str, occurrences: Occurrences | None, output: Path
) -> Iterator[pa.RecordBatch]:
    empty = NO_IDS, NO_IDS, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    for counted in chain([empty], blocks):
        columns = {"paper": counted[0], "other": counted[1], "count": counted[2]}
        if strength == "count":
            yield pa.record_batch(columns)
            continue
        strengths = strengths_of(strength, counted, occurrences)
        if not np.isfinite(strengths).all():
            raise InputError(f"{output}: a {strength} is not a finite number; the citations do not fit together.")
        yield pa.record_batch({**columns, "strength": strengths})
