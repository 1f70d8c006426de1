"""Reading the files of benchmarks: JSON Lines, Parquet, large JSON objects, and tables as text.

Rows are checked as they are read. Whatever is wrong is reported with the file and the line, because such folders are
put together by hand.
"""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from cocite.config.tasks import Task
from cocite.ground.errors import InputError

ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class Row:
    """One row of a file, and the place where it stands."""

    values: dict[str, Any]
    place: str

    def require(self, key: str) -> Any:
        """The value of a key. Raises `InputError` where it is missing or null."""
        value = self.values.get(key)
        if value is None:
            raise InputError(f"{self.place}: the key {key!r} is missing or null.")
        return value

    def identifier(self, key: str) -> str:
        """An id; numbers are taken as text."""
        value = self.require(key)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f"{self.place}: {key} must be a string or an integer, not {value!r}.")
        return str(value)

    def text(self, key: str) -> str | None:
        """A text without the space around it; None where it is missing, null or empty."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise InputError(f"{self.place}: {key} must be a string, not {value!r:.80}.")
        return (value or "").strip() or None

    def identifiers(self, key: str) -> list[str]:
        """A list of ids; numbers are taken as text."""
        values = self.require(key)
        if not isinstance(values, list) or not all(isinstance(value, str | int) for value in values):
            raise InputError(f"{self.place}: {key} must be a list of ids, not {values!r:.80}.")
        return [str(value) for value in values]

    def nested(self, key: str) -> "Row":
        """The object under a key, as a row of its own."""
        return as_row(self.require(key), f"{self.place}, {key}")

    def nested_rows(self, key: str) -> list["Row"]:
        """The objects in a list under a key, as rows of their own."""
        values = self.require(key)
        if not isinstance(values, list):
            raise InputError(f"{self.place}: {key} must be a list, not {values!r:.80}.")
        return [as_row(value, f"{self.place}, {key}[{number}]") for number, value in enumerate(values)]


def as_row(values: Any, place: str) -> Row:
    """A row that was read. Raises `InputError` where it is no object."""
    if not isinstance(values, dict):
        raise InputError(f"{place}: must be an object, not {values!r:.80}.")
    return Row(values, place)


def present_tasks(
    folder: Path, declared: Sequence[Task], names: Sequence[str], place_of: Callable[[Task], str]
) -> tuple[list[Task], dict[str, int]]:
    """Of the tasks of these names, or all where none are named, those whose place in the folder is there.

    A count says which are absent. Raises `InputError` where none is there, or where a named one is absent.
    """
    held = [task for task in declared if (folder / place_of(task)).is_dir()]
    asked = [task for task in declared if not names or task.name in names]
    present, absent = ([task for task in asked if (task in held) is there] for there in (True, False))
    if names and absent and held:
        raise InputError(
            f"{folder}: has no folder {place_of(absent[0])}, but the task {absent[0].name} is asked for; it holds "
            f"{', '.join(task.name for task in held)}."
        )
    if not present:
        tasks = ", ".join(task.name for task in asked)
        raise InputError(
            f"{folder}: holds none of the tasks {tasks}; there must be folders such as {place_of(asked[0])}."
        )
    return present, {f"task {task.name} absent": int(task in absent) for task in asked}


def read_lines(path: Path) -> Iterator[Row]:
    """The rows of a file of JSON lines. Raises `InputError` where it is missing."""
    if not path.is_file():
        raise InputError(f"{path} does not exist.")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            place = f"{path}, line {number}"
            try:
                yield as_row(json.loads(line.decode("utf-8")), place)
            except UnicodeDecodeError as error:
                raise InputError(f"{place}: not UTF-8 ({error.reason}).") from None
            except json.JSONDecodeError as error:
                raise InputError(f"{place}: not JSON ({error.msg}).") from None


def read_parquet(path: Path) -> Iterator[Row]:
    """The rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}).") from None
    number = 0
    for batch in file.iter_batches(ROWS_AT_ONCE):
        for values in batch.to_pylist():
            number += 1
            yield as_row(values, f"{path}, row {number}")


def read_members(path: Path) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the JSON object in a file, without holding the others.

    Raises `InputError` where the file is missing or holds no JSON object.
    """
    import ijson

    if not path.is_file():
        raise InputError(f"{path} does not exist.")
    with path.open("rb") as file:
        if not file.peek().lstrip().startswith(b"{"):
            raise InputError(f"{path}: not a JSON object.")
        try:
            yield from ijson.kvitems(file, "", use_float=True)
        except ijson.JSONError as error:
            said = error.args[0] if isinstance(error.args[0], str) else error.args[0].decode(errors="replace")
            raise InputError(f"{path}: not JSON ({said.splitlines()[0]}).") from None


def read_objects(path: Path) -> Iterator[tuple[str, Row]]:
    """The members of the JSON object in a file, whose values must be objects, as rows."""
    for key, values in read_members(path):
        yield key, as_row(values, f"{path}, {key}")


def read_delimited(path: Path, columns: int, delimiter: str, *, header: bool) -> Iterator[tuple[str, list[str]]]:
    """Place and fields of each row of a file of text. Raises `InputError` for a row with another number of fields."""
    with _open_text(path) as file:
        rows = csv.reader(file, delimiter=delimiter)
        if header:
            next(rows, None)
        found = False
        for row in rows:
            found = True
            place = f"{path}, line {rows.line_num}"
            if len(row) != columns:
                raise InputError(f"{place}: has {len(row)} fields, where {columns} are expected.")
            yield place, row
        if not found:
            raise InputError(f"{path}: has no rows.")


def relevance(text: str, place: str) -> int:
    """A whole number that says how relevant a candidate is; below 0, as in some judgements, means not relevant."""
    try:
        return max(int(text), 0)
    except ValueError:
        raise InputError(f"{place}: relevance must be a whole number, not {text!r}.") from None


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    """Open a file of text. Raises `InputError` where it is missing, and where what is read is not UTF-8."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 ({error.reason}).") from None
