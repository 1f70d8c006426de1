"""The folders of benchmarks: which tasks they hold, and judgements in tables of text.

Whatever is wrong is reported with the file and the line, because such folders are put together by hand.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from cocite.config.tasks import Task
from cocite.core.errors import InputError, explain_unreadable

LARGEST_GRADE = 1000
"""No scale of relevance has more grades, and trec_eval takes memory for each."""


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


def relevance(value: object, place: str) -> int:
    """A whole number that says how relevant a candidate is; below 0, as in some judgements, means not relevant."""
    return max(grade(value, place), 0)


def grade(value: object, place: str) -> int:
    """A whole number, which may be written as a decimal: 2.0. Raises `InputError` where it is none."""
    number = as_number(value)
    if number is None or not number.is_integer():
        raise InputError(f"{place}: relevance must be a whole number, not {value!r:.80}.")
    if abs(number) > LARGEST_GRADE:
        raise InputError(f"{place}: relevance must be at most {LARGEST_GRADE}, not {value!r:.80}.")
    return int(number)


def as_number(value: object) -> float | None:
    """A number, or a text that is one; None where it is neither."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or "_" in str(value):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    """Open a file of text. Raises `InputError` where it is missing, and where what is read is not UTF-8."""
    with explain_unreadable(path, "file of text"):
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield file
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 ({error.reason}).") from None
