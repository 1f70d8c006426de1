"""Rows of files that people bring: JSON Lines, Parquet, tables as text and one large JSON object, some in gzip.

Rows are read one after the other, however large the file is, and checked as they are read: whatever is wrong is
reported with the file and the line.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from cocite.core.errors import InputError, explain_unreadable, reason_of

PARQUET = "Parquet file"
HALF_PAIRS = re.compile("[\ud800-\udfff]")
DEEPEST = 1_000
"""Levels of JSON that may be within each other."""
ESCAPED, NO_BRACKETS = re.compile(rb'\\[\\"]'), bytes(byte for byte in range(256) if byte not in b'"[]{}')
PARQUET_ROWS = 10_000
"""Rows of a Parquet file that are in memory together."""


class Row(NamedTuple):
    """A row or an object of a file, and where it stands."""

    values: dict[str, Any]
    path: Path
    at: int | str
    """The number of its line, or how it is reached inside the file."""

    @property
    def place(self) -> str:
        """The file, and the line or the key."""
        if isinstance(self.at, str):
            return f"{self.path}, {self.at}"
        return f"{self.path}, {'row' if self.path.suffix == '.parquet' else 'line'} {self.at}"

    def require(self, *keys: str) -> Any:
        """The value under the first of these keys that has one. Raises `InputError` where none has."""
        return self._first(keys)[1]

    def identifier(self, *keys: str) -> str:
        """The id under the first of these keys that has one; numbers are taken as text."""
        key, value = self._first(keys)
        return self.as_identifier(value, key)

    def as_identifier(self, value: Any, key: str) -> str:
        """A value as an id. Raises `InputError` where it is none."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f"{self.place}: {key} must be a string or an integer, not {shown(value)}.")
        return self._encodable(str(value), key)

    def identifiers(self, key: str) -> list[str]:
        """A list of ids; numbers are taken as text."""
        values = self.require(key)
        if not isinstance(values, list) or not all(type(value) in (str, int) for value in values):
            raise InputError(f"{self.place}: {key} must be a list of ids, not {shown(values)}.")
        return [self._encodable(str(value), key) for value in values]

    def text(self, *keys: str) -> str | None:
        """The text under the first of these keys that has one, without the space around it; None where none is left."""
        for key in keys:
            if (value := self.values.get(key)) is not None:
                return self.as_text(value, key)
        return None

    def as_text(self, value: Any, key: str) -> str | None:
        """A value as a text without the space around it, None where nothing is left."""
        if not isinstance(value, str):
            raise InputError(f"{self.place}: {key} must be a text, not {shown(value)}.")
        return self._encodable(value, key).strip() or None

    def as_number(self, value: Any, key: str) -> float:
        """A value as a finite number."""
        number = as_float(value)
        if not math.isfinite(number):
            raise InputError(f"{self.place}: {key} must be a number, not {shown(value)}.")
        return number

    def nested(self, key: str) -> "Row":
        """The object under a key."""
        return as_row(self.require(key), self.path, self._inside(key))

    def nested_rows(self, key: str) -> list["Row"]:
        """The objects in the list under a key."""
        values = self.require(key)
        if not isinstance(values, list):
            raise InputError(f"{self.place}: {key} must be a list, not {shown(values)}.")
        return [as_row(value, self.path, self._inside(f"{key}[{number}]")) for number, value in enumerate(values)]

    def _encodable(self, text: str, key: str) -> str:
        """The text. Raises `InputError` where it holds half of a surrogate pair, which JSON can write and no file."""
        if not text.isascii() and HALF_PAIRS.search(text):
            raise InputError(f"{self.place}: {key} holds half of a surrogate pair: {shown(text)}.")
        return text

    def _first(self, keys: Sequence[str]) -> tuple[str, Any]:
        for key in keys:
            if (value := self.values.get(key)) is not None:
                return key, value
        raise InputError(f"{self.place}: the key {' or '.join(map(repr, keys))} is missing or null.")

    def _inside(self, key: str) -> str:
        return f"{self.place.removeprefix(f'{self.path}, ')}, {key}"


def as_row(values: Any, path: Path, at: int | str) -> Row:
    """What was read as a row. Raises `InputError` where it is no object."""
    row = Row(values, path, at)
    if not isinstance(values, dict):
        raise InputError(f"{row.place}: must be an object, not {shown(values)}.")
    return row


def as_float(value: Any) -> float:
    """A value as a number; infinite where it is too large, and not a number where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown(value: Any) -> str:
    """A value as a message shows it: cut where it is long, and by its type where it is too deep to be written."""
    try:
        return f"{value!r:.80}"
    except (RecursionError, ValueError):
        return f"a {type(value).__name__} that is too deep or too long to be shown"


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of a file of JSON Lines or Parquet; of Parquet, those of these columns that are there.

    Raises `InputError` where the file is missing, broken or neither.
    """
    if path.suffix == ".parquet":
        yield from read_parquet(path, columns)
    elif is_json_lines(path):
        yield from read_lines(path)
    else:
        raise InputError(f"{path}: is neither JSON Lines (.jsonl, .jsonl.gz) nor Parquet (.parquet).")


def is_json_lines(path: Path) -> bool:
    """Whether the name of a file says so."""
    return path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def read_lines(path: Path) -> Iterator[Row]:
    """The rows of a file of JSON Lines. Raises `InputError` where it is missing or broken."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                values = json.loads(line)
            except UnicodeDecodeError as error:
                raise InputError(f"{path}, line {number}: not UTF-8 ({error.reason}).") from None
            except json.JSONDecodeError as error:
                raise InputError(f"{path}, line {number}: not JSON ({error.msg}).") from None
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: not JSON that can be read ({reason_of(error)}).") from None
            yield as_row(values, path, number)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of a Parquet file, with those of these columns that are there."""
    number = 0
    with explain_unreadable(path, PARQUET):
        for batch in read_batches(path, columns):
            for values in batch.to_pylist():
                number += 1
                yield Row(values, path, number)


