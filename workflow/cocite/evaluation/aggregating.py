"""From the scores of all models on a benchmark to its averages, as the literature takes them.

A value is one metric of one task. An average is taken within a run (a training seed, an evaluation seed and a mode)
over values of one format, one group, one metric, or all; then mean and standard deviation are taken over the runs.
Rankings do not depend on the evaluation seed and the mode, and count in every run of their training seed.

SciRepEval's average (Singh et al., 2023) is over 25 values: 6 of classification, 5 of regression, 11 of proximity (the
four SciDocs rankings have two metrics each) and 3 of search. Reviewer matching has a format of its own, the mean of its
four values, and is in no other average.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cocite.evaluation.benchmark import write_rows
from cocite.evaluation.tasks import FORMATS, SCIREPEVAL, TASKS
from cocite.files import read_table

REVIEWERS = FORMATS["reviewers"]
BOTH = "both"
"""The mode of scores that do not depend on it."""

Score = Mapping[str, Any]
"""A row of the table scores."""
Average = tuple[str, str]
"""What is averaged over (format, group, metric, all), and which of them."""


def write_averages(scores: Sequence[Path], output: Path) -> None:
    """Write the table averages of one benchmark."""
    of_models: dict[tuple[str, str], list[Score]] = {}
    for row in read_table(scores, "scores").to_pylist():
        of_models.setdefault((row["benchmark"], row["model"]), []).append(row)
    rows = [(*name, *row) for name, of_model in of_models.items() for row in averages(of_model)]
    write_rows(output, "averages", rows)


def averages(scores: Sequence[Score]) -> Iterator[tuple[object, ...]]:
    """Mode, average, mean over the runs, standard deviation (none of one run), runs and values of one model."""
    for mode in sorted({row["mode"] for row in scores} - {BOTH}) or [BOTH]:
        runs = [_values_of_run(rows) for rows in _runs(scores, mode)]
        for average in runs[0]:
            of_runs = [fmean(run[average]) for run in runs]
            deviation = stdev(of_runs) if len(of_runs) > 1 else None
            yield mode, *average, fmean(of_runs), deviation, len(of_runs), len(runs[0][average])


def _runs(scores: Sequence[Score], mode: str) -> Iterator[list[Score]]:
    """The scores of each run in a mode, with the rankings of its training seed."""
    told = [row for row in scores if row["mode"] == mode]
    for seed, evaluation_seed in sorted({(row["seed"], row["evaluation_seed"]) for row in told}):
        own = [row for row in told if (row["seed"], row["evaluation_seed"]) == (seed, evaluation_seed)]
        shared = [row for row in scores if row["seed"] == seed and BOTH == row["mode"] != mode]
        yield own + shared


def _values_of_run(rows: Iterable[Score]) -> dict[Average, list[float]]:
    """The values that each average is over."""
    values: dict[Average, list[float]] = {}
    for row in rows:
        counted = [("format", row["format"])]
        if row["format"] != REVIEWERS:
            counted += [("group", TASKS[row["task"]].group), ("metric", row["metric"]), ("all", "all")]
        for average in counted:
            values.setdefault(average, []).append(row["value"])
    return values


def format_weights() -> dict[str, int]:
    """How many values of each format SciRepEval's average is over."""
    counted = [task for task in SCIREPEVAL if task.kind != "reviewers"]
    return dict(Counter(task.format for task in counted for _ in task.metrics))
