"""Works as rows of the ingested tables: papers, abstracts and citations, cut by bucket."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.corpus.ingest.accounting import ABSTRACTS_OF_WORKS, CITATIONS_OF_WORKS, KEPT, Tally
from cocite.corpus.ingest.citations import LEFT_OUT
from cocite.corpus.ingest.records import ABSTRACTS
from cocite.corpus.ingest.scanning import NO_CITED, SELF
from cocite.corpus.works.columns import AUTHORS, dois_in, not_blank
from cocite.tables import ID, TABLES, empty_schema

NAMES = ("papers", "abstracts", "citations")
(EMPTY,) = ABSTRACTS.omissions
_OF_PAPERS = ("corpusid", "title", "year", "venue", "fields", "doi", "citation_count", "reference_count", AUTHORS)


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the ingested tables are written to."""

    papers: Path
    abstracts: Path
    citations: Path


def schemas(*, authors: bool) -> dict[str, pa.Schema]:
    """The schema of each table."""
    given = {name: empty_schema(TABLES[f"ingested_{name}"]) for name in NAMES}
    without = [name for name in given["papers"].names if authors or name != AUTHORS]
    return given | {"papers": pa.schema([given["papers"].field(name) for name in without])}


def rows_of(works: pa.RecordBatch, taken: NDArray[np.bool_]) -> pa.RecordBatch:
    """The works as they leave, what is left out with its id alone."""
    kept = works if taken.all() else works.filter(pa.array(taken))
    rows = pa.record_batch(
        {name: column for name, column in zip(kept.schema.names, kept.columns, strict=True) if name not in _JUDGED}
        | {"left_out": pa.repeat(pa.scalar(False), len(kept))}
    )
    if taken.all():
        return rows
    ids = works.column("corpusid").filter(pa.array(~taken))
    stand_ins = {"corpusid": ids, "left_out": pa.repeat(pa.scalar(True), len(ids))}
    lists = pa.array(np.zeros(len(ids) + 1, dtype=np.int32))
    columns = [
        stand_ins[field.name]
        if field.name in stand_ins
        else pa.ListArray.from_arrays(lists, pa.array([], field.type.value_type))
        if pa.types.is_list(field.type)
        else pa.nulls(len(ids), field.type)
        for field in rows.schema
    ]
    return pa.concat_batches([rows, pa.record_batch(columns, schema=rows.schema)])


_JUDGED = ("type", "language", "retracted", "paratext")
"""Columns that only the filters ask for."""


def tables_of(rows: pa.Table, buckets: int, tally: Tally) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each table and bucket, with the name of the table; abstracts and citations are counted."""
    bucket = (rows.column("corpusid").to_numpy() % buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    (sorted_rows,) = rows.combine_chunks().take(pa.array(order)).combine_chunks().to_batches() or [None]
    bucket = bucket[order]
    for name, table in (
        ("papers", _papers(sorted_rows)),
        ("abstracts", _abstracts(sorted_rows, tally)),
        ("citations", _citations(sorted_rows, tally)),
    ):
        places = bucket if table.rows is None else bucket[table.rows]
        starts = np.searchsorted(places, np.arange(buckets + 1)).tolist()
        shard = pa.DictionaryArray.from_arrays(np.zeros(len(places), dtype=np.int32), pa.array([tally.shard]))
        batch = pa.record_batch({"bucket": places, **table.columns, "shard": shard})
        yield from ((name, batch.slice(start, stop - start)) for start, stop in pairwise(starts) if stop > start)


@dataclass(frozen=True, kw_only=True)
class _Columns:
    columns: dict[str, pa.Array]
    rows: NDArray[np.int64] | None = None
    """The work that each row is of; all works in their order if there is none."""


def _papers(rows: pa.RecordBatch) -> _Columns:
    counts = pc.list_value_length(rows.column("references"))
    left_out = rows.column("left_out")
    counted = {"reference_count": pc.if_else(left_out, None, counts), "left_out": left_out}
    given = {name: _TIDY.get(name, _as_it_is)(rows.column(name)) for name in _OF_PAPERS if name in rows.schema.names}
    return _Columns(columns=given | counted)


def _as_it_is(column: pa.Array) -> pa.Array:
    return column


_TIDY = {"title": not_blank, "venue": not_blank, "doi": dois_in}
"""How columns of papers are tidied up."""


def _abstracts(rows: pa.RecordBatch, tally: Tally) -> _Columns:
    texts = not_blank(rows.column("abstract"))
    places = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    given = len(rows) - rows.column("abstract").null_count
    tally.beside[ABSTRACTS_OF_WORKS].update({KEPT: len(places), EMPTY: given - len(places)})
    columns = {"corpusid": rows.column("corpusid").take(pa.array(places)), "abstract": texts.drop_null()}
    return _Columns(columns=columns, rows=places)


def _citations(rows: pa.RecordBatch, tally: Tally) -> _Columns:
    references = rows.column("references")
    ids, lengths = rows.column("corpusid").to_numpy(), pc.list_value_length(references).to_numpy()
    cited = references.flatten().fill_null(-1).to_numpy()
    places = np.repeat(np.arange(len(rows)), lengths)
    citing = ids[places]
    unknown, own = cited < 0, cited == citing
    kept = ~(unknown | own)
    counts = {KEPT: kept, LEFT_OUT[NO_CITED]: unknown, LEFT_OUT[SELF]: own}
    tally.beside[CITATIONS_OF_WORKS].update({reason: int(np.count_nonzero(of)) for reason, of in counts.items()})
    if not kept.all():
        places, citing, cited = places[kept], citing[kept], cited[kept]
    traits = np.zeros(len(places), dtype=np.uint8)
    columns = {"citationid": pa.nulls(len(places), ID), "citing": citing, "cited": cited, "traits": traits}
    return _Columns(columns=columns, rows=places)
