"""Whether models differ: from the outcomes of all models on a benchmark to the table comparisons.

On each task, any two models are compared on the queries or test documents that every model was scored on, by a paired
bootstrap (Berg-Kirkpatrick, Burkett & Klein, 2012, "An Empirical Investigation of Statistical Significance in NLP"): it
draws these items with replacement and scores every model on the same draw. A model's value is the mean over its
training and evaluation seeds. The bootstrap varies the items, so a p-value speaks about other papers, not about other
seeds. A second interval has both as sources of chance, and a second p-value is adjusted for the number of pairs (see
`significance`). There, the variance over items of a mean is the usual one, with n − 1; that of F1, τ and B³ is the
bootstrap's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, combinations
from operator import and_
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.tasks import POSITIVE
from cocite.core.options import Output, Seed
from cocite.core.randomness import generator
from cocite.core.tables.files import scan_table
from cocite.evaluation.asked import RankAlone, RunNames, Suites, files_of_runs, tasks_of_suites
from cocite.evaluation.benchmark import write_rows
from cocite.evaluation.metrics import (
    Counts,
    Statistic,
    Values,
    b3_statistic,
    f1_statistic,
    mean_statistic,
    tau_statistic,
)
from cocite.evaluation.significance import (
    Part,
    between_seeds,
    error_of,
    holm,
    interval_of,
    p_value_of,
    smallest_difference,
)

RUN = ("model", "seed", "evaluation_seed")
QUESTION = ("benchmark", "task", "metric", "mode")
DRAWS_AT_ONCE = 64
TAU, F1, B3 = "kendall_tau", ("f1", "f1_macro"), "b3_"
"""The metrics that are no mean of a value for each item, and how the names of the last begin."""
Runs = dict[str, dict[int, list[Statistic]]]
"""The metric of each run as a function of how often each item counts, by model and training seed."""
Effects = dict[str, Values]
"""How far each item moves the mean of a model, averaged over its runs; empty where the metric is no mean."""


class Difference(NamedTuple):
    """How one model differs from another, × 100."""

    value: float
    low: float
    high: float
    """The 95% interval."""
    p_value: float
    """Two-sided, of no difference."""


def compare_models(
    outcomes: Annotated[Path, typer.Argument(help="Folder of the outcomes of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    runs: RunNames,
    rank_alone: RankAlone = "",
    resamples: Annotated[int, typer.Option(help="Bootstrap samples of the queries or documents of a task.")],
    seed: Seed,
    output: Output,
) -> None:
    """Test whether models differ: a paired bootstrap between any two of them on each task."""
    rows = []
    for question, table in _by_question(files_of_runs(outcomes, tasks_of_suites(suites), runs, rank_alone)):
        items, statistics, effects = _runs(table, question[QUESTION.index("metric")])
        if items:
            drawn_items = draws(items, resamples, seed, *question)
            rows += [(*question, *row) for row in _pairs(items, statistics, effects, drawn_items)]
    write_rows(output, "comparisons", rows)


def _pairs(items: int, runs: Runs, effects: Effects, drawn_items: Iterable[Counts]) -> list[tuple[Any, ...]]:
    """How any two models differ on one question, a row a pair."""
    statistics = {model: list(chain.from_iterable(of_seeds.values())) for model, of_seeds in runs.items()}
    whole = _values(statistics, [np.ones((1, items))])
    drawn = _values(statistics, drawn_items)
    seeds = {model: between_seeds(_by_seed(of_seeds, items)) for model, of_seeds in runs.items()}
    pairs = list(combinations(sorted(runs), 2))
    differences = [
        difference(float(whole[model][0] - whole[other][0]), drawn[model] - drawn[other]) for model, other in pairs
    ]
    of_pairs = [
        of_mean(effects[model] - effects[other]) if effects else of_items(drawn[model] - drawn[other], items)
        for model, other in pairs
    ]
    errors = [
        error_of([part, *seeds[model], *seeds[other]]) for part, (model, other) in zip(of_pairs, pairs, strict=True)
    ]
    tests = list(zip(differences, errors, strict=True))
    adjusted = holm([p_value_of(found.value, error) for found, error in tests]).tolist()
    return [
        (*pair, items, *found, *interval_of(found.value, error), p_value, smallest_difference(error, len(pairs)))
        for pair, (found, error), p_value in zip(pairs, tests, adjusted, strict=True)
    ]


def of_items(drawn: Values, items: int) -> Part:
    """The part of a difference's variance that comes from the items, by its values on the draws."""
    return Part(float(np.var(drawn, ddof=1)), max(1, items - 1))


