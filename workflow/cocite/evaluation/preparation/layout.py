"""Reading a local benchmark in SciRepEval's layout.

Texts lie in `metadata/<config>/`, split `evaluation`, reviewers in `metadata/reviewers/` or `test/reviewers/`, split
`metadata`, labels and judgements in `test/<config>/`. A split is `<split>.jsonl`, `<split>.parquet` or, as the hub has
it, `<split>-00000-of-00002.parquet` or `<split>/0000.parquet`. Rows are checked as they are read, and what is wrong is
told with the file and the line, because such folders are put together by hand.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cocite.config.tasks import Task
from cocite.ground.errors import InputError

ROWS_AT_ONCE = 10_000
LARGEST_SCORE = 2**31 - 1


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


def has_task(folder: Path, task: Task) -> bool:
    """Whether the benchmark in `folder` has labels or judgements of a task."""
    return (folder / "test" / task.labels_folder).is_dir()


def read_texts(folder: Path, config: str) -> Iterator[Row]:
    """The rows with the texts of one config: documents, or a query with its candidates."""
    return _rows(folder / "metadata" / config, "evaluation")


def read_labels(folder: Path, task: Task, split: str) -> Iterator[tuple[Row, str, list[str]]]:
    """Row, document and labels of a supervised task."""
    for row in _rows(folder / "test" / task.labels_folder, split):
        yield row, row.identifier("paper_id"), _labels(row, task)


def read_judgements(folder: Path, task: Task) -> Iterator[tuple[Row, str, str, int]]:
    """Row, query, candidate and relevance of a ranking task."""
    for row in _rows(folder / "test" / task.labels_folder, task.split):
        score = row.require("score")
        if not isinstance(score, int | float) or not 0 <= score <= LARGEST_SCORE or score != int(score):
            raise InputError(f"{row.place}: score must be a whole number from 0, not {score!r}.")
        yield row, row.identifier("query_id"), row.identifier("cand_id"), int(score)


def read_reviewers(folder: Path) -> Iterator[tuple[Row, str, list[str]]]:
    """Row, reviewer and the documents of the reviewer's papers."""
    beside_texts = folder / "metadata" / "reviewers"
    for row in _rows(beside_texts if beside_texts.is_dir() else folder / "test" / "reviewers", "metadata"):
        yield row, row.identifier("r_id"), row.identifiers("papers")


def _labels(row: Row, task: Task) -> list[str]:
    label = row.require("label")
    if task.kind == "multilabel":
        return _classes(row, label)
    if isinstance(label, list | dict):
        raise InputError(f"{row.place}: label must be one value in the task {task.name}, not {label!r}.")
    if task.kind != "regression":
        whole = isinstance(label, bool) or (isinstance(label, float) and label.is_integer())
        name = str(int(label) if whole else label)
        if task.kind == "binary" and name not in ("0", "1"):
            raise InputError(f"{row.place}: label must be 0 or 1 in the task {task.name}, not {label!r}.")
        return [name]
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{row.place}: label must be a finite number in the task {task.name}, not {label!r}.")
    return [repr(number)]


def _classes(row: Row, label: Any) -> list[str]:
    """Class names, as they stand or from a list with a 0 or 1 for each class; its classes are named 0, 1, …"""
    if isinstance(label, list):
        if all(isinstance(name, str) for name in label):
            return sorted(set(label))
        if all(flag in (0, 1) for flag in label):
            return [str(number) for number, flag in enumerate(label) if flag]
    raise InputError(f"{row.place}: label must be a list of class names or of 0 and 1, not {label!r}.")


def _rows(folder: Path, split: str) -> Iterator[Row]:
    files = files_of_split(folder, split)
    if not files:
        raise InputError(f"{folder}: holds neither {split}.jsonl nor {split}.parquet, nor shards of it.")
    rows = chain.from_iterable(
        read_lines(file) if file.suffix == ".jsonl" else _rows_of_parquet(file) for file in files
    )
    first = next(rows, None)
    if first is None:
        raise InputError(f"{files[0]}: has no rows.")
    return chain([first], rows)


def files_of_split(folder: Path, split: str) -> list[Path]:
    """The files of a split, in the first of its layouts that there are any of."""
    for pattern in patterns_of_split(split):
        files = sorted(folder.glob(pattern))
        if files:
            return files
    return []


def patterns_of_split(split: str) -> tuple[str, ...]:
    """What the files of a split are called, in a folder put together by hand and on the hub."""
    return f"{split}.jsonl", f"{split}.parquet", f"{split}-*-of-*.parquet", f"{split}/*.parquet"


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


def _rows_of_parquet(path: Path) -> Iterator[Row]:
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


def as_row(values: Any, place: str) -> Row:
    """A row that was read. Raises `InputError` where it is no object."""
    if not isinstance(values, dict):
        raise InputError(f"{place}: must be an object, not {values!r:.80}.")
    return Row(values, place)
