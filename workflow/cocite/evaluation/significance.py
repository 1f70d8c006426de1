"""Differences as tests with two sources of chance, queries and training seeds, and many of them at once.

The standard error of a difference has a part from the queries, which the bootstrap gives, and one from the training
seeds of the two models: the variance between seeds over their number. With degrees of freedom for their sum
(Satterthwaite, 1946, "An approximate distribution of estimates of variance components"), Student's t gives an interval
and a p-value. Of all pairs of models that a question compares, some come out by chance; Holm's procedure (1979, "A
simple sequentially rejective multiple test procedure") raises their p-values so that, where nothing differs, one family
in twenty shows any difference at 5%.

Over tasks, the test is by signed ranks, whose p-values have few values; a pair that cannot have so small a one does not
raise those of the others (Tarone, 1990, "A Modified Bonferroni Method for Discrete Data").
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from scipy.stats import t as student

ALPHA = 0.05
POWER = 0.8
"""How often the smallest difference is found."""

Values = NDArray[np.float64]


class Part(NamedTuple):
    """A part of the variance of a difference."""

    variance: float
    freedom: int
    """Degrees of freedom of its estimate."""


class Error(NamedTuple):
    """The standard error of a difference."""

    size: float
    freedom: float


def error_of(parts: Sequence[Part]) -> Error:
    """The root of the sum of the parts, with the degrees of freedom by Satterthwaite."""
    total = sum(part.variance for part in parts)
    if total <= 0:
        return Error(0.0, max(1.0, float(max(part.freedom for part in parts))))
    shares = sum((part.variance / total) ** 2 / part.freedom for part in parts if part.variance > 0)
    return Error(float(np.sqrt(total)), 1 / shares)


def between_seeds(values: Sequence[float]) -> list[Part]:
    """The part of the training seeds of one model: the variance of its mean over them; none of one seed."""
    if len(values) < 2:
        return []
    return [Part(float(np.var(values, ddof=1)) / len(values), len(values) - 1)]


def interval_of(value: float, error: Error) -> tuple[float, float]:
    """The 95% interval of a difference."""
    reach = float(student.ppf(1 - ALPHA / 2, error.freedom)) * error.size
    return value - reach, value + reach


def p_value_of(value: float, error: Error) -> float:
    """Of no difference, two-sided; 1 where there is none, and 0 of one that never varies."""
    if error.size == 0:
        return float(value == 0)
    return float(2 * student.sf(abs(value) / error.size, error.freedom))


def signed_rank_p_value(differences: Values) -> float:
    """Of Wilcoxon's signed-rank test (1945), two-sided and exact, also where differences have equal sizes.

    Differences of zero are left out, and equal sizes share the mean of their ranks. Where nothing differs, all 2ⁿ signs
    of the n ranks are equally likely: the probability of each sum of the positive ones is found rank by rank, in O(n³).
    """
    nonzero = differences[differences != 0]
    doubled = np.rint(2 * rankdata(np.abs(nonzero))).astype(np.int64)  # means of ranks are whole or half numbers
    probability = np.zeros(doubled.sum() + 1)
    probability[0] = 1
    for rank in doubled.tolist():
        probability[rank:] += probability[:-rank]
        probability /= 2
    found = int(doubled[nonzero > 0].sum())
    smaller = min(found, len(probability) - 1 - found)
    return min(1.0, float(2 * probability[: smaller + 1].sum()))


def holm(p_values: Sequence[float], least: Sequence[float] | None = None) -> Values:
    """P-values adjusted for being this many, in their order (Holm, 1979).

    `least` holds the smallest p-value that each test can give: a p-value is raised only for the tests that can give one
    as small (Tarone, 1990), so that at no level do tests count that cannot reach it.
    """
    given = np.asarray(p_values, dtype=np.float64)
    reachable = np.zeros_like(given) if least is None else np.asarray(least, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    rivals = [np.count_nonzero(reachable[order[place:]] <= given[first]) for place, first in enumerate(order)]
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(given[order] * np.array(rivals, dtype=np.float64)))
    return adjusted


def smallest_difference(error: Error, pairs: int) -> float:
    """The difference that would be found in four of five repetitions, among so many pairs at once.

    Found means that its adjusted p-value is below 5% also where no other pair differs. The noncentral t distribution is
    taken as Johnson and Welch have it (1940, "Applications of the non-central t-distribution"): normal, with the
    variance that the estimated error adds.
    """
    limit = float(student.ppf(1 - ALPHA / (2 * pairs), error.freedom))
    reach = limit * (1 - 1 / (4 * error.freedom))
    return float(reach + norm.ppf(POWER) * np.sqrt(1 + limit**2 / (2 * error.freedom))) * error.size
