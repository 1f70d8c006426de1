"""Which of two models is better over the tasks of a run: from the tables comparisons to the table task_comparisons.

Each task is one pair of values: its first metric, as `comparisons` has the difference of the two models on it. Over
the tasks of a benchmark, and over those of all benchmarks, the differences are tested by the signed ranks of Wilcoxon
(1945, "Individual Comparisons by Ranking Methods"), as Demšar recommends for two models on several data sets (2006,
"Statistical Comparisons of Classifiers over Multiple Data Sets"). The test is exact, and looks at which differences are
larger than which, not by how much, since tasks have different metrics. The mean difference has the interval of
Student's t over tasks. Holm's procedure raises the p-values for all pairs over the same tasks, without those that have
too few tasks to reach so small a p-value (Tarone). A task that repeats the queries of others beside it does not count.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from cocite.config.benchmarks import declared
from cocite.config.tasks import BOTH, without_unions
from cocite.core.options import Output
from cocite.core.tables.files import read_table
from cocite.evaluation.benchmark import write_rows
from cocite.evaluation.significance import Part, error_of, holm, interval_of, signed_rank_p_value

ALL = "all benchmarks"
"""What the tasks of all benchmarks are called together; no benchmark can have this name."""
FEWEST = 2
"""Tasks that a mean needs to have an interval."""

Row = Mapping[str, Any]
"""A row of the table comparisons."""
Pair = tuple[str, str]


class TaskDifference(NamedTuple):
    """How one model differs from another over tasks, × 100."""

    tasks: int
    better: int
    """Tasks on which the first is better."""
    worse: int
    value: float
    low: float
    high: float
    """The 95% interval of the mean."""
    p_value: float
    least_p_value: float
    """The smallest that so many tasks can give."""


def compare_over_tasks(
    comparisons: Annotated[list[Path], typer.Argument(help="Table comparisons of each benchmark, in their order.")],
    *,
    output: Output,
) -> None:
    """Test which of two models is better over tasks: signed ranks of their differences on each."""
    tables = [read_table(path, "comparisons").to_pylist() for path in comparisons]
    rows = [
        (over, mode, *pair, *found, p_adjusted)
        for over, of_tasks in _comparisons(tables)
        for mode, differences in by_mode(of_tasks)
        for pair, found, p_adjusted in pair_tests(differences)
    ]
    write_rows(output, "task_comparisons", rows)


def pair_tests(differences: Mapping[Pair, Sequence[float]]) -> Iterator[tuple[Pair, TaskDifference, float]]:
    """Each pair of models with its difference and the p-value adjusted for all pairs; pairs with too few tasks lack."""
    found = {pair: over_tasks(values) for pair, values in differences.items() if len(values) >= FEWEST}
    adjusted = holm(
        [difference.p_value for difference in found.values()],
        [difference.least_p_value for difference in found.values()],
    ).tolist()
    for (pair, difference), p_adjusted in zip(found.items(), adjusted, strict=True):
        yield pair, difference, p_adjusted


def over_tasks(differences: Sequence[float]) -> TaskDifference:
    """The difference of two models from their differences on two or more tasks."""
    values = np.asarray(differences, dtype=np.float64)
    better, worse = int((values > 0).sum()), int((values < 0).sum())
    mean = float(values.mean())
    error = error_of([Part(float(np.var(values, ddof=1)) / len(values), len(values) - 1)])
    p_value = signed_rank_p_value(values)
    least = min(1.0, 2.0 ** (1 - better - worse))
    return TaskDifference(len(values), better, worse, mean, *interval_of(mean, error), p_value, least)


def by_mode(rows: Sequence[Row]) -> Iterator[tuple[str, dict[Pair, list[float]]]]:
    """Each mode with the differences of any two models on its tasks; tasks without a mode count in every mode."""
    for mode in sorted({row["mode"] for row in rows} - {BOTH}) or [BOTH]:
        differences: dict[Pair, list[float]] = {}
        for row in rows:
            if row["mode"] in (mode, BOTH):
                differences.setdefault((row["model"], row["other"]), []).append(row["difference"])
        yield mode, differences


def _comparisons(tables: Iterable[Sequence[Row]]) -> Iterator[tuple[str, list[Row]]]:
    """The first metric of each task of each benchmark, then of all benchmarks.

    A task that several benchmarks have counts in the first of them: its documents are the same.
    """
    of_all: dict[str, list[Row]] = {}
    benchmarks = 0
    for rows in tables:
        leading = _distinct([row for row in rows if declared(row["task"]).is_main(row["metric"])])
        if leading:
            yield leading[0]["benchmark"], leading
            benchmarks += 1
        by_task: dict[str, list[Row]] = {}
        for row in leading:
            by_task.setdefault(row["task"], []).append(row)
        of_all = by_task | of_all
    if benchmarks > 1:
        yield ALL, _distinct([row for of_task in of_all.values() for row in of_task])


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """The rows of the tasks that do not repeat the queries of others."""
    names = {task.name for task in without_unions(map(declared, {row["task"] for row in rows}))}
    return [row for row in rows if row["task"] in names]
