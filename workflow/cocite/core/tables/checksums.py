"""The checksums of Parquet pages, verified without decoding a page, for readers that ignore them: DuckDB and Polars.

A page is a header in Thrift's compact encoding and its bytes as they are on the disk. The header may have their CRC-32.
Headers and the footer have no checksum. Pyarrow verifies pages itself as it reads them (`page_checksum_verification`).
"""

import mmap
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from isal import isal_zlib

from cocite.core.errors import InputError, explain_unreadable

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
"""Thrift's types; the others in a header are whole numbers of variable length."""
LENGTHS = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8}
"""Bytes of the types of a fixed length; in a list, truth values take one."""
TYPE, COMPRESSED_SIZE, CHECKSUM = 1, 3, 4
DICTIONARY = 2
KINDS = {0: (5, 2), DICTIONARY: (7, 2), 3: (8, 4)}
"""For each type of page, the fields of its own header and, within that, of the encoding; field 1 is the value count."""
ENCODINGS = (
    *("PLAIN", None, "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"),
    *("DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"),
)
"""By their numbers. The footer names those of a column chunk, though DuckDB leaves out that of a dictionary."""


def verify_pages(path: Path, columns: Collection[str] | None = None, bucket: int | None = None) -> None:
    """Compare the pages of a Parquet file with their checksums: those of `columns`, or all.

    With `bucket`, row groups without rows of that bucket are skipped. Raises `InputError` if a page does not match or
    cannot be located. Pages without a checksum are accepted.
    """
    with explain_unreadable(path, "Parquet file"), path.open("rb") as file:
        footer = pq.read_metadata(file)
        if footer.num_rows == 0:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for group in map(footer.row_group, range(footer.num_row_groups)):
                chunks = [group.column(number) for number in range(group.num_columns)]
                bounds = [chunk.statistics for chunk in chunks if chunk.path_in_schema == "bucket"]
                known = [each for each in bounds if each is not None and each.has_min_max]
                if bucket is not None and not all(each.min <= bucket <= each.max for each in known):
                    continue
                for chunk in chunks if group.num_rows else ():
                    name = f"{chunk.path_in_schema}."
                    if columns is None or any(name.startswith(f"{column}.") for column in columns):
                        _verify(path, content, chunk)


def _verify(path: Path, content: mmap.mmap, chunk: pq.ColumnChunkMetaData) -> None:
    with memoryview(content) as view:
        for start, stop, checksum in _pages(content, chunk):
            with view[start:stop] as written:
                if checksum is not None and isal_zlib.crc32(written) != checksum & 0xFFFFFFFF:
                    said = f"bytes {start:,} to {stop:,} (column {chunk.path_in_schema})"
                    raise InputError(f"{path}: {said} do not match their checksum: a disk or a copy damaged the file.")


def _pages(content: mmap.mmap, chunk: pq.ColumnChunkMetaData) -> Iterator[tuple[int, int, int | None]]:
    """Start, stop and checksum, if any, of each page. Raises `ValueError` if they do not fill the chunk exactly."""
    position = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    end, values = position + chunk.total_compressed_size, 0
    while position < end:
        fields, start = _read_struct(content, position)
        position = start + fields[COMPRESSED_SIZE]
        kind, encoding = KINDS.get(fields.get(TYPE, -1), (0, 0))
        own = fields.get(kind)
        if position > min(end, len(content)) or position < start or not isinstance(own, dict):
            break
        known = {"PLAIN", "PLAIN_DICTIONARY"} if fields[TYPE] == DICTIONARY else set(chunk.encodings)
        if own.get(encoding) not in range(len(ENCODINGS)) or ENCODINGS[own[encoding]] not in known:
            break
        values += 0 if fields[TYPE] == DICTIONARY else own.get(1, 0)
        yield start, position, fields.get(CHECKSUM)
    if position != end or values != chunk.num_values:
        raise ValueError(f"the header of a page of column {chunk.path_in_schema} is broken")


def _read_struct(content: mmap.mmap, position: int) -> tuple[dict[int, Any], int]:
    """The whole numbers and structs of a struct by field number, and the offset of its end."""
    fields, number = dict[int, Any](), 0
    while head := content[position]:
        position += 1
        if head >> 4:
            number += head >> 4
        else:
            number, position = _read_number(content, position)
        fields[number], position = _read_value(content, position, head & 15)
    return fields, position + 1


def _read_value(content: mmap.mmap, position: int, kind: int) -> tuple[Any, int]:
    """A value if it is a whole number or a struct, otherwise 0; and the offset of its end."""
    if kind in LENGTHS:
        return 0, position + LENGTHS[kind]
    if kind == BINARY:
        length, position = _read_varint(content, position)
        return 0, position + length
    if kind in (LIST, SET):
        size, inner = content[position] >> 4, content[position] & 15
        size, position = _read_varint(content, position + 1) if size == 15 else (size, position + 1)
        for _ in range(size):
            _, position = (0, position + 1) if inner in (TRUE, FALSE) else _read_value(content, position, inner)
        return 0, position
    if kind == STRUCT:
        return _read_struct(content, position)
    return _read_number(content, position)


def _read_number(content: mmap.mmap, position: int) -> tuple[int, int]:
    number, position = _read_varint(content, position)
    return (number >> 1) ^ -(number & 1), position  # Thrift counts 0, −1, 1, −2, …


def _read_varint(content: mmap.mmap, position: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = content[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position