def of_mean(effects: Values) -> Part:
    """The part of a difference of means that comes from the items, by how far each of them moves it."""
    items = len(effects)
    return Part(float((effects**2).sum()) * items / max(1, items - 1), max(1, items - 1))


def _by_seed(of_seeds: Mapping[int, Sequence[Statistic]], items: int) -> list[float]:
    """The value of a model with each training seed, averaged over its evaluation seeds."""
    all_items = np.ones((1, items))
    return [float(np.mean([statistic(all_items)[0] for statistic in of_seed])) for of_seed in of_seeds.values()]


def _values(runs: Mapping[str, Sequence[Statistic]], draws: Iterable[Counts]) -> dict[str, Values]:
    """The value of each model on some draws, its runs averaged."""
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


def difference(value: float, drawn: Values) -> Difference:
    """A difference with the interval and the p-value that its values on the draws give."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    tail = 1 + min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return Difference(value, float(low), float(high), min(1.0, 2 * tail / (len(drawn) + 1)))


def _by_question(outcomes: Sequence[Path]) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """The outcomes of all models, one benchmark, task, metric and mode at a time."""
    table = scan_table(outcomes, "outcomes")
    asked = {
        tuple(row.values())
        for batch in table.to_batches(columns=list(QUESTION))
        for row in pa.Table.from_batches([batch]).group_by(list(QUESTION)).aggregate([]).to_pylist()
    }
    for question in sorted(asked):
        yield question, table.to_table(filter=_are(dict(zip(QUESTION, question, strict=True))))


def _runs(table: pa.Table, metric: str) -> tuple[int, Runs, Effects]:
    """How many items all runs have, the metric of each run of a model as a function of their counts, and effects."""
    runs = table.group_by(list(RUN)).aggregate([]).sort_by([(name, "ascending") for name in RUN]).to_pylist()
    counted = table.group_by("item").aggregate([("item", "count")])
    items = counted.filter(pc.field("item_count") == len(runs))["item"]
    statistics: Runs = {}
    effects: dict[str, list[Values]] = {}
    for run in runs:
        rows = table.filter(_are(run) & pc.field("item").isin(items)).sort_by("item").to_pylist()
        statistics.setdefault(run["model"], {}).setdefault(run["seed"], []).append(_statistic(metric, rows))
        if _is_mean(metric) and rows:
            effects.setdefault(run["model"], []).append(_effects(rows))
    return len(items), statistics, {model: np.mean(of_model, axis=0) for model, of_model in effects.items()}


def _are(values: Mapping[str, Any]) -> pc.Expression:
    """That columns have these values."""
    return reduce(and_, (pc.field(name) == value for name, value in values.items()))


def _is_mean(metric: str) -> bool:
    """Whether a metric is a mean of a value that each item has."""
    return metric != TAU and metric not in F1 and not metric.startswith(B3)


def _effects(rows: Sequence[Mapping[str, Any]]) -> Values:
    """How far each item moves a weighted mean, to first order: w (v − mean) / Σ w."""
    values, weights = (np.array([row[name] for row in rows], dtype=float) for name in ("value", "weight"))
    effects: Values = weights * (values - np.average(values, weights=weights)) / weights.sum()
    return effects


def _statistic(metric: str, rows: Sequence[Mapping[str, Any]]) -> Statistic:
    """The metric of one run, from its outcomes in the order of the items."""
    expected, predicted, values, weights = (
        [row[name] for row in rows] for name in ("expected", "predicted", "value", "weight")
    )
    if metric == TAU:
        return tau_statistic(*(np.array([float(number) for [number] in side]) for side in (expected, predicted)))
    if metric in F1:
        return f1_statistic(expected, predicted, POSITIVE if metric == "f1" else None)
    if metric.startswith(B3):
        return b3_statistic(expected, predicted, metric)
    return mean_statistic(np.array(values, dtype=float), np.array(weights, dtype=float))
