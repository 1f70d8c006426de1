"""Works from Parquet: the columns that are needed, some rows at a time; kernels read ids and inverted indexes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cocite.config.source import WorkFilters
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.progress import ahead
from cocite.core.tables.declarations.corpus import AUTHORS, MAG
from cocite.core.written_ids import ids_in
from cocite.corpus.ingest.accounting import MalformedError
from cocite.corpus.ingest.navigating import overlapping_words
from cocite.corpus.release.needed_columns import INDEX, OF_LISTS, TITLES, columns_read
from cocite.corpus.works import work_scanner
from cocite.corpus.works.json_texts import LEFT_TO_PYTHON, NO_INDEX, abstracts_of
from cocite.corpus.works.work_columns import (
    Read,
    as_works,
    fields_of,
    lists_of_names,
    numbers_in,
    texts_from,
)

ROWS_AT_ONCE = 4096
PADDING = 64
"""Bytes that kernels may read after a text."""


def read_rows(
    path: Path, filters: WorkFilters, *, authors: bool, mag: bool = False, batches_ahead: int = 0
) -> Iterator[Read]:
    """The works of a file, some thousand at a time. Raises `InputError` where it is no Parquet, or lacks a column."""
    needed = columns_read(filters, authors=authors, mag=mag)
    opened = partial(pq.ParquetFile, path, pre_buffer=False, page_checksum_verification=True)
    with explain_unreadable(path, "Parquet file of works"), opened() as file:
        leaves = _find(file, path, needed)
        batches = file.iter_batches(ROWS_AT_ONCE, columns=leaves, use_threads=batches_ahead > 0)
        for batch in ahead(batches, batches_ahead) if batches_ahead else batches:
            odd = np.zeros(len(batch), dtype=np.bool_)
            works = _works(batch, odd, authors=authors, mag=mag)
            yield Read(works=works, odd=odd, record=partial(_record, batch))


def _find(file: pq.ParquetFile, path: Path, needed: dict[str, str]) -> list[str]:
    """The paths of the columns in a file. Raises `InputError` where one is not there, or holds something else."""
    found = {}
    for place in range(len(file.schema)):
        leaf = file.schema.column(place)
        name = ".".join(part for part in leaf.path.split(".") if part not in OF_LISTS)
        if (name in needed or name in TITLES) and _holds(leaf, needed.get(name, "text")):
            found[name] = leaf.path
    missing = [f"{name} ({what})" for name, what in needed.items() if name not in found]
    if not any(name in found for name in TITLES):
        missing.append("title or display_name (text)")
    if missing:
        raise InputError(
            f"{path}: lacks the column {', '.join(missing)}, which a corpus of works needs; fetch the file with it."
        )
    return list(found.values())


def _holds(leaf: Any, what: str) -> bool:
    if what == "true or false":
        return leaf.physical_type == "BOOLEAN"
    if leaf.physical_type in ("INT32", "INT64"):
        return what.startswith("whole numbers")
    if what == "whole numbers":
        return False
    is_text = leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type in ("STRING", "JSON")
    return is_text and leaf.max_repetition_level == what.count("list")


def _works(batch: pa.RecordBatch, odd: NDArray[np.bool_], *, authors: bool, mag: bool) -> pa.RecordBatch:
    """The columns of a batch as those of works; `odd` says of which rows they mean nothing."""
    primary = pc.struct_field(batch.column("primary_topic"), ["field", "display_name"])
    titles = [batch.column(name) for name in TITLES if name in batch.schema.names]
    columns = {
        "corpusid": _own_ids(batch, odd),
        "title": _valid(pc.coalesce(*titles)),
        "year": _numbers(batch, "publication_year", "year"),
        "venue": _valid(pc.struct_field(batch.column("primary_location"), ["source", "display_name"])),
        "fields": fields_of(_valid(primary), *_listed(batch, "topics", "field")),
        "doi": _valid(batch.column("doi")),
        "citation_count": _numbers(batch, "cited_by_count", "citation_count"),
        "type": _given(batch, "type", pa.string()),
        "language": _given(batch, "language", pa.string()),
        "retracted": _given(batch, "is_retracted", pa.bool_()).fill_null(False),
        "paratext": _given(batch, "is_paratext", pa.bool_()).fill_null(False),
        "references": _references(batch.column("referenced_works"), odd),
        "abstract": _abstracts(batch.column(INDEX), odd),
    }
    if authors:
        rows, names = _listed(batch, "authorships", "author")
        columns[AUTHORS] = lists_of_names(rows, names, len(batch), distinct=False)
    if mag:
        columns[MAG] = ids_in(pc.struct_field(batch.column("ids"), "mag").cast(pa.string()))
    return as_works(columns)


def _record(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """A row as keys and values. Raises `MalformedError` where a text is not UTF-8."""
    try:
        (record,) = batch.slice(row, 1).to_pylist()
    except UnicodeDecodeError:
        raise MalformedError("is not UTF-8") from None
    return record


def _valid(texts: pa.StringArray) -> pa.StringArray:
    texts.validate(full=True)
    return texts


def _given(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """A column, which is null where it is not asked for."""
    return batch.column(name) if name in batch.schema.names else pa.nulls(len(batch), kind)


def _numbers(batch: pa.RecordBatch, name: str, column: str) -> pa.Array:
    numbers = batch.column(name).cast(pa.int64())
    return numbers_in(column, numbers.fill_null(0).to_numpy(), numbers.is_valid().to_numpy(zero_copy_only=False))


def _listed(batch: pa.RecordBatch, name: str, outer: str) -> tuple[NDArray[np.int64], pa.StringArray]:
    """The row of each display name of what the structures in lists have, and the names."""
    lists = batch.column(name)
    names = _valid(pc.struct_field(lists.flatten(), [outer, "display_name"]))
    return pc.list_parent_indices(lists).to_numpy().astype(np.int64), names


def _own_ids(batch: pa.RecordBatch, odd: NDArray[np.bool_]) -> NDArray[np.int64]:
    words, bounds = words_of(batch.column("id"))
    numbers = np.empty(len(batch), dtype=np.int64)
    work_scanner.read_listed_ids(words, bounds, numbers, np.arange(len(batch) + 1, dtype=np.int32), odd)
    odd |= numbers < 0
    return numbers


def _references(lists: pa.ListArray, odd: NDArray[np.bool_]) -> pa.ListArray:
    ids = lists.flatten()
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    words, bounds = words_of(ids)
    numbers = np.empty(len(ids), dtype=np.int64)
    work_scanner.read_listed_ids(words, bounds, numbers, offsets, odd)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers))


def _abstracts(indexes: pa.StringArray, odd: NDArray[np.bool_]) -> pa.StringArray:
    words, bounds = words_of(indexes)
    text, offsets, outcomes = abstracts_of(words, (bounds[:-1], bounds[1:]))
    odd |= outcomes == LEFT_TO_PYTHON
    return texts_from(text, offsets, outcomes != NO_INDEX)


def words_of(texts: pa.StringArray) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Texts for kernels: their words, and where each begins, and at the end where the last one ends."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, last = (int(bounds[0]), int(bounds[-1])) if len(texts) else (0, 0)
    padded = np.empty(last - first + PADDING, dtype=np.uint8)
    padded[last - first :] = 0
    if last > first:
        padded[: last - first] = np.frombuffer(data, dtype=np.uint8)[first:last]
    return overlapping_words(padded), (bounds - first).astype(np.uint64)
