"""The files of a user's table as a view of DuckDB: text through Arrow, JSON Lines in blocks, Parquet by DuckDB itself.

Text and lines come in batches, so that memory is bounded and each row has its number, which errors name. Rows with too
few or too many cells are handed over with what is wrong with them.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from itertools import chain, islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numba import njit

from cocite.config.explained import shown
from cocite.config.release_folder import unpacked
from cocite.config.table_files import CsvFormat, JsonLinesFormat, ParquetFormat, TableFiles, TsvFormat, named_columns
from cocite.core.errors import FULL_DISK, InputError, is_environment_error, reason_of
from cocite.core.tables.checksums import verify_pages
from cocite.core.tables.places import as_name, as_text
from cocite.corpus.ingest.records import lines_of
from cocite.corpus.ingest.unpacking import LONGEST_LINE, explained, open_lines, unpack

BYTES_AT_ONCE = 1 << 24
"""Bytes of text parsed at once; no row is longer."""
PLACE, FAULT = "cocite place", "cocite fault"
"""Columns added to those of a file: the number of a row, from 1, and what is wrong with it as a whole."""

NOT_UTF8 = "is not UTF-8"

_START, _PLAIN, _QUOTED, _CLOSED, _FAULTY = range(5)
"""States of the parser: at the start of a cell, in it, in quotes, after them, or after an error."""
_QUOTE, _NEWLINE, _RETURN = map(ord, '"\n\r')

TextFile = CsvFormat | TsvFormat

# Hive and Impala write texts as bytes, and do not say that they are texts.
_VIEW_OF_PARQUET = f"""
    CREATE OR REPLACE TEMP VIEW given AS
    SELECT *, file_row_number + 1 AS "{PLACE}", NULL::VARCHAR AS "{FAULT}"
    FROM read_parquet({{file}}, hive_partitioning = false, file_row_number = true, binary_as_string = true)
