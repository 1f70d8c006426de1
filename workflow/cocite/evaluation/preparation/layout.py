"""SciRepEval's layout: fetching it from the Hugging Face hub, and reading a local folder.

Texts lie in `metadata/<config>/`, split `evaluation`, reviewers in `metadata/reviewers/` or `test/reviewers/`, split
`metadata`, labels and judgements in `test/<config>/`. A split is `<split>.jsonl`, `<split>.parquet` or, as the hub has
it, `<split>-00000-of-00002.parquet` or `<split>/0000.parquet`.

On the hub, `allenai/scirepeval` holds the texts and `allenai/scirepeval_test` the labels. One config of one dataset is
fetched at a time, and read offline after that. Only files of rows are taken, never a script: a revision that has
nothing else is refused.
"""

import math
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from cocite.config.tasks import Task
from cocite.evaluation.preparation.files import Row, read_lines, read_parquet
from cocite.ground.errors import InputError
from cocite.ground.hub import fetch_files
from cocite.tables.files import atomic_path

LARGEST_SCORE = 2**31 - 1


def fetch_config(dataset: str, revision: str, config: str, splits: Sequence[str], *, state: Path, output: Path) -> None:
    """Write the folder of a config with these splits; a killed fetch goes on from the files in `state`.

    Raises `InputError` where the hub cannot be reached, and where it has no files of a split at the revision.
    """
    fetched = state / revision
    patterns = [f"{config}/{pattern}" for split in splits for pattern in patterns_of_split(split)]
    try:
        fetch_files(dataset, revision, patterns, fetched, kind="dataset")
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. A benchmark is fetched once: run that step where there is a network, on a "
            "login node for example (snakemake --until fetch_benchmark), or name a local folder in place of hub."
        ) from error
    for split in splits:
        if not files_of_split(fetched / config, split):
            raise InputError(
                f"{dataset} at {revision} has no Parquet or JSON Lines files of {config}, split {split}; pin a commit "
                "that has them, such as the last one of its branch refs/convert/parquet."
            )
    with atomic_path(output) as folder:
        shutil.move(fetched / config, folder)
    shutil.rmtree(state)


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
    rows = chain.from_iterable(read_lines(file) if file.suffix == ".jsonl" else read_parquet(file) for file in files)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{files[0]}: has no rows.")
    return chain([first], rows)


def files_of_split(folder: Path, split: str) -> list[Path]:
    """The files of a split, in the first of the layouts that has any."""
    for pattern in patterns_of_split(split):
        files = sorted(folder.glob(pattern))
        if files:
            return files
    return []


def patterns_of_split(split: str) -> tuple[str, ...]:
    """The names of the files of a split, in a folder put together by hand and on the hub."""
    return f"{split}.jsonl", f"{split}.parquet", f"{split}-*-of-*.parquet", f"{split}/*.parquet"
