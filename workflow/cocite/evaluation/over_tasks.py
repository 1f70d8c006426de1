"""From tasks to benchmarks: the averages of each model, as the literature takes them, and which of two is better.

An average is taken within a run (a training seed, an evaluation seed and a mode), then over the runs; rankings count in
every run of their training seed. Models are compared by signed ranks of their differences on the first metric of each
task (Demšar, 2006, "Statistical Comparisons of Classifiers over Multiple Data Sets"), since tasks have different
metrics. A task that repeats the queries of others counts in neither.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer

from cocite.config.benchmarks import declared
from cocite.config.tasks import BOTH, FORMATS, Task, without_unions
from cocite.core.database import connect
from cocite.core.options import MemoryMb, Output, Papers
from cocite.core.tables.files import read_table, verified_files, write_table
from cocite.evaluation.benchmark import Metrics, Suites, files_of_runs, with_metrics, write_rows
from cocite.evaluation.comparisons import error_of, holm, interval_of, variance_of_mean
from cocite.evaluation.metrics import Values

REVIEWERS = FORMATS["reviewers"]
ALL = "all benchmarks"
"""What the tasks of all benchmarks are called together; no benchmark can have this name."""
FEWEST = 2
"""Tasks that a mean needs to have an interval."""

Row = Mapping[str, Any]
Average = tuple[str, str]
"""What is averaged over (format, group, metric, all), and which of them."""
Found = tuple[float, float | None, int, int]
"""Mean over the runs, standard deviation (none of one run), runs, and values in each of them."""
Pair = tuple[str, str]

# The text of a held-out paper is named by a prefix and the id of the paper: title:7.
BY_YEAR = """
    SELECT model, seed, benchmark, task, metric, year, count(*) AS queries, avg(value) AS value,
        stddev_samp(value) / sqrt(count(*)) AS error
    FROM outcomes SEMI JOIN main USING (task, metric)
    JOIN papers ON corpusid = split_part(item, ':', -1)::BIGINT
    GROUP BY ALL ORDER BY ALL
"""


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


def write_averages(
    scores: Annotated[Path, typer.Argument(help="Folder of the scores of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    metrics: Metrics = "",
    output: Output,
) -> None:
    """Average the scores of each model over formats, groups, metrics and all tasks, and over its seeds."""
    tasks = [declared(name) for suite in suites.values() for name in suite.tasks]
    counted = without_unions(with_metrics(tasks, metrics))
    names = {task.name for task in counted}
    of_models: dict[tuple[str, str], list[Row]] = {}
    for row in chain.from_iterable(read_table(path, "scores").to_pylist() for path in files_of_runs(scores, suites)):
        if row["task"] in names:
            of_models.setdefault((row["benchmark"], row["model"]), []).append(row)
    expected = expected_values(counted)
    rows = [
        (*name, mode, *average, *found, expected.get(average))
        for name, of_model in of_models.items()
        for mode, average, found in averages(of_model)
    ]
    write_rows(output, "averages", rows)


def averages(scores: Sequence[Row]) -> Iterator[tuple[str, Average, Found]]:
    """Mode, average, and what the runs of one model give for it. A task that could not be scored in one of the runs is
    left out of all of them: a mean over runs must be one over the same values."""
    for mode in _modes(scores):
        of_mode = [row for row in scores if row["mode"] == mode]
        runs = []
        for seed, evaluation_seed in sorted({(row["seed"], row["evaluation_seed"]) for row in of_mode}):
            own = [row for row in of_mode if (row["seed"], row["evaluation_seed"]) == (seed, evaluation_seed)]
            rankings = [row for row in scores if row["seed"] == seed and BOTH == row["mode"] != mode]
            values: dict[Average, dict[tuple[str, str], float]] = {}
            for row in own + rankings:
                of_metric = [] if row["format"] == REVIEWERS else [("metric", row["metric"])]
                for average in (*_averages_of(declared(row["task"])), *of_metric):
                    values.setdefault(average, {})[row["task"], row["metric"]] = row["value"]
            runs.append(values)
        for average in dict.fromkeys(average for run in runs for average in run):
            shared = set.intersection(*(set(run.get(average, {})) for run in runs))
            if shared:
                of_runs = [fmean(run[average][value] for value in shared) for run in runs]
                deviation = stdev(of_runs) if len(of_runs) > 1 else None
                yield mode, average, (fmean(of_runs), deviation, len(of_runs), len(shared))


def expected_values(tasks: Iterable[Task]) -> dict[Average, int]:
    """How many values each average over formats, groups and all has where nothing is lacking."""
    return dict(Counter(average for task in tasks for _ in task.metrics for average in _averages_of(task)))


def _modes(rows: Iterable[Row]) -> Sequence[str]:
    """The modes of some rows; those without a mode count in each."""
    return sorted({row["mode"] for row in rows} - {BOTH}) or [BOTH]


def _averages_of(task: Task) -> list[Average]:
    """The averages that the metrics of a task count in, other than the average of each metric. Reviewers count only in
    that of their format, as SciRepEval's average is without them (Singh et al., 2023)."""
    if task.format == REVIEWERS:
        return [("format", task.format)]
    return [("format", task.format), ("group", task.group), ("all", "all")]


