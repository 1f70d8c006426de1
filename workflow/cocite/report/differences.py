"""How any two models differ on each metric of each task, packed for the page, which shows one matrix at a time.

Fifty models on six benchmarks have more than 100,000 differences. As 16-bit numbers in base64, with the ends of their
intervals, these are some hundred kilobytes a benchmark; as rows of tables they would be thousands of pages.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cocite.config.runs import names_in_order, numbers_of_seeds
from cocite.report.labels import measure

HUNDREDTHS = 100
NONE = np.iinfo(np.int16).min
"""Stands for a pair of models that were not compared."""
VALUES = ("difference", "low", "high")
WIDE = ("wide_low", "wide_high")
"""The ends of the interval that counts training seeds."""
LEVEL = 0.05
"""Below which an adjusted p-value makes a difference sure."""


def differences(comparisons: pl.DataFrame, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The models that were compared, their numbers of seeds, and each question: name, items and packed differences.

    A difference is the value of the earlier model minus that of the later one, in hundredths; pairs come in the order
    of `itertools.combinations`. Questions come as the benchmarks are configured, each in the order of its tasks' names.
    """
    compared = set(comparisons["model"]) | set(comparisons["other"])
    models = [name for name in names_in_order(configuration) if name in compared]
    keys = ["benchmark", "task", "metric", "mode"]
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
            comparisons.partition_by(keys, as_dict=True, include_key=False).items(),
            key=lambda item: (list(configuration["benchmarks"]).index(item[0][0]), *item[0][1:]),
        )
    ]
    seeds = numbers_of_seeds(configuration)
    return {"models": models, "seeds": [seeds[name] for name in models], "questions": questions}


def difference_of(comparisons: pl.DataFrame, model: str, other: str) -> tuple[float, float, float] | None:
    """The value of a model minus that of another on one question, with its interval; none where they have none."""
    for first, second, sign in ((model, other, 1), (other, model, -1)):
        found = comparisons.filter(model=first, other=second)
        if len(found):
            value, low, high = (sign * found[name][0] for name in VALUES)
            return value, min(low, high), max(low, high)
    return None


def _places(comparisons: pl.DataFrame, models: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each pair stands in the table in the other order of its models, and its place among all pairs."""
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

    `further` names the ends of a second interval, which follow. They are rounded to tenths, as they are shown; where
    one rounds to zero, a hundredth keeps the sign.
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
