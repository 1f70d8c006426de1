"""Whether models differ: from the outcomes of all models on a benchmark to the table comparisons.

On each task, any two models are compared on the items, queries or test documents, that all were scored on, by a paired
bootstrap (Berg-Kirkpatrick, Burkett & Klein, 2012); a model's value is the mean over its training and evaluation seeds.
In a second interval and p-value, the variance between training seeds over their number is added to that over items.
Holm's procedure raises these, so that one family of pairs in twenty shows any difference at 5% where nothing differs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, combinations
from math import sqrt
from operator import and_
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from scipy.special import ndtri, stdtr, stdtrit

from cocite.config.tasks import POSITIVE
from cocite.core.options import Output, Seed
from cocite.core.randomness import generator
from cocite.core.tables.files import scan_table
from cocite.evaluation import metrics
from cocite.evaluation.benchmark import Suites, files_of_runs, write_rows
from cocite.evaluation.metrics import Counts, Statistic, Values, on_all

RUN = ("model", "seed", "evaluation_seed")
QUESTION = ("benchmark", "task", "metric", "mode")
DRAWS_AT_ONCE = 64
TAU, F1, B3 = "kendall_tau", ("f1", "f1_macro"), "b3_"
"""The metrics that are no mean of a value for each item, and how the names of the last begin."""
ALPHA = 0.05
POWER = 0.8
"""How often the smallest difference is found."""
Runs = dict[str, dict[int, list[Statistic]]]
"""The metric of each run as a function of how often each item counts, by model and training seed."""
Effects = dict[str, Values]
"""How far each item moves the mean of a model, averaged over its runs; empty if the metric is not a mean."""


class Difference(NamedTuple):
    """How one model differs from another, × 100."""

    value: float
    low: float
    high: float
    """The 95% interval."""
    p_value: float
    """Two-sided, of no difference."""


class Error(NamedTuple):
    """The variance of a difference, or a part of it, with the degrees of freedom of its estimate."""

    variance: float
    freedom: float


def compare_models(
    outcomes: Annotated[Path, typer.Argument(help="Folder of the outcomes of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    resamples: Annotated[int, typer.Option(help="Bootstrap samples of the queries or documents of a task.")],
    seed: Seed,
    output: Output,
) -> None:
    """Test whether models differ: a paired bootstrap between any two of them on each task."""
    table = scan_table(files_of_runs(outcomes, suites), "outcomes")
    asked = set[tuple[str, ...]]()
    for batch in table.to_batches(columns=list(QUESTION)):
        distinct = pa.Table.from_batches([batch]).group_by(list(QUESTION)).aggregate([])
        asked.update(tuple(row.values()) for row in distinct.to_pylist())
    rows = []
    for question in sorted(asked):
        of_question = dict(zip(QUESTION, question, strict=True))
        items, statistics, effects = _runs(table.to_table(filter=_are(of_question)), of_question["metric"])
        if items > 1:  # one says nothing of how much others differ
            drawn_items = draws(items, resamples, seed, *question)
            rows += [(*question, *row) for row in _pairs(items, statistics, effects, drawn_items)]
    write_rows(output, "comparisons", rows)


def _are(values: Mapping[str, Any]) -> pc.Expression:
    return reduce(and_, (pc.field(name) == value for name, value in values.items()))


def _runs(table: pa.Table, metric: str) -> tuple[int, Runs, Effects]:
    """How many items all runs have, the metric of each run of a model as a function of their counts, and effects."""
    runs = table.group_by(list(RUN)).aggregate([]).sort_by([(name, "ascending") for name in RUN]).to_pylist()
    counted = table.group_by("item").aggregate([("item", "count")])
    items = counted.filter(pc.field("item_count") == len(runs))["item"]
    is_mean = metric != TAU and metric not in F1 and not metric.startswith(B3)
    statistics: Runs = {}
    effects: dict[str, list[Values]] = {}
    for run in runs:
        rows = table.filter(_are(run) & pc.field("item").isin(items)).sort_by("item").to_pylist()
        statistics.setdefault(run["model"], {}).setdefault(run["seed"], []).append(_statistic(metric, rows))
        if is_mean and rows:
            # How far each item moves a weighted mean, to first order: w (v − mean) / Σ w.
            values, weights = (np.array([row[name] for row in rows], dtype=float) for name in ("value", "weight"))
            of_run = weights * (values - np.average(values, weights=weights)) / weights.sum()
            effects.setdefault(run["model"], []).append(of_run)
    return len(items), statistics, {model: np.mean(of_model, axis=0) for model, of_model in effects.items()}


def _statistic(metric: str, rows: Sequence[Mapping[str, Any]]) -> Statistic:
    names = ("expected", "predicted", "value", "weight")
    expected, predicted, values, weights = ([row[name] for row in rows] for name in names)
    if metric == TAU:
        numbers = (np.array([float(number) for [number] in side]) for side in (expected, predicted))
        return metrics.tau_statistic(*numbers)
    if metric in F1:
        return metrics.f1_statistic(expected, predicted, POSITIVE if metric == "f1" else None)
    if metric.startswith(B3):
        return metrics.b3_statistic(expected, predicted, metric)
    return metrics.mean_statistic(np.array(values, dtype=float), np.array(weights, dtype=float))


def _pairs(items: int, runs: Runs, effects: Effects, drawn_items: Iterable[Counts]) -> Iterator[tuple[Any, ...]]:
    statistics = {model: list(chain.from_iterable(of_seeds.values())) for model, of_seeds in runs.items()}
    whole = _values(statistics, [np.ones((1, items))])
    drawn = _values(statistics, drawn_items)
    seeds = {
        model: variance_of_mean([float(np.mean([on_all(each, items) for each in of])) for of in of_seeds.values()])
        for model, of_seeds in runs.items()
    }
    pairs, freedom = list(combinations(sorted(runs), 2)), items - 1
    differences, errors = [], []
    for model, other in pairs:
        apart = drawn[model] - drawn[other]
        differences.append(difference(float(whole[model][0] - whole[other][0]), apart, items))
        # If the metric is a mean, its variance follows from how far each item moves it.
        variance = ((effects[model] - effects[other]) ** 2).sum() if effects else np.var(apart, ddof=1)
        errors.append(error_of([Error(float(variance) * items / freedom, freedom), *seeds[model], *seeds[other]]))
    adjusted = holm([p_value_of(found.value, error) for found, error in zip(differences, errors, strict=True)])
    for pair, found, error, p_value in zip(pairs, differences, errors, adjusted.tolist(), strict=True):
        yield *pair, items, *found, *interval_of(found.value, error), p_value, smallest_difference(error, len(pairs))


def _values(runs: Mapping[str, Sequence[Statistic]], draws: Iterable[Counts]) -> dict[str, Values]:
    blocks = [
        {model: np.mean([statistic(counts) for statistic in statistics], axis=0) for model, statistics in runs.items()}
        for counts in draws
    ]
    return {model: np.concatenate([block[model] for block in blocks]) for model in runs}


def draws(items: int, resamples: int, seed: int, *names: str) -> Iterator[Counts]:
    """Counts of some draws at a time, `resamples` in all."""
    draw = generator(seed, "bootstrap", *names)
    for start in range(0, resamples, DRAWS_AT_ONCE):
        size = min(DRAWS_AT_ONCE, resamples - start)
        yield draw.multinomial(items, np.full(items, 1 / items), size=size).astype(np.float64)


def difference(value: float, drawn: Values, items: int) -> Difference:
    """A difference with the interval and the p-value that its values on the draws of some items give. Of few items, no
    p-value is below the share of all choices of their signs in which all are alike."""
    tail = 1 + min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return Difference(value, *drawn_interval(drawn), min(1.0, max(2 * tail / (len(drawn) + 1), 2.0 ** (1 - items))))


def drawn_interval(drawn: Values) -> tuple[float, float]:
    """The interval that contains 95% of the draws."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def error_of(parts: Sequence[Error]) -> Error:
    """The sum of the parts, with the degrees of freedom by Satterthwaite (1946)."""
    total = sum(part.variance for part in parts)
    if total <= 0:
        return Error(0.0, max(1.0, float(max(part.freedom for part in parts))))
    shares = sum((part.variance / total) ** 2 / part.freedom for part in parts if part.variance > 0)
    return Error(total, 1 / shares)