def compare_over_tasks(
    comparisons: Annotated[list[Path], typer.Argument(help="Table comparisons of each benchmark, in their order.")],
    *,
    output: Output,
) -> None:
    """Test which of two models is better over tasks: signed ranks of their differences on each."""
    rows: list[tuple[Any, ...]] = []
    for over, of_tasks in _comparisons(read_table(path, "comparisons").to_pylist() for path in comparisons):
        for mode in _modes(of_tasks):
            differences: dict[Pair, list[float]] = {}
            for row in of_tasks:
                if row["mode"] in (mode, BOTH):
                    differences.setdefault((row["model"], row["other"]), []).append(row["difference"])
            rows += [(over, mode, *pair, *found, adjusted) for pair, found, adjusted in pair_tests(differences)]
    write_rows(output, "task_comparisons", rows)


def _comparisons(tables: Iterable[Sequence[Row]]) -> Iterator[tuple[str, list[Row]]]:
    """The first metric of each task of each benchmark, then of all; a task of several counts in the first of them."""
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
    names = {task.name for task in without_unions([declared(name) for name in {row["task"] for row in rows}])}
    return [row for row in rows if row["task"] in names]


def pair_tests(differences: Mapping[Pair, Sequence[float]]) -> Iterator[tuple[Pair, TaskDifference, float]]:
    """Each pair of models with its difference and the p-value adjusted for all pairs; pairs with too few tasks lack."""
    found = {pair: over_tasks(values) for pair, values in differences.items() if len(values) >= FEWEST}
    adjusted = holm([each.p_value for each in found.values()], [each.least_p_value for each in found.values()])
    yield from zip(found.keys(), found.values(), adjusted.tolist(), strict=True)


def over_tasks(differences: Sequence[float]) -> TaskDifference:
    """The difference of two models from their differences on two or more tasks."""
    values = np.asarray(differences, dtype=np.float64)
    better, worse = int((values > 0).sum()), int((values < 0).sum())
    mean = float(values.mean())
    interval = interval_of(mean, error_of(variance_of_mean(values)))
    least = min(1.0, 2.0 ** (1 - better - worse))
    return TaskDifference(len(values), better, worse, mean, *interval, signed_rank_p_value(values), least)


def signed_rank_p_value(differences: Values) -> float:
    """Of Wilcoxon's signed-rank test (1945), two-sided and exact, also with ties, without differences of zero. All 2ⁿ
    signs of the n ranks are equally likely: the probability of each sum of positive ones is found rank by rank."""
    nonzero = differences[differences != 0]
    sizes, ordered = np.abs(nonzero), np.sort(np.abs(nonzero))
    doubled = np.searchsorted(ordered, sizes, "left") + np.searchsorted(ordered, sizes, "right") + 1  # twice each rank
    probability = np.zeros(doubled.sum() + 1)
    probability[0] = 1
    for rank in doubled.tolist():
        probability[rank:] += probability[:-rank]
        probability /= 2
    found = int(doubled[nonzero > 0].sum())
    smaller = min(found, len(probability) - 1 - found)
    return min(1.0, float(2 * probability[: smaller + 1].sum()))


def score_by_year(
    outcomes: Annotated[Path, typer.Argument(help="Folder of the outcomes of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    papers: Papers,
    memory_mb: MemoryMb,
    output: Output,
) -> None:
    """Average the main metric of each task over the queries of each year, as R@20 of searches and MAP of rankings."""
    tasks = [declared(name) for suite in suites.values() for name in suite.tasks]
    # One thread, since the order of additions moves the last bits of a mean.
    with connect(memory_mb=memory_mb, threads=1, spill_to=output.parent) as connection:
        of_runs = connection.read_parquet(verified_files(files_of_runs(outcomes, suites), "outcomes"))
        of_runs.create_view("outcomes")
        connection.read_parquet(verified_files(papers, "papers", ["corpusid", "year"])).create_view("papers")
        main = {"task": [task.name for task in tasks], "metric": [task.main_metric for task in tasks]}
        connection.register("main", pa.table(main))
        write_table(output, "scores_by_year", connection.sql(BY_YEAR).to_arrow_table())