"""
RECORDS = 1000
"""Records at the beginning of a file of JSON Lines that determine its keys."""
MOST_NAMES = 30
"""Columns that an error lists."""


def read_rows(
    connection: duckdb.DuckDBPyConnection,
    table: TableFiles,
    path: Path,
    columns: Sequence[str],
    statement: str,
    *,
    batches: int | None = None,
) -> None:
    """Execute a statement over the view `given` of a file, which shows these columns, some rows at a time. It also
    shows the numbers of the rows and their faults. For JSON Lines the columns are keys and their cells JSON; the fault
    of a line that is not an object is the line itself. With `batches`, only the first batches of text or lines are
    read; a Parquet file is one batch. Raises `InputError` if the file is broken."""
    form, columns = table.format_of(str(path)), list(dict.fromkeys(columns))
    known = columns_in(table, path) if isinstance(form, JsonLinesFormat) else ()
    keys = list(dict.fromkeys(first_key(name, known) for name in columns))
    if isinstance(form, ParquetFormat):
        with explained_parquet(path):
            connection.execute(_VIEW_OF_PARQUET.format(file=as_text(escape(str(path)))))
            verify_pages(path, {*columns, *keys})
            connection.execute(statement)
    elif isinstance(form, TextFile):
        for batch in islice(_rows_of_text(form, path, columns), batches):
            connection.register("rows_of_text", pa.table(batch))
            connection.execute("CREATE OR REPLACE TEMP VIEW given AS FROM rows_of_text")
            connection.execute(statement)
    else:
        number = 1
        for block in islice(unpack(path), batches):
            lines = lines_of(block)
            connection.register("lines", pa.table({"line": lines, PLACE: np.arange(number, number + len(lines))}))
            connection.execute(_view_of_lines(keys))
            connection.execute(statement)
            number += len(lines)


@contextmanager
def open_text(
    form: TextFile, path: Path, columns: Sequence[str] = ()
) -> Iterator[tuple[pc.CSVStreamingReader, list[pc.InvalidRow]]]:
    """The rows of a file of text, of these columns or of all, and a list that gathers those of another length."""
    ragged: list[pc.InvalidRow] = []

    def leave_out(row: pc.InvalidRow) -> str:
        ragged.append(row._replace(text=None))  # the text of every line may be the whole file
        return "skip"

    try:
        with explained(path), unpacked(path) as file:
            quoted = io.BufferedReader(_Quoted(file, path, form.delimiter)) if form.quotes else file
            read = pc.ReadOptions(use_threads=False, block_size=BYTES_AT_ONCE, column_names=list(form.header) or None)
            quoting: Any = {"quote_char": '"' if form.quotes else False, "newlines_in_values": form.quotes}
            parse = pc.ParseOptions(delimiter=form.delimiter, invalid_row_handler=leave_out, **quoting)
            convert = pc.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(columns, pa.string()))
            yield pc.open_csv(quoted, read, parse, convert), ragged
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("CSV parse error: ").rstrip(".")
        remedy = "save it as UTF-8" if "utf" in reason.lower() else "see corpus.*.format"
        raise InputError(f"{path}: cannot be read as {form.kind} ({reason}); {remedy}.") from None


class _Quoted(io.RawIOBase):
    """A file of text in which each quote that opens a cell is closed at its end: Arrow would read on, over rows."""

    def __init__(self, file: io.BufferedIOBase, path: Path, delimiter: str) -> None:
        self._file, self._path, self._delimiter = file, path, delimiter.encode()[0]
        self._state = np.array([_START, 1, 1])
        """The state at the next byte, its line, and the line of the last quote that opened a cell."""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        length = self._file.readinto(room)
        _follow(np.frombuffer(room, dtype=np.uint8)[:length], self._delimiter, self._state)
        where, _, line = self._state
        if where == _FAULTY or (where == _QUOTED and not length):
            said = "a cell begins with a double quote that none closes at its end; write a quote in it twice"
            raise InputError(f"{self._path}, line {line}: {said}, or set quotes: false in corpus.*.format.")
        return length


@njit(nogil=True, cache=True)
def _follow(text, delimiter, state):  # type: ignore[no-untyped-def]
    """Move the state over a piece of text."""
    where, line, opened = state
    for byte in text:
        line += byte == _NEWLINE
        if where == _QUOTED:
            where = _CLOSED if byte == _QUOTE else _QUOTED
        elif byte in (delimiter, _NEWLINE, _RETURN):
            where = _START
        elif byte == _QUOTE and where == _CLOSED:
            where = _QUOTED
        elif byte == _QUOTE and where == _START:
            where, opened = _QUOTED, line
        elif where == _CLOSED:
            where = _FAULTY
            break
        else:
            where = _PLAIN
    state[:] = where, line, opened


def _rows_of_text(form: TextFile, path: Path, columns: list[str]) -> Iterator[dict[str, pa.Array]]:
    with open_text(form, path, columns) as (reader, ragged):
        upcoming, told = 1 if form.header else 2, 0
        for batch in chain(reader, [None]):
            if batch is not None:
                numbers = np.arange(upcoming, upcoming + len(batch) + len(ragged))
                if ragged:
                    numbers = np.setdiff1d(numbers, [row.number for row in ragged])[: len(batch)]
                upcoming = int(numbers[-1]) + 1 if len(numbers) else upcoming
                cells = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield {**cells, PLACE: pa.array(numbers), FAULT: pa.nulls(len(batch), pa.string())}
            if faulty := ragged[told:]:
                faults = [f"has {row.actual_columns} cells, not {row.expected_columns}" for row in faulty]
                nothing = dict.fromkeys(columns, pa.nulls(len(faulty), pa.string()))
                yield {**nothing, PLACE: pa.array([row.number for row in faulty]), FAULT: pa.array(faults)}
                told = len(ragged)


def _view_of_lines(keys: Sequence[str]) -> str:
    """What makes the view of lines, each of which is parsed once."""
    paths = ", ".join(as_text(f'$."{key}"') for key in keys)
    cells = "".join(f", cells[{place}] AS {as_name(key)}" for place, key in enumerate(keys, start=1))
    return f"""
        CREATE OR REPLACE TEMP VIEW given AS
        SELECT "{PLACE}", CASE WHEN NOT is_object THEN coalesce(line, '{NOT_UTF8}') END AS "{FAULT}"{cells}
        FROM (SELECT *, CASE WHEN is_object THEN json_extract(line, [{paths}]) END AS cells
            FROM (SELECT *, CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' ELSE false END AS is_object
                FROM lines))
    """


@contextmanager
def explained_parquet(path: Path) -> Iterator[None]:
    """Turn the error of a file that is no Parquet, or only a part of one, into an `InputError`."""
    try:
        yield
    except Exception as error:
        is_of_file = not isinstance(error, InputError | MemoryError | duckdb.OutOfMemoryException)
        if not is_of_file or is_environment_error(error) or FULL_DISK in str(error):
            raise
        raise InputError(f"{path} is cut short or not a Parquet file ({reason_of(error)}); fetch it again.") from None


def check_columns(table: TableFiles, paths: Sequence[Path], *, key: str) -> None:
    """Raise `InputError` if a file lacks a column that the table, an entry under `key`, names. A key of JSON Lines may
    be missing in some files, but not in the first records of all."""
    if not paths:
        raise InputError(f"Configuration key {key}.files: there is no file {table.files}.")
    found = {path: columns_in(table, path) for path in paths}
    if all(isinstance(table.format_of(str(path)), JsonLinesFormat) for path in paths):
        found = {paths[0]: list(dict.fromkeys(chain.from_iterable(found.values())))}
    for path, names in found.items():
        form = table.format_of(str(path))
        # DuckDB takes names that are alike but for case for one: all of Parquet's, and those that are read of others.
        read = names if isinstance(form, ParquetFormat) else [name for _, name in named_columns(table)]
        twice = next((name for name in read if names.count(name) > 1), None)
        if twice is not None:
            rename = f"rename one, or name all in {key}.format.header"
            raise InputError(f"{path} has two columns {shown(twice) or repr(twice)}; {rename}.")
        for column, name in named_columns(table):
            alike = next((other for other in read if other != name and other.lower() == name.lower()), None)
            if alike is not None:
                raise InputError(f"{path} has {shown(name)} and {shown(alike)}, alike but for case; rename one.")
            if isinstance(form, JsonLinesFormat) and '"' in name:
                raise InputError(f"{path}: the key {shown(name)} has a quotation mark and cannot be read; rename it.")
            if (name if isinstance(form, TextFile) else first_key(name, names)) not in names:
                listed = ", ".join(map(shown, names[:MOST_NAMES]))
                has = listed or "none: no line of it, or item of a list, is an object with keys"
                more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
                said = f"no column {shown(name)}, which {key}.columns.{column} names"
                raise InputError(f"{path} has {said}; it has {has}{more}.")


def columns_in(table: TableFiles, path: Path) -> list[str]:
    """The columns of a file, or the keys of the first records. Raises `InputError` if it is broken."""
    form = table.format_of(str(path))
    if isinstance(form, TextFile):
        with open_text(form, path) as (reader, _):
            return list(reader.schema.names)
    if isinstance(form, ParquetFormat):
        with explained_parquet(path):
            return list(pq.read_schema(path).names)
    keys: dict[str, None] = {}
    with explained(path), open_lines(path) as file:
        for line in islice(iter(lambda: file.readline(LONGEST_LINE), b""), RECORDS):
            with suppress(ValueError, RecursionError):  # other lines are counted when they are read
                record = json.loads(line.decode("utf-8-sig"))
                keys |= dict.fromkeys(record) if isinstance(record, dict) else {}
    return list(keys)


def first_key(name: str, columns: Iterable[str]) -> str:
    """The column of a name: itself, if there is one of that name, or the part before the first dot."""
    return name if name in columns else name.partition(".")[0]
