"""Works from JSON Lines or Parquet, column by column, some thousand at a time.

In lines, the scanner finds the values, and kernels read them. Of Parquet only the needed columns are read; kernels read
ids and inverted indexes.
"""

from collections.abc import Iterable, Iterator, Sequence
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
from cocite.corpus.ingest import work_scanner
from cocite.corpus.ingest.accounting import MalformedError
from cocite.corpus.ingest.json_texts import LEFT_TO_PYTHON, NO_INDEX, abstracts_of
from cocite.corpus.ingest.navigating import U, copy_texts, overlapping_words
from cocite.corpus.ingest.unpacking import PADDING, Block
from cocite.corpus.ingest.work_records import Read, as_works, days_in, fields_of, lists_of_names, numbers_in, texts_from
from cocite.corpus.release.copies import DATE, INDEX, OF_LISTS, TITLES, columns_read

KEYS = (
    *(
        "id",
        "doi",
        "title",
        "display_name",
        "publication_year",
        DATE,
        "type",
        "language",
        "is_retracted",
        "is_paratext",
    ),
    *("cited_by_count", "referenced_works", "abstract_inverted_index", "primary_topic", "topics", "primary_location"),
)
"""The keys of a record that are read."""
OF_AUTHORS, OF_MAG = "authorships", "ids"
"""Keys that are read as well, for the names of authors and for ids in the Microsoft Academic Graph."""
LINES_AT_ONCE, ROWS_AT_ONCE = 1 << 14, 1 << 12
SHORTEST_NAME = len('{"author":{"display_name":"A"}}') - 1
SHORTEST_REFERENCE = len("null,")

Bounds = tuple[NDArray[np.uint64], NDArray[np.uint64]]


def read_blocks(blocks: Iterable[Block], *, authors: bool, mag: bool = False) -> Iterator[Read]:
    """The works of the lines of each block, some thousand at a time."""
    named = (*KEYS, *([OF_AUTHORS] if authors else []), *([OF_MAG] if mag else []))
    for block in blocks:
        position = 0
        while position < block.length:
            lines = _Lines(block, position, named)
            position = lines.stop
            yield Read(works=lines.works(), odd=lines.odd, record=lines.text_of)