def variance_of_mean(values: Sequence[float] | Values) -> list[Error]:
    """The variance of a mean over values, such as those of the training seeds of one model; none of one value."""
    return [Error(float(np.var(values, ddof=1)) / len(values), len(values) - 1)] if len(values) > 1 else []


def interval_of(value: float, error: Error) -> tuple[float, float]:
    """The 95% interval of a difference."""
    reach = float(stdtrit(error.freedom, 1 - ALPHA / 2)) * sqrt(error.variance)
    return value - reach, value + reach


def p_value_of(value: float, error: Error) -> float:
    """Two-sided, of no difference; if nothing varies, the share of all choices of signs in which it is as large."""
    if error.variance == 0:
        return 1.0 if value == 0 else 2.0**-error.freedom
    return float(2 * stdtr(error.freedom, -abs(value) / sqrt(error.variance)))


def holm(p_values: Sequence[float], least: Sequence[float] | None = None) -> Values:
    """P-values adjusted for multiple comparisons, in their order (Holm, 1979). `least` is the smallest p-value that
    each test can reach: a p-value is adjusted only for the tests that can reach one as small (Tarone, 1990)."""
    given = np.asarray(p_values, dtype=np.float64)
    reachable = np.zeros_like(given) if least is None else np.asarray(least, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    rivals = [np.count_nonzero(reachable[order[place:]] <= given[first]) for place, first in enumerate(order)]
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(given[order] * np.array(rivals, dtype=np.float64)))
    return adjusted


def smallest_difference(error: Error, pairs: int) -> float:
    """The difference that has an adjusted p-value below 5% with 80% power, among so many pairs of which no other
    differs. The noncentral t distribution is approximated as by Johnson and Welch (1940, "Applications of the
    non-central t-distribution"): normal, with the variance that the estimated error adds."""
    limit = float(stdtrit(error.freedom, 1 - ALPHA / (2 * pairs)))
    reach = limit * (1 - 1 / (4 * error.freedom))
    return float(reach + ndtri(POWER) * np.sqrt(1 + limit**2 / (2 * error.freedom))) * sqrt(error.variance)
