"""Whether models differ: from the outcomes of all models on a benchmark to the table comparisons.

On each task, any two models are compared on the queries or test documents that every model was scored on, by a paired
bootstrap (Berg-Kirkpatrick, Burkett & Klein, 2012, "An Empirical Investigation of Statistical Significance in NLP"): it
draws these items with replacement and scores every model on the same draw. A model's value is the mean over its
training and evaluation seeds. The bootstrap varies the items, so a p-value speaks about other papers, not about other
seeds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import and_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cocite.config.tasks import POSITIVE
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
from cocite.ground.randomness import generator
from cocite.tables.files import scan_table

RUN = ("model", "seed", "evaluation_seed")
QUESTION = ("benchmark", "task", "metric", "mode")
DRAWS_AT_ONCE = 64


class Difference(NamedTuple):
    """How one model differs from another, × 100."""

    value: float
    low: float
    high: float
    """The 95% interval."""
    p_value: float
    """Two-sided, of no difference."""


def compare_models(outcomes: Sequence[Path], *, resamples: int, seed: int, output: Path) -> None:
    """Write the table comparisons of all pairs of models in these outcomes."""
    rows = []
    for question, table in _by_question(outcomes):
        items, runs = _runs(table, question[QUESTION.index("metric")])
        if items:
            whole = _values(runs, [np.ones((1, items))])
            drawn = _values(runs, draws(items, resamples, seed, *question))
            for model, other in combinations(sorted(runs), 2):
                found = difference(float(whole[model][0] - whole[other][0]), drawn[model] - drawn[other])
                rows.append((*question, model, other, items, *found))
    write_rows(output, "comparisons", rows)


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


def _runs(table: pa.Table, metric: str) -> tuple[int, dict[str, list[Statistic]]]:
    """How many items all runs have, and the metric of each run of a model as a function of these items' counts."""
    runs = table.group_by(list(RUN)).aggregate([]).sort_by([(name, "ascending") for name in RUN]).to_pylist()
    counted = table.group_by("item").aggregate([("item", "count")])
    items = counted.filter(pc.field("item_count") == len(runs))["item"]
    statistics: dict[str, list[Statistic]] = {}
    for run in runs:
        rows = table.filter(_are(run) & pc.field("item").isin(items)).sort_by("item").to_pylist()
        statistics.setdefault(run["model"], []).append(_statistic(metric, rows))
    return len(items), statistics


def _are(values: Mapping[str, Any]) -> pc.Expression:
    """That columns have these values."""
    return reduce(and_, (pc.field(name) == value for name, value in values.items()))


def _statistic(metric: str, rows: Sequence[Mapping[str, Any]]) -> Statistic:
    """The metric of one run, from its outcomes in the order of the items."""
    expected, predicted, values, weights = (
        [row[name] for row in rows] for name in ("expected", "predicted", "value", "weight")
    )
    if metric == "kendall_tau":
        return tau_statistic(*(np.array([float(number) for [number] in side]) for side in (expected, predicted)))
    if metric in ("f1", "f1_macro"):
        return f1_statistic(expected, predicted, POSITIVE if metric == "f1" else None)
    if metric.startswith("b3_"):
        return b3_statistic(expected, predicted, metric)
    return mean_statistic(np.array(values, dtype=float), np.array(weights, dtype=float))