def read_batches(path: Path, columns: Sequence[str] | None = None, *, rows: int = PARQUET_ROWS) -> Iterator[Any]:
    """The rows of a Parquet file as Arrow's batches, so many at a time; of these columns, those that are there.

    Columns come in plain types (`plain_columns`), and pages are verified where they have checksums.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cocite.core.plain_columns import plain

    with explain_unreadable(path, PARQUET), pq.ParquetFile(path, page_checksum_verification=True) as file:
        there = file.schema_arrow.names
        asked = there if columns is None else [name for name in columns if name in there]
        for name in asked:
            if there.count(name) > 1:
                raise InputError(f"{path}: has several columns {name}.")
        for batch in whole_batches(file, asked, rows):
            yield pa.record_batch(list(map(plain, batch.columns)), names=batch.schema.names)


def whole_batches(file: Any, columns: Sequence[str], rows: int = PARQUET_ROWS) -> Iterator[Any]:
    """The rows of an open Parquet file. Raises `ValueError` where its pages hold others than its footer counts."""
    found = 0
    for batch in file.iter_batches(rows, columns=columns):
        found += len(batch)
        yield batch
    if found != file.metadata.num_rows:
        raise ValueError(f"{found:,} rows are in its pages, and {file.metadata.num_rows:,} in its footer")


def read_fields(path: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    """The number and the fields of each line of a file of text whose fields stand between tabs.

    The last field may hold tabs. Raises `InputError` for a line with fewer fields.
    """
    for number, line in read_text(path):
        fields = line.split("\t", count - 1)
        if len(fields) != count:
            raise InputError(
                f"{path}, line {number}: has {len(fields)} fields between tabs, where {count} are expected."
            )
        yield number, fields


def read_text(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line of a file of text, without its end and without a byte order mark.

    Raises `InputError` where a line is not UTF-8, or holds a byte that no text has.
    """
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(f"{path}, line {number}: not UTF-8 ({error.reason}).") from None
            if "\0" in text:
                raise InputError(f"{path}, line {number}: holds a NUL byte, as no text in UTF-8 does.")
            yield number, text


def read_members(path: Path) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the JSON object in a file, without holding the others.

    Raises `InputError` where the file is missing or holds no JSON object.
    """
    import ijson

    with opened(path) as file:
        try:
            if next(ijson.basic_parse(_Shallow(file, path)))[0] != "start_map":
                raise InputError(f"{path}: not a JSON object.")
            file.seek(0)
            yield from ijson.kvitems(_Shallow(file, path), "", use_float=True)
        except ijson.JSONError as error:
            raise _not_json(path, error) from None


def read_objects(path: Path) -> Iterator[tuple[str, Row]]:
    """Key and value of each member of the JSON object in a file, whose values must be objects."""
    for key, values in read_members(path):
        yield key, as_row(values, path, key)


def read_items(path: Path, key: str) -> Iterator[Row]:
    """The objects of the list under a key of the JSON object in a file, without holding the others; none without it.

    Raises `InputError` where the file is missing or is not JSON, and where one of them is no object.
    """
    import ijson

    with opened(path) as file:
        try:
            for number, values in enumerate(ijson.items(_Shallow(file, path), f"{key}.item", use_float=True)):
                yield as_row(values, path, f"{key}[{number}]")
        except ijson.JSONError as error:
            raise _not_json(path, error) from None


class _Shallow:
    """A file for ijson, which keeps the path to each level: of deep nesting, a file of 1 MB would fill all memory."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.depth, self.in_string, self.rest = 0, False, b""

    def read(self, size: int) -> bytes:
        """The next bytes. Raises `InputError` where a level in them is too deep."""
        import numpy as np

        text = self.file.read(size)
        written = ESCAPED.sub(b"", self.rest + text)
        self.rest = b"\\" if written.endswith(b"\\") else b""
        # Two quotation marks without a bracket between them change nothing.
        parts = written.translate(None, NO_BRACKETS).replace(b'""', b"").split(b'"')
        outside = np.frombuffer(b"".join(parts[self.in_string :: 2]), np.uint8)
        depths = self.depth + np.cumsum(np.where(outside & 2, 1, -1))  # the bit that [ and { have
        if len(depths):
            self.depth = int(depths[-1])
            if depths.max() > DEEPEST:
                raise InputError(f"{self.path}: not JSON that can be read (nested too deeply).")
        self.in_string ^= len(parts) % 2 == 0
        return text


def _not_json(path: Path, error: Exception) -> InputError:
    """What the reader of JSON has said about a file."""
    said = error.args[0] if isinstance(error.args[0], str) else error.args[0].decode(errors="replace")
    return InputError(f"{path}: not JSON ({said.splitlines()[0]}).")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file, unpacked where its name ends in .gz, for a block that only reads it.

    Raises `InputError` where it is missing, packed otherwise, or cannot be read for any other reason.
    """
    from isal import igzip, igzip_lib

    with explain_unreadable(path, "file"):
        if path.suffix == ".gz" and path.stat().st_size == 0:
            raise InputError(f"{path}: not a whole gzip file (it is empty).")
        try:
            with igzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
                yield file
        except (igzip.BadGzipFile, igzip_lib.IsalError, EOFError) as error:  # type: ignore[misc]
            raise InputError(f"{path}: not a whole gzip file ({error}).") from None
