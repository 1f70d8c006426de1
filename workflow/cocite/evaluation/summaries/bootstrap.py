"""The metrics of a task as functions of how often each of its queries or documents counts.

A paired bootstrap (Berg-Kirkpatrick, Burkett & Klein, 2012, "An Empirical Investigation of Statistical Significance in
NLP") draws the items of a task with replacement and scores every model on the same draw. A draw is a row of counts, so
that many draws are one product of matrices.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocite.ground.randomness import generator

Counts = NDArray[np.float64]
"""draws × items: how often each item counts."""
Values = NDArray[np.float64]
Statistic = Callable[[Counts], Values]
"""The value × 100 of a model on each draw."""

DRAWS_AT_ONCE = 64
DOCUMENTS_AT_ONCE = 512


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How one model differs from another, × 100."""

    value: float
    low: float
    high: float
    """The 95% interval."""
    p_value: float
    """Two-sided, of no difference."""


def draws(items: int, resamples: int, seed: int, *names: str) -> Iterator[Counts]:
    """Counts of some draws at a time, `resamples` in all."""
    draw = generator(seed, "bootstrap", *names)
    for start in range(0, resamples, DRAWS_AT_ONCE):
        size = min(DRAWS_AT_ONCE, resamples - start)
        yield draw.multinomial(items, np.full(items, 1 / items), size=size).astype(np.float64)


def difference(value: float, drawn: Values) -> Difference:
    """What a difference and its values on the draws tell."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    tail = 1 + min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return Difference(value=value, low=float(low), high=float(high), p_value=min(1.0, 2 * tail / (len(drawn) + 1)))


def mean_statistic(values: Values, weights: Values) -> Statistic:
    """The weighted mean of a value for each item."""
    return lambda counts: (counts @ (weights * values)) / (counts @ weights)


def f1_statistic(
    expected: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], positive: str | None = None
) -> Statistic:
    """F1 of one class, or the mean over the classes that a draw has or that are predicted in it."""
    names = sorted({name for labels in (*expected, *predicted) for name in labels}) if positive is None else [positive]
    truth, found = _indicators(expected, names), _indicators(predicted, names)
    hits, sizes = truth * found, truth + found

    def statistic(counts: Counts) -> Values:
        size = counts @ sizes
        f1 = 2 * (counts @ hits) / np.maximum(size, 1)
        present = np.maximum((size > 0).sum(axis=1), 1)
        value: Values = 100 * f1.sum(axis=1) / present
        return value

    return statistic


def b3_statistic(expected: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], metric: str) -> Statistic:
    """B³ of signatures, each with its author and its cluster: b3_precision, b3_recall, or b3_f1, that of the two.

    A draw tells how often each signature counts; who is in its cluster stays as it is.
    """
    authors, clusters = (_numbers(names) for names in (expected, predicted))
    _, pair, shared = np.unique(np.stack([authors, clusters]), axis=1, return_inverse=True, return_counts=True)
    both = 100 * shared[pair.ravel()]
    ones = np.ones(len(expected))
    precision = mean_statistic(both / np.bincount(clusters)[clusters], ones)
    recall = mean_statistic(both / np.bincount(authors)[authors], ones)

    def harmonic(counts: Counts) -> Values:
        found, covered = precision(counts), recall(counts)
        return 2 * found * covered / (found + covered)

    return {"b3_precision": precision, "b3_recall": recall, "b3_f1": harmonic}[metric]


def tau_statistic(expected: Values, predicted: Values) -> Statistic:
    """Kendall's τ-b, linear in the counts around its value on all items.

    τ is a mean over pairs of items, so to first order a draw changes it by twice the change of the mean over items of
    each one's agreement with all others (Hoeffding, 1948, "A Class of Statistics with Asymptotically Normal
    Distribution"); the number of ties is taken as it is.
    """
    agreement, pairs = np.zeros(len(expected)), np.zeros(2)
    for start in range(0, len(expected), DOCUMENTS_AT_ONCE):
        rows = slice(start, start + DOCUMENTS_AT_ONCE)
        of_expected, of_predicted = (np.sign(side[rows, None] - side[None, :]) for side in (expected, predicted))
        agreement[rows] = (of_expected * of_predicted).sum(axis=1)
        pairs += [np.count_nonzero(of_expected), np.count_nonzero(of_predicted)]
    untied = np.sqrt(pairs.prod())
    tau = agreement.sum() / untied if untied else 0.0
    each = 100 * (2 * agreement * len(expected) / untied - tau) if untied else np.zeros(len(expected))
    return mean_statistic(each, np.ones(len(expected)))


def _numbers(names: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """A number for each distinct name, of items with one name each."""
    numbers: NDArray[np.int64] = np.unique([name for [name] in names], return_inverse=True)[1]
    return numbers


def _indicators(labels: Sequence[Sequence[str]], names: list[str]) -> NDArray[np.float64]:
    """1 where a document (row) has a class (column)."""
    column = {name: number for number, name in enumerate(names)}
    indicators = np.zeros((len(labels), len(names)))
    for row, of_document in enumerate(labels):
        indicators[row, [column[name] for name in of_document if name in column]] = 1
    return indicators
