"""The files of benchmarks: the tasks of a folder, tables of text, grades, and splits in the form of the hub.

A config of a dataset is a folder. A split of it is `<split>.jsonl`, `<split>.parquet` or, as on the Hugging Face hub,
`<split>-00000-of-00002.parquet` or `<split>/0000.parquet`. Only files of rows are read, never a script.
"""

import csv
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from cocite.config.benchmarks import names
from cocite.config.tasks import Task
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.hub import fetch_files
from cocite.core.options import Output, State
from cocite.core.rows import Row, read_rows, read_text

PATTERNS = ("{}.jsonl", "{}.parquet", "{}-*-of-*.parquet", "{}/*.parquet")
LARGEST_GRADE = 1000
"""No scale of relevance has more grades, and trec_eval takes memory for each."""


def fetch_config(
    config: Annotated[str, typer.Argument(help="Name of the config: a folder of the dataset.")],
    *,
    dataset: Annotated[str, typer.Option(help="Dataset on the Hugging Face hub.")],
    revision: Annotated[str, typer.Option(help="Commit of the dataset.")],
    splits: Annotated[str, typer.Option(help="Comma-separated names of its splits.")],
    state: State,
    output: Output,
) -> None:
    """Fetch a config of a benchmark from the hub; a killed fetch resumes from the files in `state`.

    Raises `InputError` if the hub cannot be reached, or has no files of a split at the revision.
    """
    fetched = state / revision
    patterns = [f"{config}/{pattern.format(split)}" for split in names(splits) for pattern in PATTERNS]
    try:
        fetch_files(dataset, revision, patterns, fetched, kind="dataset")
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. A benchmark is fetched once: run that step where there is a network, such as a "
            "login node for example (snakemake --until fetch_benchmark), or name a local folder in place of hub."
        ) from error
    for split in names(splits):
        if not _files_of_split(fetched / config, split):
            lacks = f"{dataset} at {revision} has no Parquet or JSON Lines files of {config}, split {split}"
            remedy = "pin a commit that has them, such as the last one of its branch refs/convert/parquet"
            raise InputError(f"{lacks}; {remedy}.")
    with atomic_path(output) as folder:
        shutil.move(fetched / config, folder)
    shutil.rmtree(state)


def read_split(folder: Path, split: str, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of a split of a config's folder; of Parquet, only these columns if present. Raises `InputError` if it
    has no files, or no rows."""
    files = _files_of_split(folder, split)
    if not files:
        raise InputError(f"{folder}: contains neither {split}.jsonl nor {split}.parquet, nor shards of it.")
    rows = chain.from_iterable(read_rows(file, columns) for file in files)
    if (first := next(rows, None)) is None:
        raise InputError(f"{files[0]}: has no rows.")
    return chain([first], rows)


def _files_of_split(folder: Path, split: str) -> list[Path]:
    """The files of a split, in the first of the layouts that has any."""
    return next(filter(None, (sorted(folder.glob(pattern.format(split))) for pattern in PATTERNS)), [])


def present_tasks(
    folder: Path, declared: Sequence[Task], names: Sequence[str], place_of: Callable[[Task], str]
) -> tuple[list[Task], dict[str, int]]:
    """Of the tasks of these names, or all if none are named, those whose path is in the folder, and counts of the
    absent ones. Raises `InputError` if none is present, or if a named one is absent."""
    held = [task for task in declared if (folder / place_of(task)).is_dir()]
    asked = [task for task in declared if not names or task.name in names]
    absent = [task for task in asked if task not in held]
    if len(absent) == len(asked) and not (names and held):
        tasks = ", ".join(task.name for task in asked)
        raise InputError(f"{folder}: contains none of the tasks {tasks}; it needs folders like {place_of(asked[0])}.")
    if names and absent:
        place, name, known = place_of(absent[0]), absent[0].name, ", ".join(task.name for task in held)
        raise InputError(f"{folder}: has no folder {place} for the requested task {name}; it contains {known}.")
    return [task for task in asked if task in held], {f"task {task.name} absent": int(task in absent) for task in asked}


def read_delimited(path: Path, columns: int, delimiter: str, *, header: bool) -> Iterator[tuple[str, list[str]]]:
    """Place and fields of each row of a file of text. Raises `InputError` for a row with another number of fields."""
    with explain_unreadable(path, "file of text"):
        rows = csv.reader((f"{line}\n" for _, line in read_text(path)), delimiter=delimiter)
        if header:
            next(rows, None)
        place = ""
        for row in rows:
            place = f"{path}, line {rows.line_num}"
            if len(row) != columns:
                raise InputError(f"{place}: has {len(row)} fields, where {columns} are expected.")
            yield place, row
        if not place:
            raise InputError(f"{path}: has no rows.")


def grade(value: object, place: str) -> int:
    """A whole number, also written as 2.0; below 0 means not relevant. Raises `InputError` if it is not one."""
    number = as_number(value)
    if number is None or not number.is_integer():
        raise InputError(f"{place}: relevance must be a whole number, not {value!r:.80}.")
    if abs(number) > LARGEST_GRADE:
        raise InputError(f"{place}: relevance must be at most {LARGEST_GRADE}, not {value!r:.80}.")
    return int(number)


def as_number(value: object) -> float | None:
    """A number, or a text that is one; else None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or "_" in str(value):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
