"""Differences with two sources of chance, and many at once: against textbooks, SciPy, and simulation."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from cocite.evaluation.comparisons import (
    Error,
    error_of,
    holm,
    interval_of,
    p_value_of,
    smallest_difference,
    variance_of_mean,
)
from cocite.evaluation.over_tasks import signed_rank_p_value

TABLES, QUERIES, SEEDS = 10_000, 150, 3
MODELS = {"bm25": 1, "one": SEEDS, "two": SEEDS, "three": SEEDS}
"""How many seeds each has."""


def test_holm_raises_p_values_in_the_order_of_their_size():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1, 1]


def test_a_p_value_is_raised_for_the_tests_that_can_give_one_as_small():
    p_values, least = [0.01, 0.25, 0.04, 0.02], [0.01, 0.25, 0.02, 0.02]
    # 0.01 stands alone; 0.02 and 0.04 have each other, not 0.25, which comes last.
    assert holm(p_values, least).tolist() == pytest.approx([0.01, 0.25, 0.04, 0.04])
    assert holm(p_values, [0.0] * 4).tolist() == holm(p_values).tolist()


MORE = [pytest.param(tasks, marks=pytest.mark.long) for tasks in ((5,) * 10, (6, 7, 8, 9, 10))]


@pytest.mark.parametrize("tasks", [(3, 3, 3, 5, 8, 8), *MORE])
def test_of_signs_drawn_at_random_no_more_than_one_family_in_twenty_shows_a_difference(tasks):
    """All signs are equally likely here, and p-values have few values."""
    draw, found = np.random.default_rng(8), 0
    for _ in range(1_000):
        signs = [draw.choice((-1, 1), number) * np.arange(1, number + 1) for number in tasks]
        p_values = [signed_rank_p_value(values) for values in signs]
        found += (holm(p_values, [2.0 ** (1 - number) for number in tasks]) < 0.05).any()
    assert found / 1_000 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1_000)


def test_one_source_of_chance_gives_the_paired_t_test():
    one, other = np.random.default_rng(1).normal([[0.4], [0]], size=(2, 40))
    differences = one - other
    error = error_of([Error(np.var(differences, ddof=1) / 40, 39)])
    expected = ttest_rel(one, other)
    assert p_value_of(differences.mean(), error) == pytest.approx(expected.pvalue)
    assert interval_of(differences.mean(), error) == pytest.approx(expected.confidence_interval())


def test_two_sources_of_chance_give_welchs_t_test():
    one, other = np.random.default_rng(2).normal(size=5), np.random.default_rng(3).normal(0.8, 3, size=8)
    error = error_of([*variance_of_mean(one), *variance_of_mean(other)])
    expected = ttest_ind(one, other, equal_var=False)
    assert p_value_of(one.mean() - other.mean(), error) == pytest.approx(expected.pvalue)
    assert interval_of(one.mean() - other.mean(), error) == pytest.approx(expected.confidence_interval())


def test_one_seed_is_no_source_of_chance_and_what_never_varies_is_no_chance():
    assert variance_of_mean([3.0]) == []
    never = error_of([Error(0.0, 10)])
    least = 2 / 2**11  # of eleven equal differences: all signs, or none, of so many choices
    assert (p_value_of(0.0, never), p_value_of(0.1, never), interval_of(2.0, never)) == (1, least, (2, 2))
    assert smallest_difference(never, 6) == 0


def simulated(better: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Adjusted p-values and smallest differences, tables × pairs; the last model may be better than all others.

    A value is what its query is worth to all, what its model's training seed is worth, and chance of both together.
    """
    draw = np.random.default_rng(5)
    pairs = list(combinations(MODELS, 2))
    adjusted, smallest = (np.empty((TABLES, len(pairs))) for _ in range(2))
    for table in range(TABLES):
        queries = draw.normal(0, 20, QUERIES)
        values = {
            name: queries + draw.normal(0, 0.5, (seeds, 1)) + draw.normal(0, 8, (seeds, QUERIES))
            for name, seeds in MODELS.items()
        }
        values["three"] += better
        seeds = {name: variance_of_mean(of.mean(axis=1).tolist()) for name, of in values.items()}
        means = {name: of.mean(axis=0) for name, of in values.items()}
        p_values, errors = [], []
        for one, other in pairs:
            difference = means[one] - means[other]
            of_queries = Error(float(np.var(difference, ddof=1)) / QUERIES, QUERIES - 1)
            errors.append(error_of([of_queries, *seeds[one], *seeds[other]]))
            p_values.append(p_value_of(float(difference.mean()), errors[-1]))
        adjusted[table] = holm(p_values)
        smallest[table] = [smallest_difference(error, len(pairs)) for error in errors]
    return adjusted, smallest


@pytest.mark.long
def test_of_ten_thousand_tables_without_a_difference_one_in_twenty_shows_any_and_the_smallest_is_found():
    adjusted, smallest = simulated()
    families = float((adjusted < 0.05).any(axis=1).mean())
    pair = list(combinations(MODELS, 2)).index(("two", "three"))
    stated = float(np.mean(smallest[:, pair]))
    found = float((simulated(stated)[0][:, pair] < 0.05).mean())
    assert 0.03 < families < 0.055
    assert 0.78 < found < 0.86
