"""Works as rows of the ingested tables: papers, abstracts and citations, cut by bucket."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.tables import ID, TABLES, empty_schema
from cocite.corpus.ingest.accounting import ABSTRACTS_OF_WORKS, CITATIONS_OF_WORKS, KEPT, Tally
from cocite.corpus.ingest.citations import LEFT_OUT
from cocite.corpus.ingest.records import ABSTRACTS
from cocite.corpus.ingest.scanning import NO_CITED, SELF
from cocite.corpus.works.columns import AUTHORS, MAG, dois_in, not_blank, texts_in_order
from cocite.corpus.works.scanning import cut_references

NAMES = ("papers", "abstracts", "citations")
(EMPTY,) = ABSTRACTS.omissions
_OF_PAPERS = (
    *("corpusid", "title", "year", "venue", "fields", "doi", "citation_count", "reference_count", AUTHORS, MAG),
    "left_out",
)
DISTINCT = {"papers": ("title", "doi"), "abstracts": ("abstract",), "citations": ()}
"""Columns of each table in which hardly a value comes again."""

Columns = dict[str, pa.ChunkedArray]
"""Rows as `rows_of` gives them, a column a name."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the ingested tables are written to."""

    papers: Path
    abstracts: Path
    citations: Path


def schemas(*, authors: bool, mag: bool) -> dict[str, pa.Schema]:
    """The schema of each table."""
    given = {name: empty_schema(TABLES[f"ingested_{name}"]) for name in NAMES}
    asked = {AUTHORS: authors, MAG: mag}
    kept = [name for name in given["papers"].names if asked.get(name, True)]
    return given | {"papers": pa.schema([given["papers"].field(name) for name in kept])}


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


def tables_of(rows: Columns, buckets: int, tally: Tally) -> Iterator[tuple[str, pa.RecordBatch, list[int]]]:
    """The name of each table, its rows, sorted by bucket, and where the rows of the buckets begin and end.

    Abstracts and citations are counted. `rows` is emptied on the way, so that no column is in memory for longer than it
    takes to sort it.
    """
    ids = _ids(rows)
    bucket = (ids % buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=buckets))])
    for name, make in (("abstracts", _abstracts), ("citations", _citations), ("papers", _papers)):
        columns, ends = make(rows, order, tally)
        cuts = starts if ends is None else ends[starts]
        length = int(cuts[-1])
        given = {
            "bucket": np.repeat(np.arange(buckets, dtype=np.uint16), np.diff(cuts)),
            "shard": pa.DictionaryArray.from_arrays(np.zeros(length, dtype=np.int32), pa.array([tally.shard])),
        }
        yield name, pa.record_batch(given | columns), np.unique(cuts).tolist()


def _ids(rows: Columns) -> NDArray[np.int64]:
    return rows["corpusid"].combine_chunks().to_numpy()


Made = tuple[dict[str, pa.Array], NDArray[np.int64] | None]
"""Columns of a table, and how many of its rows are of the works before each, where a work has not just one."""


def _abstracts(rows: Columns, order: NDArray[np.int64], tally: Tally) -> Made:
    given = rows.pop("abstract")
    is_given = given.is_valid().to_numpy()[order]
    texts = not_blank(texts_in_order(given, order[is_given]))
    is_kept = is_given.copy()
    is_kept[is_given] = texts.is_valid().to_numpy(zero_copy_only=False)
    kept = int(np.count_nonzero(is_kept))
    tally.beside[ABSTRACTS_OF_WORKS].update({KEPT: kept, EMPTY: len(texts) - kept})
    ids = _ids(rows)[order[is_kept]]
    return {"corpusid": pa.array(ids), "abstract": texts.drop_null() if texts.null_count else texts}, _ends(is_kept)


def _ends(counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _citations(rows: Columns, order: NDArray[np.int64], tally: Tally) -> Made:
    references = rows["references"].combine_chunks()
    numbers, offsets = references.values.fill_null(-1).to_numpy(), references.offsets.to_numpy()
    citing, cited = (np.empty(len(numbers), dtype=np.int64) for _ in range(2))
    ends = np.zeros(len(order) + 1, dtype=np.int64)
    unknown, own = cut_references(_ids(rows), offsets, numbers, order, citing, cited, ends)
    kept = int(ends[-1])
    tally.beside[CITATIONS_OF_WORKS].update({KEPT: kept, LEFT_OUT[NO_CITED]: unknown, LEFT_OUT[SELF]: own})
    traits = np.zeros(kept, dtype=np.uint8)
    columns = {"citationid": pa.nulls(kept, ID), "citing": citing[:kept], "cited": cited[:kept], "traits": traits}
    return columns, ends


def _papers(rows: Columns, order: NDArray[np.int64], tally: Tally) -> Made:
    places = pa.array(order)
    counts = pc.list_value_length(rows.pop("references"))
    rows["reference_count"] = pc.if_else(rows["left_out"], None, counts)
    return {
        name: _TIDY.get(name, _as_it_is)(rows.pop(name).combine_chunks().take(places))
        for name in _OF_PAPERS
        if name in rows
    }, None


def _as_it_is(column: pa.Array) -> pa.Array:
    return column


_TIDY = {"title": not_blank, "venue": not_blank, "doi": dois_in}
"""How columns of papers are tidied up."""
