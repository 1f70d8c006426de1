"""From the scores of all models on a benchmark to its averages, as the literature takes them.

A value is one metric of one task. An average is taken within a run (a training seed, an evaluation seed and a mode)
over values of one format, one group, one metric, or all; then mean and standard deviation are taken over the runs.
Rankings do not depend on the evaluation seed and the mode, and count in every run of their training seed.

SciRepEval's average (Singh et al., 2023) is over 25 values: 6 of classification, 5 of regression, 11 of proximity (the
four SciDocs rankings have two metrics each) and 3 of search. Reviewer matching has a format of its own, the mean of its
four values, and is in no other average. A task that repeats the queries of others of the benchmark is in none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

import typer

from cocite.config.benchmarks import declared
from cocite.config.tasks import BOTH, FORMATS, Task, without_unions
from cocite.core.options import Output
from cocite.core.tables.files import open_table
from cocite.evaluation.asked import Metrics, RankAlone, RunNames, Suites, files_of_runs, tasks_of_suites
from cocite.evaluation.benchmark import write_rows

REVIEWERS = FORMATS["reviewers"]

Score = Mapping[str, Any]
"""A row of the table scores."""
Average = tuple[str, str]
"""What is averaged over (format, group, metric, all), and which of them."""
Found = tuple[float, float | None, int, int]
"""Mean over the runs, standard deviation (none of one run), runs, and values in each of them."""
Value = tuple[str, str]
"""A task and a metric of it."""


def write_averages(
    scores: Annotated[Path, typer.Argument(help="Folder of the scores of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    runs: RunNames,
    rank_alone: RankAlone = "",
    metrics: Metrics = "",
    output: Output,
) -> None:
    """Average the scores of each model over formats, groups, metrics and all tasks, and over its seeds."""
    asked = tasks_of_suites(suites, metrics)
    counted = without_unions([task for tasks in asked.values() for task in tasks])
    names = {task.name for task in counted}
    of_models: dict[tuple[str, str], list[Score]] = {}
    for path in files_of_runs(scores, asked, runs, rank_alone):
        with open_table(path, "scores") as file:
            for row in file.read().to_pylist():
                if row["task"] in names:
                    of_models.setdefault((row["benchmark"], row["model"]), []).append(row)
    expected = expected_values(counted)
    rows = [
        (*name, mode, *average, *found, expected.get(average))
        for name, of_model in of_models.items()
        for mode, average, found in averages(of_model)
    ]
    write_rows(output, "averages", rows)


def averages(scores: Sequence[Score]) -> Iterator[tuple[str, Average, Found]]:
    """Mode, average, and what the runs of one model give for it.

    A task that could not be scored in one of the runs is left out of all of them: a mean over runs must be one over the
    same values.
    """
    for mode in sorted({row["mode"] for row in scores} - {BOTH}) or [BOTH]:
        runs = [_values_of_run(rows) for rows in _runs(scores, mode)]
        for average in dict.fromkeys(average for run in runs for average in run):
            shared = set.intersection(*(set(run.get(average, {})) for run in runs))
            if shared:
                of_runs = [fmean(run[average][value] for value in shared) for run in runs]
                deviation = stdev(of_runs) if len(of_runs) > 1 else None
                yield mode, average, (fmean(of_runs), deviation, len(of_runs), len(shared))


def expected_values(tasks: Iterable[Task]) -> dict[Average, int]:
    """How many values each average over formats, groups and all has where nothing is lacking."""
    counted = Counter(average for task in tasks for _ in task.metrics for average in _averages_of(task))
    return dict(counted)


def _runs(scores: Sequence[Score], mode: str) -> Iterator[list[Score]]:
    """The scores of each run in a mode, with the rankings of its training seed."""
    of_mode = [row for row in scores if row["mode"] == mode]
    for seed, evaluation_seed in sorted({(row["seed"], row["evaluation_seed"]) for row in of_mode}):
        own = [row for row in of_mode if (row["seed"], row["evaluation_seed"]) == (seed, evaluation_seed)]
        shared = [row for row in scores if row["seed"] == seed and BOTH == row["mode"] != mode]
        yield own + shared


def _values_of_run(rows: Iterable[Score]) -> dict[Average, dict[Value, float]]:
    """The values that each average is over."""
    values: dict[Average, dict[Value, float]] = {}
    for row in rows:
        for average in (*_averages_of(declared(row["task"])), ("metric", row["metric"])):
            if average[0] != "metric" or row["format"] != REVIEWERS:
                values.setdefault(average, {})[row["task"], row["metric"]] = row["value"]
    return values


def _averages_of(task: Task) -> list[Average]:
    """The averages that the metrics of a task count in, other than the average of each metric."""
    if task.format == REVIEWERS:
        return [("format", task.format)]
    return [("format", task.format), ("group", task.group), ("all", "all")]
