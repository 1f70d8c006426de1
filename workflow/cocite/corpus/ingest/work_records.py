"""Works of OpenAlex as columns: how they are put together from bytes, or from the records that kernels leave to Python.

A record in Python has one row, or a reason why it is none; that is the definition of a work.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.config.cuts import day_of
from cocite.core.tables import ID, TEXT
from cocite.core.tables.declarations.corpus import AUTHORS, MAG
from cocite.core.written_ids import DIGITS, LARGEST_ID, is_id
from cocite.corpus.ingest.accounting import BLANK, MalformedError, Tally, parse_object, quoted
from cocite.corpus.ingest.navigating import copy_texts
from cocite.corpus.ingest.records import NOT_BLANK

SCHEMA = pa.schema(
    {
        "corpusid": ID,
        "title": TEXT,
        "year": pa.int16(),
        "date": pa.date32(),
        "venue": TEXT,
        "fields": pa.list_(TEXT),
        "doi": TEXT,
        "citation_count": pa.int32(),
        AUTHORS: pa.list_(TEXT),
        MAG: ID,
        "type": TEXT,
        "language": TEXT,
        "retracted": pa.bool_(),
        "paratext": pa.bool_(),
        "references": pa.list_(ID),
        "abstract": TEXT,
    }
)
"""Columns of a work; a reference is null or negative if it has no id.

A text may still be only white space, and a doi a URL: `not_blank` and `dois_in` clean many rows at a time.
"""
FIRST_BEYOND_ASCII = 0x80


def as_works(columns: dict[str, Any]) -> pa.RecordBatch:
    """The columns as a batch in the order of the schema."""
    return pa.record_batch({name: columns[name] for name in SCHEMA.names if name in columns})


def not_blank(texts: pa.StringArray) -> pa.StringArray:
    """The texts; null for white space only."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    # Few texts begin with what may be white space, and only these are looked at.
    is_filled = np.diff(bounds) > 0
    first = np.frombuffer(data, dtype=np.uint8)[bounds[:-1][is_filled]] if data else np.empty(0, dtype=np.uint8)
    doubtful = texts.is_valid().to_numpy(zero_copy_only=False)
    doubtful[is_filled] &= (first <= ord(" ")) | (first >= FIRST_BEYOND_ASCII)
    places = np.flatnonzero(doubtful)
    is_text = pc.match_substring_regex(texts.take(pa.array(places)), NOT_BLANK).to_numpy(zero_copy_only=False)
    is_blank = np.zeros(len(texts), dtype=np.bool_)
    is_blank[places] = ~is_text
    return pc.if_else(pa.array(is_blank), None, texts) if is_blank.any() else texts


def texts_in_order(texts: pa.ChunkedArray, order: NDArray[np.int64]) -> pa.StringArray:
    """Some of the texts in some order, none of them null, copied once."""
    addresses, lengths = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int32)]
    for chunk in filter(len, texts.chunks):
        _, bounds, data = chunk.buffers()
        starts = np.frombuffer(bounds, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        addresses.append((data.address if data else 0) + starts[:-1].astype(np.uint64))
        lengths.append(np.diff(starts))
    length_of = np.concatenate(lengths)
    text = np.empty(int(length_of[order].sum(dtype=np.int64)), dtype=np.uint8)
    offsets = np.zeros(len(order) + 1, dtype=np.int32)
    copy_texts(np.concatenate(addresses), length_of, order, text, offsets)
    return pa.StringArray.from_buffers(len(order), pa.py_buffer(offsets), pa.py_buffer(text))


def dois_in(urls: pa.StringArray) -> pa.StringArray:
    """The identifiers, without the address that resolves them."""
    return not_blank(pc.if_else(pc.starts_with(urls, DOI), pc.utf8_slice_codeunits(urls, len(DOI)), urls))


def days_in(texts: pa.StringArray) -> pa.Date32Array:
    """The days that texts such as 2020-07-01 name, null for others."""
    distinct = texts.dictionary_encode()
    days = [day_of(text or "") for text in distinct.dictionary.to_pylist()]
    return pa.array(days, pa.date32()).take(distinct.indices)


def numbers_in(column: str, numbers: NDArray[np.int64], is_given: NDArray[np.bool_]) -> pa.Array:
    """Whole numbers as a column has them: null if none is given, or it cannot be held."""
    fits = is_given & (numbers >= SMALLEST[column]) & (numbers < -SMALLEST[column])
    return pa.array(np.where(fits, numbers, 0), mask=~fits).cast(SCHEMA.field(column).type)


def lists_of_names(rows: NDArray[np.int64], names: pa.StringArray, count: int, *, distinct: bool) -> pa.ListArray:
    """The names of each of `count` rows, given the row of each name; blank names are dropped."""
    known = not_blank(names)
    rows = rows[known.is_valid().to_numpy(zero_copy_only=False)]
    known = known.drop_null().dictionary_encode()
    codes, places = known.indices.to_numpy(), np.arange(len(rows))
    if distinct:
        _, first = np.unique(rows * (len(known.dictionary) + 1) + codes, return_index=True)
        places = np.sort(first)
    places = places[np.argsort(rows[places], kind="stable")]
    offsets = np.searchsorted(rows[places], np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), known.dictionary.take(pa.array(codes[places])))


