"""Externally reported scores: from files of the library mteb to the table reported_scores.

Since its version 1.11, a file names its task as `task_name` and has under `scores` a list of subsets for each split;
earlier ones name it as `mteb_dataset_name` and have the splits at the top, with the metrics or with subsets below. A
result counts if it is for the same test as here; all others are counted by reason.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from cocite.config.benchmarks import declared, names
from cocite.config.benchmarks.beir import BeirSettings
from cocite.config.settings import GivenAsJson
from cocite.config.tasks import META, SPLIT, Task, is_same_test, name_in_mteb, result_files
from cocite.core.atomic import read_json, read_object
from cocite.core.errors import InputError
from cocite.core.options import Omissions, Output
from cocite.core.tables.files import write_omissions
from cocite.evaluation.benchmark import Benchmark, Tables, read_task, write_rows

UNDERSTOOD = "those of mteb 1 and 2 have task_name and scores, or mteb_dataset_name"
UNKNOWN = "result on a task that the benchmark does not have"
ROUNDING = 1e-5
"""Difference of two values that were rounded to five digits or more."""

Scores = Mapping[str, Any]


class Result(NamedTuple):
    """What a file says of a task, with the revision of its data set and the version of mteb that wrote it."""

    path: Path
    task: str
    revision: str | None
    version: str | None
    splits: Mapping[str, Sequence[Scores]]
    """The scores of each subset, by split."""


def write_reported(
    path: Annotated[Path, typer.Argument(help="A file of results of mteb, or the folder of one revision of a model.")],
    *,
    tables: Tables,
    tasks: Annotated[str, typer.Option(help="Comma-separated names of the benchmark's tasks.")],
    settings: GivenAsJson[BeirSettings],
    baseline: Annotated[str, typer.Option(help="Name of the baseline.")],
    output: Output,
    omissions: Omissions,
) -> None:
    """Read externally reported scores from files of the library mteb, for the tasks that a benchmark shares with it.

    `settings` are those with which the benchmark was read.

    Raises `InputError` if a file has another layout, or a value is not valid for its metric.
    """
    asked = [declared(name) for name in names(tasks)]
    in_mteb = {task.mteb.name: task for task in asked if task.mteb}
    results: dict[str, Result] = {}
    for result in map(read_result, result_files(path)):
        if (first := results.setdefault(result.task, result)) is not result:
            twice = f"is on {result.task}, as {first.path} is; a task has one result of a model"
            raise InputError(f"{result.path}: {twice}.")
    rows, omitted, found = [], Counter[str](), set()
    for result in results.values():
        task = in_mteb.get(result.task)
        value = UNKNOWN if task is None else _score_of(result, task, settings, read_task(task, tables))
        if task is None or isinstance(value, str):
            omitted[str(value)] += 1
            continue
        found.add(task.name)
        meta_file = result.path.with_name(META)
        meta = read_object(meta_file) if meta_file.is_file() else {}
        key = (baseline, tables.name, task.name, task.main_metric)
        model = _text(meta.get("name")), _text(meta.get("revision"))
        rows.append((*key, round(100 * value, 6), result.task, *model, result.revision, result.version))
    omitted["task of the benchmark without a reported score"] = len(asked) - len(found)
    write_rows(output, "reported_scores", rows)
    write_omissions(omissions, dict(omitted))


def read_result(path: Path) -> Result:
    """The contents of a file in either layout. Raises `InputError` if it has another."""
    read = read_json(path)
    splits: Mapping[str, Sequence[Scores]]
    match read:
        case {"task_name": str(task), "scores": dict(splits)}:
            for split, subsets in splits.items():
                if not isinstance(subsets, list) or not all(isinstance(subset, dict) for subset in subsets):
                    raise InputError(f"{path}, scores.{split}: must be a list of objects, one for each subset.")
        case {"mteb_dataset_name": str(task)}:
            splits = {}
            for split, of in read.items():
                if isinstance(of, dict):  # Metrics replace the subsets if there are none.
                    metrics = {name: value for name, value in of.items() if name != "evaluation_time"}
                    splits[split] = [below for below in of.values() if isinstance(below, dict)] or [metrics]
        case _:
            raise InputError(f"{path}: is no result that is understood; {UNDERSTOOD}.")
    return Result(path, task, _text(read.get("dataset_revision")), _text(read.get("mteb_version")), splits)


def _score_of(result: Result, task: Task, settings: BeirSettings, asked: Benchmark) -> float | str:
    """The value of the first metric of a task, from 0 to 1; or the reason why the result does not count."""
    queries = len(asked.judgements.get(task.name, ()))
    searched = len(asked.collections.get(task.name, ())) or None
    if task.mteb is None or not is_same_test(task.mteb, settings, queries, searched):
        return "result on a task whose queries or documents are others here than in mteb"
    if SPLIT not in result.splits:
        return f"result without the split {SPLIT}"
    if len(result.splits[SPLIT]) != 1:
        return "result with several subsets of a task, or with none"
    [scores] = result.splits[SPLIT]
    metric = name_in_mteb(task.main_metric)
    if scores.get(metric) is None:
        return f"result without {metric}"
    value = _checked(result, scores, metric)
    if scores.get("main_score") is not None and abs(_checked(result, scores, "main_score") - value) > ROUNDING:
        return f"result whose main score is not {metric}"
    return value


def _checked(result: Result, scores: Scores, name: str) -> float:
    value = scores[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise InputError(f"{result.path}, {name}: must be a number from 0 to 1, not {value!r:.80}.")
    return float(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
