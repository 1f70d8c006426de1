"""Whether models differ: from the outcomes of all models on a benchmark to the table comparisons.

On each task, any two models are compared on the queries or test documents that every model was scored on, by a paired
bootstrap (Berg-Kirkpatrick, Burkett & Klein, 2012, "An Empirical Investigation of Statistical Significance in NLP"): it
draws these items with replacement and scores every model on the same draw. A model's value is the mean over its
training and evaluation seeds. The bootstrap varies the items, so a p-value speaks about other papers, not about other
seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import and_
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How one model differs from another, × 100."""

    value: float
    low: float
    high: float
    """The 95% interval."""
    p_value: float
    """Two-sided, of no difference."""


@dataclass(frozen=True)
class Compared:
    """The runs of every model on one task."""

    items: int
    """How many queries or documents every model was scored on."""
    runs: Mapping[str, Sequence[Statistic]]
    """The metric of each run of a model, as a function of the counts of the items."""

    def values(self, counts: Counts) -> dict[str, Values]:
        """The value of each model on some draws, its runs averaged."""
        return {
            model: np.mean([statistic(counts) for statistic in statistics], axis=0)
            for model, statistics in self.runs.items()
        }


def compare_models(outcomes: Sequence[Path], *, resamples: int, seed: int, output: Path) -> None:
    """Write the table comparisons of all pairs of models in these outcomes."""
    rows = []
    for question, table in _by_question(outcomes):
        compared = _compared(table, question[QUESTION.index("metric")])
        if compared.items:
            rows += [(*question, *row) for row in _compare(compared, resamples, seed, question)]
    write_rows(output, "comparisons", rows)


def _compare(
    compared: Compared, resamples: int, seed: int, question: tuple[str, ...]
) -> Iterator[tuple[str, str, int, float, float, float, float]]:
    """The rows of a question: models, number of items, difference, its interval and p-value."""
    whole = compared.values(np.ones((1, compared.items)))
    blocks = [compared.values(counts) for counts in draws(compared.items, resamples, seed, *question)]
    drawn = {model: np.concatenate([block[model] for block in blocks]) for model in compared.runs}
    for model, other in combinations(sorted(compared.runs), 2):
        found = difference(float(whole[model][0] - whole[other][0]), drawn[model] - drawn[other])
        yield model, other, compared.items, found.value, found.low, found.high, found.p_value


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
    return Difference(value=value, low=float(low), high=float(high), p_value=min(1.0, 2 * tail / (len(drawn) + 1)))


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


def _compared(table: pa.Table, metric: str) -> Compared:
    """The runs of each model, over the items that all runs have."""
    runs = table.group_by(list(RUN)).aggregate([]).sort_by([(name, "ascending") for name in RUN]).to_pylist()
    counted = table.group_by("item").aggregate([("item", "count")])
    items = counted.filter(pc.field("item_count") == len(runs))["item"]
    statistics: dict[str, list[Statistic]] = {}
    for run in runs:
        rows = table.filter(_are(run) & pc.field("item").isin(items)).sort_by("item").to_pylist()
        statistics.setdefault(run["model"], []).append(_statistic(metric, rows))
    return Compared(len(items), statistics)


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