class _Lines:
    """Some lines of a block, and the positions of the values of the keys in them."""

    def __init__(self, block: Block, start: int, named: Sequence[str]) -> None:
        self._text, self._words, self._named = block.text, overlapping_words(block.text), named
        keys = np.array([key.encode() for key in named]).view(np.uint8).reshape(len(named), -1)
        of_length = np.zeros(keys.shape[1] + 1, dtype=np.uint64)
        np.bitwise_or.at(of_length, [len(key) for key in named], U(1) << np.arange(len(named), dtype=np.uint64))
        room = min(LINES_AT_ONCE, (block.length - start) // 2 + 1)
        lines, odd = np.empty((room, 2), dtype=np.uint64), np.empty(room, dtype=np.bool_)
        starts, ends = (np.empty((len(keys), room), dtype=np.uint64) for _ in range(2))
        stop, count = work_scanner.scan_works(
            self._words, U(start), U(block.length), keys, of_length, lines, starts, ends, odd
        )
        self.stop, self._lines, self.odd = int(stop), lines[:count], odd[:count]
        self._starts, self._ends = starts[:, :count], ends[:, :count]
        self._starts[:, self.odd] = self._ends[:, self.odd] = 0

    def text_of(self, row: int) -> bytes:
        """A line as it is."""
        first, last = self._lines[row].tolist()
        return self._text[first:last].tobytes()

    def works(self) -> pa.RecordBatch:
        """The columns of all lines; values of odd lines are undefined."""
        title, name = self._bounds("title"), self._bounds("display_name")
        either = np.where(title[0] < title[1], title, name)
        numbers = np.empty(len(self.odd), dtype=np.int64)
        work_scanner.read_own_ids(self._words, *self._bounds("id"), numbers, self.odd)
        columns = {
            "corpusid": numbers,
            "title": self._texts((either[0], either[1])),
            "year": self._numbers("publication_year", "year"),
            "date": days_in(self._texts(self._bounds(DATE))),
            "venue": self._texts(self._within("primary_location", "source", "display_name")),
            "fields": self._fields(),
            "doi": self._texts(self._bounds("doi")),
            "citation_count": self._numbers("cited_by_count", "citation_count"),
            "type": self._texts(self._bounds("type")),
            "language": self._texts(self._bounds("language")),
            "retracted": self._flags("is_retracted"),
            "paratext": self._flags("is_paratext"),
            "references": self._references(),
        }
        text, offsets, outcomes = abstracts_of(self._words, self._bounds("abstract_inverted_index"))
        self.odd |= outcomes == LEFT_TO_PYTHON
        columns["abstract"] = texts_from(text, offsets, outcomes != NO_INDEX)
        if OF_AUTHORS in self._named:
            columns[AUTHORS] = lists_of_names(*self._listed(OF_AUTHORS, "author"), len(self.odd), distinct=False)
        if OF_MAG in self._named:
            columns[MAG] = self._mag()
        return as_works(columns)

    def _bounds(self, key: str) -> Bounds:
        place = self._named.index(key)
        return self._starts[place], self._ends[place]

    def _within(self, key: str, *path: str) -> Bounds:
        """The bounds of what is under a path of keys in the objects under a key."""
        starts, ends = (bounds.copy() for bounds in self._bounds(key))
        for inner in path:
            work_scanner.find_in_objects(self._words, starts, ends, _bytes(inner), self.odd)
        return starts, ends

    def _texts(self, bounds: Bounds, rows: NDArray[np.int64] | None = None) -> pa.StringArray:
        starts, ends = bounds
        rows = np.arange(len(starts)) if rows is None else rows
        text = np.empty(int((ends - starts).sum()) + 64, dtype=np.uint8)
        offsets = np.zeros(len(starts) + 1, dtype=np.int32)
        work_scanner.read_texts(self._words, starts, ends, rows, text, offsets, self.odd)
        return texts_from(text, offsets, starts < ends)

    def _listed(self, key: str, outer: str) -> tuple[NDArray[np.int64], pa.StringArray]:
        """The row of each display name of what the objects in lists have under a key, and the names."""
        starts, ends = self._bounds(key)
        room = int((ends - starts).sum()) // SHORTEST_NAME + 1
        rows, bounds = np.empty(room, dtype=np.int64), [np.empty(room, dtype=np.uint64) for _ in range(2)]
        count = work_scanner.find_in_lists(
            self._words, starts, ends, _bytes(outer), _bytes("display_name"), self.odd, rows, *bounds
        )
        return rows[:count], self._texts((bounds[0][:count], bounds[1][:count]), rows[:count])

    def _fields(self) -> pa.ListArray:
        primary = self._texts(self._within("primary_topic", "field", "display_name"))
        rows, names = self._listed("topics", "field")
        return fields_of(primary, rows, names)

    def _numbers(self, key: str, column: str) -> pa.Array:
        starts, ends = self._bounds(key)
        numbers = np.empty(len(starts), dtype=np.int64)
        work_scanner.read_numbers(self._words, starts, ends, numbers, self.odd)
        return numbers_in(column, numbers, starts < ends)

    def _flags(self, key: str) -> NDArray[np.bool_]:
        flags = np.empty(len(self.odd), dtype=np.bool_)
        work_scanner.read_flags(self._words, *self._bounds(key), flags, self.odd)
        return flags

    def _mag(self) -> pa.Array:
        """The ids in the Microsoft Academic Graph, plain or as digits; what else there is is left to Python."""
        starts, ends = self._within(OF_MAG, "mag")
        lengths = ends - starts
        text, offsets = np.empty(int(lengths.sum()), dtype=np.uint8), np.zeros(len(starts) + 1, dtype=np.int32)
        copy_texts(starts + np.uint64(self._text.ctypes.data), lengths, np.arange(len(starts)), text, offsets)
        written = texts_from(text, offsets, lengths > 0)
        is_usual = pc.fill_null(pc.match_substring_regex(written.view(pa.binary()), '^(?:[0-9]+|"[0-9]+")$'), True)
        self.odd |= ~is_usual.to_numpy(zero_copy_only=False)
        return ids_in(pc.ascii_trim(pc.if_else(is_usual, written, None), '"'))

    def _references(self) -> pa.ListArray:
        starts, ends = self._bounds("referenced_works")
        numbers = np.empty(int((ends - starts).sum()) // SHORTEST_REFERENCE + 1, dtype=np.int64)
        offsets = np.zeros(len(starts) + 1, dtype=np.int32)
        count = work_scanner.read_references(self._words, starts, ends, numbers, offsets, self.odd)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers[:count]))


def _bytes(key: str) -> NDArray[np.uint8]:
    return np.frombuffer(key.encode(), dtype=np.uint8)


def read_rows(
    path: Path, filters: WorkFilters, *, authors: bool, mag: bool = False, batches_ahead: int = 0
) -> Iterator[Read]:
    """The works of a file, some thousand at a time. Raises `InputError` if it is not Parquet, or lacks a column."""
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
    """The paths of the columns in a file. Raises `InputError` if one is missing or of another type."""
    found = {}
    for place in range(len(file.schema)):
        leaf = file.schema.column(place)
        name = ".".join(part for part in leaf.path.split(".") if part not in OF_LISTS)
        is_date = name == DATE and leaf.logical_type.type in ("STRING", "DATE")
        if is_date or ((name in needed or name in TITLES) and _holds(leaf, needed.get(name, "text"))):
            found[name] = leaf.path
    missing = [f"{name} ({what})" for name, what in needed.items() if name not in found]
    if not any(name in found for name in TITLES):
        missing.append("title or display_name (text)")
    if missing:
        raise InputError(f"{path}: lacks the column {', '.join(missing)}, which is needed; fetch the file with it.")
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
        "date": days_in(_given(batch, DATE, pa.string()).cast(pa.string())),
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
    """A row as keys and values. Raises `MalformedError` if a text is not UTF-8."""
    try:
        (record,) = batch.slice(row, 1).to_pylist()
    except UnicodeDecodeError:
        raise MalformedError("is not UTF-8") from None
    return record


def _valid(texts: pa.StringArray) -> pa.StringArray:
    texts.validate(full=True)
    return texts


def _given(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """A column; null if it is not needed."""
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
    """Texts for kernels: their words, the start of each, and at the end that of a next one."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, last = (int(bounds[0]), int(bounds[-1])) if len(texts) else (0, 0)
    padded = np.empty(last - first + PADDING, dtype=np.uint8)
    padded[last - first :] = 0
    if last > first:
        padded[: last - first] = np.frombuffer(data, dtype=np.uint8)[first:last]
    return overlapping_words(padded), (bounds - first).astype(np.uint64)
