"""The reader of user-supplied files: JSON Lines, Parquet, text, and one large JSON object; all but Parquet may be gzip.

Files are read row by row, or in batches of Arrow, however large they are. Whatever is wrong is reported with the file
and the line: a batch is read the fast way, and a second pass (`read_lines`) finds the line of its fault.
"""

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from cocite.core.errors import InputError, explain_unreadable, reason_of

PARQUET = "Parquet file"
HALF_PAIRS = re.compile("[\ud800-\udfff]")
BLOCK = 32 << 20


class Row(NamedTuple):
    """A row or an object of a file, and its location."""

    values: dict[str, Any]
    path: Path
    at: int | str
    """The number of its line, or how it is reached inside the file."""

    @property
    def place(self) -> str:
        """The file, and the line or the key."""
        unit = "" if isinstance(self.at, str) else "row " if self.path.suffix == ".parquet" else "line "
        return f"{self.path}, {unit}{self.at}"

    def require(self, *keys: str) -> Any:
        """The value under the first of these keys that has one. Raises `InputError` if none has."""
        return self._first(keys)[1]

    def identifier(self, *keys: str) -> str:
        """The id under the first of these keys that has one; numbers are taken as text."""
        key, value = self._first(keys)
        return self.as_identifier(value, key)

    def as_identifier(self, value: Any, key: str) -> str:
        """A value as an id. Raises `InputError` if it is none."""
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
        """The text under the first of these keys that has one, without the space around it; None if none is left."""
        found = (self.as_text(value, key) for key in keys if (value := self.values.get(key)) is not None)
        return next(filter(None, found), None)

    def as_text(self, value: Any, key: str) -> str | None:
        """A value as a text without the space around it; None if nothing is left."""
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
        return self._within(self.require(key), key)

    def nested_rows(self, key: str) -> list["Row"]:
        """The objects in the list under a key."""
        values = self.require(key)
        if not isinstance(values, list):
            raise InputError(f"{self.place}: {key} must be a list, not {shown(values)}.")
        return [self._within(value, f"{key}[{number}]") for number, value in enumerate(values)]

    def _within(self, values: Any, key: str) -> "Row":
        return as_row(values, self.path, f"{self.place.removeprefix(f'{self.path}, ')}, {key}")

    def _encodable(self, text: str, key: str) -> str:
        """The text. Raises `InputError` for half of a surrogate pair, which JSON can express but no file can store."""
        if not text.isascii() and HALF_PAIRS.search(text):
            raise InputError(f"{self.place}: {key} contains half of a surrogate pair: {shown(text)}.")
        return text

    def _first(self, keys: Sequence[str]) -> tuple[str, Any]:
        for key in keys:
            if (value := self.values.get(key)) is not None:
                return key, value
        raise InputError(f"{self.place}: the key {' or '.join(map(repr, keys))} is missing or null.")


def as_row(values: Any, path: Path, at: int | str) -> Row:
    """A parsed value as a row. Raises `InputError` if it is not an object."""
    row = Row(values, path, at)
    if not isinstance(values, dict):
        raise InputError(f"{row.place}: must be an object, not {shown(values)}.")
    return row


def as_float(value: Any) -> float:
    """A value as a number: infinite if it is too large, NaN if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown(value: Any) -> str:
    """A value for a message: shortened if it is long, and only its type if it is nested too deeply."""
    try:
        return f"{value!r:.80}"
    except (RecursionError, ValueError):
        return f"a {type(value).__name__} that is too deep or too long to be shown"


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of JSON Lines or Parquet (of these columns). Raises `InputError` if the file is missing or broken."""
    if is_json_lines(path):
        yield from read_lines(path)
    elif path.suffix == ".parquet":
        batches = (batch.to_pylist() for batch in read_batches(path, columns))
        with explain_unreadable(path, PARQUET):
            for number, values in enumerate(chain.from_iterable(batches), start=1):
                yield Row(values, path, number)
    else:
        raise InputError(f"{path}: is neither JSON Lines (.jsonl, .jsonl.gz) nor Parquet (.parquet).")


def is_json_lines(path: Path) -> bool:
    """Whether a file is JSON Lines, by its name."""
    return path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def read_lines(path: Path) -> Iterator[Row]:
    """The rows of a file of JSON Lines. Raises `InputError` if it is missing or broken."""
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


