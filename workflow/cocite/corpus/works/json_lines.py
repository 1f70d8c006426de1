"""Works from blocks of JSON Lines: the scanner finds the values in the lines, and reads them column by column."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.tables.declarations.corpus import AUTHORS, MAG
from cocite.core.written_ids import ids_in
from cocite.corpus.ingest.navigating import U, copy_texts, overlapping_words
from cocite.corpus.ingest.unpacking import Block
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

KEYS = (
    *("id", "doi", "title", "display_name", "publication_year", "type", "language", "is_retracted", "is_paratext"),
    *("cited_by_count", "referenced_works", "abstract_inverted_index", "primary_topic", "topics", "primary_location"),
)
"""The keys of a record that are read."""
OF_AUTHORS, OF_MAG = "authorships", "ids"
"""Keys that are read as well, for the names of authors and for ids in the Microsoft Academic Graph."""
LINES_AT_ONCE = 1 << 14
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
    """Some lines of a block, and where the values of the keys are in them."""

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
        """The columns of all lines; what they hold of odd ones means nothing."""
        title, name = self._bounds("title"), self._bounds("display_name")
        either = np.where(title[0] < title[1], title, name)
        numbers = np.empty(len(self.odd), dtype=np.int64)
        work_scanner.read_own_ids(self._words, *self._bounds("id"), numbers, self.odd)
        columns = {
            "corpusid": numbers,
            "title": self._texts((either[0], either[1])),
            "year": self._numbers("publication_year", "year"),
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