def texts_from(text: NDArray[np.uint8], offsets: NDArray[np.int32], is_given: NDArray[np.bool_]) -> pa.StringArray:
    """Texts from contiguous bytes; null if not given."""
    validity = pa.py_buffer(np.packbits(is_given, bitorder="little"))
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text), validity)


def fields_of(primary: pa.StringArray, rows: NDArray[np.int64], names: pa.StringArray) -> pa.ListArray:
    """The distinct fields of each work: that of its primary topic first, then the others, given the row of each."""
    everywhere = np.concatenate([np.arange(len(primary)), rows])
    return lists_of_names(everywhere, pa.concat_arrays([primary, names]), len(primary), distinct=True)


@dataclass(frozen=True, kw_only=True)
class Read:
    """Some works of a file, in columns of `SCHEMA`."""

    works: pa.RecordBatch
    odd: NDArray[np.bool_]
    """Which of them the reader leaves to Python."""
    record: Callable[[int], bytes | dict[str, Any]]
    """A record as it is, by its place: a line of JSON, or keys and values."""


def all_works(parts: Iterable[Read], tally: Tally) -> Iterator[pa.RecordBatch]:
    """The works of a file; blank and malformed lines are only counted."""
    before = 0
    for part in parts:
        if not part.odd.any():
            yield part.works
        else:
            yield part.works.filter(pa.array(~part.odd))
            rows = [_row(part, place, before, tally) for place in np.flatnonzero(part.odd).tolist()]
            columns = pa.schema([SCHEMA.field(name) for name in part.works.schema.names])
            yield pa.RecordBatch.from_pylist([row for row in rows if row is not None], columns)
        before += len(part.odd)


def _row(part: Read, place: int, before: int, tally: Tally) -> dict[str, Any] | None:
    """The row of a record that is left to Python; None if it has no row."""
    try:
        record = part.record(place)
        if isinstance(record, dict):
            return row_of(record)
        if record.strip():
            return row_of(parse_object(record, Pairs))
        tally.outcomes[BLANK] += 1
    except MalformedError as error:
        tally.note_malformed(before + place + 1, str(error))
    return None


WORK = "https://openalex.org/W"
"""Prefix of the id of a work; its number follows."""
DOI = "https://doi.org/"
_ID = re.compile(f"{re.escape(WORK)}({DIGITS})")
_EXAMPLE = f"{WORK}2741809807"
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
SMALLEST = {"year": -(2**15), "citation_count": -(2**31)}
"""Column → its smallest number; the largest is −1 minus that."""

Row = dict[str, Any]


