"""The columns that works are read into, and how they are put together from bytes, or from what Python reads."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.tables import ID, TEXT
from cocite.core.tables.declarations.corpus import AUTHORS, MAG
from cocite.corpus.ingest.accounting import BLANK, MalformedError, Tally
from cocite.corpus.ingest.navigating import copy_texts
from cocite.corpus.ingest.release_records import NOT_BLANK
from cocite.corpus.works.work_records import DOI, SMALLEST, parse_work, row_of

SCHEMA = pa.schema(
    {
        "corpusid": ID,
        "title": TEXT,
        "year": pa.int16(),
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
"""What is known of a work; a reference is null or negative where it has no id.

A text may still be of white space alone, and a doi a URL: `not_blank` and `dois_in` are for many rows at a time.
"""
FIRST_BEYOND_ASCII = 0x80


def as_works(columns: dict[str, Any]) -> pa.RecordBatch:
    """The columns as a batch in the order of the schema."""
    return pa.record_batch({name: columns[name] for name in SCHEMA.names if name in columns})


def not_blank(texts: pa.StringArray) -> pa.StringArray:
    """The texts, null where they are of white space alone."""
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


def numbers_in(column: str, numbers: NDArray[np.int64], is_given: NDArray[np.bool_]) -> pa.Array:
    """Whole numbers as a column has them: null where none is given, or it cannot be held."""
    fits = is_given & (numbers >= SMALLEST[column]) & (numbers < -SMALLEST[column])
    return pa.array(np.where(fits, numbers, 0), mask=~fits).cast(SCHEMA.field(column).type)


def lists_of_names(rows: NDArray[np.int64], names: pa.StringArray, count: int, *, distinct: bool) -> pa.ListArray:
    """The names of each of `count` rows, given the row of each name, but for blank ones."""
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
    """Texts that lie one after the other, null where none is given."""
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
    """The works of a file, but for blank and malformed lines, which are counted."""
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
    """The row of a record that is left to Python; None where it gives none."""
    try:
        record = part.record(place)
        if isinstance(record, dict):
            return row_of(record)
        if record.strip():
            return parse_work(record)
        tally.outcomes[BLANK] += 1
    except MalformedError as error:
        tally.note_malformed(before + place + 1, str(error))
    return None