def read_line_batches(path: Path, schema_of: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    """The lines of a file of JSON Lines as Arrow's batches, some megabytes at a time, several times as fast as lines.

    `schema_of` gives the columns that are read, and their types, from the first object of a batch. Ends with None at a
    batch of which anything may be wrong: `read_lines` finds the fault.
    """
    import pyarrow as pa
    import pyarrow.json as pj

    with opened(path) as file:
        while lines := file.readlines(BLOCK):
            block, table = b"".join(lines), None
            with suppress(Exception):
                block.decode()
                form = pj.ParseOptions(schema_of(json.loads(lines[0])), unexpected_field_behavior="ignore")
                table = pj.read_json(pa.BufferReader(block), pj.ReadOptions(block_size=len(block) + 1), form)
            if table is None or len(table) != len(lines) or any(line.isspace() for line in lines):
                yield None
                return
            yield table.combine_chunks().to_batches()[0]


def read_batches(path: Path, columns: Sequence[str] | None = None, *, rows: int = 10_000) -> Iterator[Any]:
    """The rows of a Parquet file in Arrow batches of at most so many rows, with those of these columns that exist.

    A dot in a column's name selects a nested field. Columns are returned in plain types (`plain`). Raises `InputError`
    if a page does not match its checksum, or the pages do not have the row count of the footer.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cocite.core.written_ids import plain

    with explain_unreadable(path, PARQUET), pq.ParquetFile(path, page_checksum_verification=True) as file:
        names, found = file.schema_arrow.names, 0
        known = {*names, *(file.schema.column(place).path for place in range(len(file.schema.names)))}
        asked = names if columns is None else [name for name in columns if name in known]
        for name in asked:
            if names.count(name) > 1:
                raise InputError(f"{path}: has several columns {name}.")
        for batch in file.iter_batches(rows, columns=asked):
            found += len(batch)
            yield pa.record_batch(list(map(plain, batch.columns)), names=batch.schema.names)
        if found != file.metadata.num_rows:
            raise ValueError(f"{found:,} rows are in its pages, and {file.metadata.num_rows:,} in its footer")


def read_fields(path: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    """Number and tab-separated fields of each line of text; the last may contain tabs. Fewer raise `InputError`."""
    for number, line in read_text(path):
        fields = line.split("\t", count - 1)
        if len(fields) != count:
            raise InputError(f"{path}, line {number}: has {len(fields)} fields between tabs, not the {count} expected.")
        yield number, fields


def read_delimited(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Number of the last line, and fields, of each row of text; quoted fields may contain delimiters and line ends."""
    with explain_unreadable(path, "file of text"):
        rows = csv.reader((f"{line}\n" for _, line in read_text(path)), delimiter=delimiter)
        yield from ((rows.line_num, row) for row in rows)


def read_text(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line of a file, without its end. Raises `InputError` if it is not UTF-8 or has a NUL."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(f"{path}, line {number}: not UTF-8 ({error.reason}).") from None
            if "\0" in text:
                raise InputError(f"{path}, line {number}: contains a NUL byte, which is not valid text.")
            yield number, text


def read_members(path: Path) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of a large JSON object, one by one. Raises `InputError` if it is not an object."""
    import ijson

    with _opened_json(path) as file:
        if next(ijson.basic_parse(file))[0] != "start_map":
            raise InputError(f"{path}: not a JSON object.")
    with _opened_json(path) as file:
        yield from ijson.kvitems(file, "", use_float=True)


def read_objects(path: Path) -> Iterator[tuple[str, Row]]:
    """Key and value of each member of the JSON object in a file, whose values must be objects."""
    return ((key, as_row(values, path, key)) for key, values in read_members(path))


def read_items(path: Path, key: str) -> Iterator[Row]:
    """The objects of the list under a key of a large JSON object, one by one. Raises `InputError` for other items."""
    import ijson

    with _opened_json(path) as file:
        for number, values in enumerate(ijson.items(file, f"{key}.item", use_float=True)):
            yield as_row(values, path, f"{key}[{number}]")


@contextmanager
def _opened_json(path: Path) -> Iterator["_Shallow"]:
    """A file for ijson. Raises `InputError` if the file is missing or is not JSON."""
    import ijson

    with opened(path) as file:
        try:
            yield _Shallow(file, path)
        except ijson.JSONError as error:
            said = error.args[0] if isinstance(error.args[0], str) else error.args[0].decode(errors="replace")
            raise InputError(f"{path}: not JSON ({said.splitlines()[0]}).") from None


class _Shallow:
    """A file for ijson, which keeps the path to each level: of deep nesting, a file of 1 MB would fill all memory."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.depth, self.in_string, self.rest = 0, False, b""

    def read(self, size: int) -> bytes:
        """The next bytes. Raises `InputError` if they are nested too deeply."""
        import numpy as np

        text = self.file.read(size)
        written = re.sub(rb'\\[\\"]', b"", self.rest + text)
        self.rest = b"\\" if written.endswith(b"\\") else b""
        # Two quotation marks without a bracket between them change nothing.
        others = bytes(byte for byte in range(256) if byte not in b'"[]{}')
        parts = written.translate(None, others).replace(b'""', b"").split(b'"')
        outside = np.frombuffer(b"".join(parts[self.in_string :: 2]), np.uint8)
        depths = self.depth + np.cumsum(np.where(outside & 2, 1, -1))  # the bit that [ and { have
        if len(depths):
            self.depth = int(depths[-1])
            if depths.max() > 1_000:
                raise InputError(f"{self.path}: not JSON that can be read (nested too deeply).")
        self.in_string ^= len(parts) % 2 == 0
        return text


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file, unpacked if its name ends in .gz, for reading. Raises `InputError` if it cannot be read."""
    from isal import igzip, igzip_lib

    with explain_unreadable(path, "file"):
        if path.suffix == ".gz" and path.stat().st_size == 0:
            raise InputError(f"{path}: not a whole gzip file (it is empty).")
        try:
            with igzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
                yield file
        except (igzip.BadGzipFile, igzip_lib.IsalError, EOFError) as error:  # type: ignore[misc]
            raise InputError(f"{path}: not a whole gzip file ({error}).") from None