class Pairs(dict[str, Any]):
    """An object of JSON of which all pairs are known, also those whose key comes again."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def row_of(record: dict[str, Any]) -> Row:
    """The row of a record, whose inverted index is an object or its JSON. Raises `MalformedError` if it is not a work.

    The keys are the columns of `SCHEMA`; `abstract` is None if there is none, and empty without a word.
    """
    if "id" not in record:
        raise MalformedError("has no id")
    location = _object(record, "primary_location")
    topics = [_object({"topics": topic}, "topics") for topic in _list(record, "topics")]
    primary = _object(record, "primary_topic")
    return {
        "corpusid": _number_of_work(record["id"], "id"),
        "title": _not_blank(_text(record, "title" if record.get("title") is not None else "display_name")),
        "year": _number(record.get("publication_year"), "year"),
        "date": day_of(str(record.get("publication_date"))),
        "venue": _not_blank(_text(_object(location, "source"), "display_name")),
        "fields": [*dict.fromkeys(_names([primary, *topics], "field"))],
        "doi": _not_blank((_text(record, "doi") or "").removeprefix(DOI)),
        "citation_count": _number(record.get("cited_by_count"), "citation_count"),
        "authors": [*_names((_object({"": each}, "") for each in _list(record, "authorships")), "author")],
        "mag": mag_of(record.get("ids")),
        "type": _text(record, "type"),
        "language": _text(record, "language"),
        "retracted": record.get("is_retracted") is True,
        "paratext": record.get("is_paratext") is True,
        "references": [
            None if each is None else _number_of_work(each, "referenced_works")
            for each in _list(record, "referenced_works")
        ],
        "abstract": abstract_of(record.get("abstract_inverted_index")),
    }


def mag_of(ids: Any) -> int | None:
    """The number in the Microsoft Academic Graph among the ids of a work; None if there is none."""
    number: Any = ids.get("mag") if isinstance(ids, dict) else None
    return int(number) if is_id(number) else None


def abstract_of(index: Any) -> str | None:
    """The distinct words of an inverted index, an object or its JSON, by (position, word); None without an index."""
    if isinstance(index, str):
        try:
            index = json.loads(index, object_pairs_hook=Pairs)
        except (ValueError, RecursionError):
            raise MalformedError(f"abstract_inverted_index is {quoted(index)}, which is not JSON") from None
    if index is None:
        return None
    if not isinstance(index, dict):
        raise MalformedError(f"abstract_inverted_index is {quoted(index)}, not an object of words and their positions")
    pairs = index.pairs if isinstance(index, Pairs) else index.items()
    text = " ".join(word for _, word in sorted({(at, word) for word, places in pairs for at in _places(word, places)}))
    return _encodable(text, "abstract_inverted_index")


def _places(word: str, places: Any) -> Iterator[int]:
    if places is None:
        return
    if not isinstance(places, list):
        raise MalformedError(f"abstract_inverted_index has {quoted(places)} for {quoted(word)}, no list of positions")
    for place in filter(lambda place: place is not None, places):
        if type(place) is not int or place < 0:
            raise MalformedError(f"abstract_inverted_index has {quoted(place)} for {quoted(word)}, not a position")
        yield place


def _number_of_work(value: Any, key: str) -> int:
    found = _ID.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[1]) > LARGEST_ID:
        verb = "is" if key == "id" else "has"
        raise MalformedError(f"{key} {verb} {quoted(value)}, not the id of a work such as {_EXAMPLE}")
    return int(found[1])


def _object(record: dict[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    if value is not None and not isinstance(value, dict):
        raise MalformedError(f"{key or 'authorships'} has {quoted(value)} in place of an object")
    return value or {}


def _list(record: dict[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    if value is not None and not isinstance(value, list):
        raise MalformedError(f"{key} is {quoted(value)}, not a list")
    return value or []


def _text(record: dict[str, Any], key: str) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise MalformedError(f"{key} is {quoted(value)}, not text")
    return _encodable(value, key) if value else value


def _encodable(text: str, key: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedError(f"{key} contains half of a surrogate pair") from None
    return text


def _names(records: Iterable[dict[str, Any]], key: str) -> Iterator[str]:
    for record in records:
        if name := _not_blank(_text(_object(record, key), "display_name")):
            yield name


def _not_blank(text: str | None) -> str | None:
    return text if text and text.strip(_WHITE_SPACE) else None


def _number(value: Any, column: str) -> int | None:
    """A whole number that its column can store; None for anything else."""
    return value if type(value) is int and SMALLEST[column] <= value < -SMALLEST[column] else None
