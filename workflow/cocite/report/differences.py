"""How any two models differ on each metric of each task and over tasks, packed for the page, a matrix per question.

Fifty models on six benchmarks have more than 100,000 differences: some hundred kilobytes per benchmark as 16-bit
numbers in base64, and thousands of pages as rows of tables.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cocite.config.configuration import Configuration
from cocite.config.runs import names_in_order, numbers_of_seeds
from cocite.report.labels import measure, with_mode

HUNDREDTHS = 100
NONE = np.iinfo(np.int16).min
"""The value of a pair of models that were not compared."""
VALUES = ("difference", "low", "high")
WIDE = ("wide_low", "wide_high")
"""The ends of the interval that counts training seeds."""
LEVEL = 0.05
"""Significance level of the adjusted p-values."""
GROUP = "over tasks"
"""The heading of the questions over tasks."""
REMARK = (
    "over {tasks}: the interval covers the choice of tasks, and stars are by Wilcoxon's signed-rank test over the "
    "tasks, adjusted for all pairs"
)
NO_STAR = "; so few tasks cannot give a star among {pairs} pairs, however large the differences are"


def differences(comparisons: pl.DataFrame, configuration: Configuration) -> dict[str, Any]:
    """The models that were compared, their numbers of seeds, and each question: name, items and packed differences.

    A difference is the value of the earlier model minus that of the later one, in hundredths; pairs are in the order
    of `itertools.combinations`. Questions are in the order of the configured benchmarks, then of the tasks' names.
    """
    compared = set(comparisons["model"]) | set(comparisons["other"])
    models = [name for name in names_in_order(configuration) if name in compared]
    order = list(configuration.benchmarks)
    parts = comparisons.partition_by("benchmark", "task", "metric", "mode", as_dict=True, include_key=False)
    questions = [
        {
            "benchmark": benchmark,
            "measure": measure(task, metric, mode),
            "items": int(part["items"].max()),  # type: ignore[arg-type]
            "detectable": round(float(part["detectable"].median()), 1),  # type: ignore[arg-type]
            "sure": sure(part, models),
            "packed": packed(part, models, WIDE),
        }
        for (benchmark, task, metric, mode), part in sorted(
            parts.items(), key=lambda item: (order.index(item[0][0]), *item[0][1:])
        )
    ]
    seeds = numbers_of_seeds(configuration)
    return {"models": models, "seeds": [seeds[name] for name in models], "questions": questions}


def questions_over_tasks(
    compared: pl.DataFrame, models: Sequence[str], configuration: Configuration
) -> list[dict[str, Any]]:
    """A question for the tasks of each benchmark in each mode, as configured, and for those of all benchmarks last.

    Its remark explains its interval and its stars, and tells if the tasks are too few for any star.
    """
    order = list(configuration.benchmarks)
    parts = compared.partition_by("over", "mode", as_dict=True, include_key=False)
    ordered = sorted(
        parts.items(), key=lambda of: (order.index(of[0][0]) if of[0][0] in order else len(order), of[0][1])
    )
    return [
        {
            "benchmark": GROUP,
            "measure": with_mode(f"{over}, mean over its tasks" if over in order else f"{over}, mean over tasks", mode),
            "remark": _remark(part),
            "sure": sure(part, models),
            "packed": packed(part, models),
        }
        for (over, mode), part in ordered
    ]


def _remark(part: pl.DataFrame) -> str:
    """The number of tasks; and that there can be no star if the smallest possible p-value, by Holm, is too large."""
    [(fewest, most)] = part.select(pl.min("tasks").alias("fewest"), pl.max("tasks").alias("most")).rows()
    least = (part["least_p_value"] * part["least_p_value"].rank("max")).min()
    tasks = f"{most} tasks" if fewest == most else f"{fewest} to {most} tasks"
    has_none = least >= LEVEL  # type: ignore[operator]
    return REMARK.format(tasks=tasks) + (NO_STAR.format(pairs=len(part)) if has_none else "")


def _places(comparisons: pl.DataFrame, models: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each pair is in the table in the reverse order of its models, and its place among all pairs."""
    places = dict(zip(models, range(len(models)), strict=True))
    row, column = (comparisons[name].replace_strict(places).to_numpy() for name in ("model", "other"))
    first, second = np.minimum(row, column), np.maximum(row, column)
    return row > column, first * len(models) - first * (first + 1) // 2 + second - first - 1


def sure(comparisons: pl.DataFrame, models: Sequence[str]) -> str:
    """A bit for every pair, in the same order: whether it differs by the adjusted p-value, the lowest bit first."""
    _, pairs = _places(comparisons, models)
    bits = np.zeros(len(models) * (len(models) - 1) // 2, dtype=bool)
    bits[pairs] = comparisons["p_adjusted"].to_numpy() < LEVEL
    return b64encode(np.packbits(bits, bitorder="little").tobytes()).decode()


def packed(comparisons: pl.DataFrame, models: Sequence[str], further: Sequence[str] = ()) -> str:
    """Difference, low and high of every pair, one after the other, 16 bits each, the lower byte first.

    `further` names the ends of a second interval, which follow. They are rounded to tenths, as they are shown; a
    hundredth keeps the sign of one that rounds to zero.
    """
    names = [*VALUES, *further]
    value, *ends = comparisons.select(names).to_numpy().T
    is_turned, pairs = _places(comparisons, models)
    intervals = list(zip(ends[::2], ends[1::2], strict=True))
    turned = [-value, *(-end for low, high in intervals for end in (high, low))]
    rows = np.where(is_turned, turned, [value, *ends]).T
    packed = np.full((len(models) * (len(models) - 1) // 2, len(names)), NONE, dtype="<i2")
    rounded = np.round(HUNDREDTHS * np.round(rows, 1)).clip(NONE + 1, -NONE - 1)
    packed[pairs] = np.where(rounded == 0, np.sign(rows), rounded)
    return b64encode(packed.tobytes()).decode()
