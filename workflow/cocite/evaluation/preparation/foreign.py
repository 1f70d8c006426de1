"""Reading the files of benchmarks that have layouts of their own: large JSON objects, and tables as text."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from cocite.evaluation.preparation.layout import Row, as_row
from cocite.ground.errors import InputError

CHARACTERS_AT_ONCE = 1 << 20
SPACE = " \t\n\r"
DECODER = json.JSONDecoder()


def read_members(path: Path) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the JSON object in a file, without holding the others.

    Raises `InputError` where the file is missing or holds no JSON object.
    """
    with _opened(path) as file, _decoded(path):
        window = _Window(path, file)
        window.expect("{")
        is_empty = window.accept("}")
        while not is_empty:
            key = window.value()
            window.expect(":")
            yield str(key), window.value()
            if not window.accept(","):
                window.expect("}")
                return


def read_objects(path: Path) -> Iterator[tuple[str, Row]]:
    """The same where each value must be an object, as rows."""
    for key, values in read_members(path):
        yield key, as_row(values, f"{path}, {key}")


def read_delimited(path: Path, columns: int, delimiter: str, *, header: bool) -> Iterator[tuple[str, list[str]]]:
    """Place and fields of each row of a file of text. Raises `InputError` for a row with another number of fields."""
    with _opened(path) as file, _decoded(path):
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
    """A whole number that says how relevant a candidate is; below 0 as in some judgements counts as not relevant."""
    try:
        return max(int(text), 0)
    except ValueError:
        raise InputError(f"{place}: relevance must be a whole number, not {text!r}.") from None


@contextmanager
def _decoded(path: Path) -> Iterator[None]:
    """Tell of what is not UTF-8 as the fault of the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 ({error.reason}).") from None


def _opened(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8", newline="")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None


class _Window:
    """What has been read of a file and not been taken yet."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._text, self._at, self._ended = "", 0, False

    def accept(self, mark: str) -> bool:
        """Go past this mark, if it is the next thing; say whether it was."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in SPACE:
                self._at += 1
            if self._at < len(self._text) or not self._more():
                break
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) if found else 0
        return found

    def expect(self, mark: str) -> None:
        """Go past this mark. Raises `InputError` where something else is next."""
        if not self.accept(mark):
            raise InputError(f"{self._path}: not a JSON object ({mark} expected{self._near()}).")

    def value(self) -> Any:
        """Take the next value, reading on for as long as it is not whole."""
        self.accept("")
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise InputError(f"{self._path}: not JSON ({error.msg}{self._near()}).") from None
                continue
            if end < len(self._text) or not self._more():  # A number may go on in what has not been read.
                self._at = end
                return value

    def _more(self) -> bool:
        if self._ended:
            return False
        read = self._file.read(max(CHARACTERS_AT_ONCE, len(self._text) - self._at))
        self._ended = not read
        if read:
            self._text, self._at = self._text[self._at :] + read, 0
        return bool(read)

    def _near(self) -> str:
        near = self._text[self._at : self._at + 40]
        return f" near {near!r}" if near else " where the file ends"
