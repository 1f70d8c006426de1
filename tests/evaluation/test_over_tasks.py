"""Which of two models is better over tasks: by hand, against all signs that tasks could have, and by simulation."""

import time
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, ttest_1samp

from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.over_tasks import compare_over_tasks, over_tasks, pair_tests

MODELS, TASKS = 4, 12


def comparison(task, difference, *, benchmark="b", metric="map", mode="both", model="a", other="b"):
    keys = {"benchmark": benchmark, "task": task, "metric": metric, "mode": mode, "model": model, "other": other}
    numbers = ("low", "high", "p_value", "wide_low", "wide_high", "p_adjusted", "detectable")
    return {**keys, "items": 40, "difference": difference, **dict.fromkeys(numbers, 0.5)}


def compared(folder, *benchmarks):
    """The table that follows from the comparisons of some benchmarks, by what it is over, mode and pair."""
    paths, output = [folder / f"{number}.parquet" for number in range(len(benchmarks))], folder / "over.parquet"
    for path, rows in zip(paths, benchmarks, strict=True):
        ordered = sorted(rows, key=lambda row: [row[key] for key in TABLES["comparisons"].key])
        write_table(path, "comparisons", pa.Table.from_pylist(ordered))
    compare_over_tasks(paths, output=output)
    rows = read_table(output, "task_comparisons").to_pylist()
    return {(row["over"], row["mode"], row["model"], row["other"]): row for row in rows}


def by_all_signs(values):
    """The share of all ways to give the differences signs that have rank sums as far apart, or farther."""
    sizes = np.abs([value for value in values if value])
    sums = np.zeros(1)
    for rank in rankdata(sizes):
        sums = np.concatenate([sums + rank, sums - rank])
    found = np.dot(np.sign([value for value in values if value]), rankdata(sizes))
    return np.mean(np.abs(sums) >= abs(found))


@given(st.lists(st.integers(-9, 9) | st.integers(-60, 60), min_size=2, max_size=12))
def test_the_p_value_is_the_share_of_signs_that_are_as_one_sided(values):
    found = over_tasks(values)
    assert found.p_value == pytest.approx(by_all_signs(values))
    assert found.p_value >= found.least_p_value == min(1, 2.0 ** (1 - np.count_nonzero(values)))


def test_many_tasks_with_differences_of_equal_sizes_have_the_exact_p_value_at_once():
    draw = np.random.default_rng(3)
    values = np.round(draw.normal(0.4, 1, 20), 1).tolist()
    assert len({abs(value) for value in values}) < 18
    assert over_tasks(values).p_value == pytest.approx(by_all_signs(values), rel=1e-9)
    start = time.process_time()
    for _ in range(300):
        over_tasks(draw.integers(-3, 4, 13))
    over_tasks(draw.integers(-30, 30, 300))
    assert time.process_time() - start < 10  # a sum over all signs of 13 tasks takes half a second each


def test_the_mean_has_students_interval_and_the_smallest_p_value_if_one_is_better_on_each_task():
    found = over_tasks([1.0, -2.0, 4.0, 3.5, 0.5])
    assert (found.tasks, found.better, found.worse, found.value) == (5, 4, 1, pytest.approx(1.4))
    interval = ttest_1samp([1.0, -2.0, 4.0, 3.5, 0.5], 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx(tuple(interval))
    better = over_tasks([1.0, 2.0, 3.0, 0.5, 0.25, 4.0])
    assert better.p_value == better.least_p_value == 1 / 32
    alike = over_tasks([0.0, 0.0, 0.0])
    assert (alike.value, alike.low, alike.high, alike.p_value, alike.least_p_value) == (0, 0, 0, 1, 1)


def test_each_task_counts_once_by_its_first_metric_and_one_task_or_benchmark_is_too_few(tmp_path):
    tasks = {"scidocs_cite": 3.0, "scidocs_cocite": 1.0, "scidocs_view": -2.0}
    rows = [comparison(task, value) for task, value in tasks.items()]
    rows += [comparison(task, 90.0, metric="ndcg") for task in tasks]
    [row] = compared(tmp_path, rows, []).values()  # nothing over all benchmarks
    assert (row["over"], row["mode"], row["tasks"], row["better"], row["worse"]) == ("b", "both", 3, 2, 1)
    assert row["difference"] == pytest.approx(2 / 3)
    assert compared(tmp_path, [comparison("cite", 1.0)]) == {}


def test_a_ranking_counts_in_either_mode_a_classification_in_its_own_and_each_model_on_its_tasks(tmp_path):
    ranked = {"relish": 1.0, "search": 2.0}
    rows = [comparison(task, ranked[task], metric="ndcg", other=other) for task in ranked for other in ("b", "bm25")]
    rows += [comparison("drsm", 6.0, metric="f1_macro", mode="compat")]
    rows += [comparison("drsm", 0.0, metric="f1_macro", mode="correct")]
    found = compared(tmp_path, rows)
    assert {key[1:]: (row["tasks"], row["difference"]) for key, row in found.items()} == {
        ("compat", "a", "b"): (3, pytest.approx(3)),
        ("correct", "a", "b"): (3, pytest.approx(1)),
        ("compat", "a", "bm25"): (2, pytest.approx(1.5)),
        ("correct", "a", "bm25"): (2, pytest.approx(1.5)),
    }


def test_over_all_benchmarks_a_task_that_two_of_them_have_counts_once(tmp_path):
    first = [comparison("scidocs_cite", 1.0), comparison("scidocs_view", 2.0)]
    second = [comparison("scidocs_cite", 50.0, benchmark="c"), comparison("cite", 6.0, benchmark="c")]
    found = compared(tmp_path, first, second)
    assert found["all benchmarks", "both", "a", "b"]["tasks"] == 3
    assert found["all benchmarks", "both", "a", "b"]["difference"] == pytest.approx(3)
    assert found["c", "both", "a", "b"]["difference"] == pytest.approx(28)


def test_a_task_that_repeats_the_queries_of_others_counts_only_where_it_is_alone(tmp_path):
    facets = [comparison(f"csfcube_{facet}", value) for facet, value in (("background", 1.0), ("method", 2.0))]
    whole = comparison("csfcube_all", 60.0)
    other = [comparison("cite", 6.0, benchmark="c")]
    found = compared(tmp_path, [*facets, whole], other, [whole | {"benchmark": "d"}])
    assert {over: (row["tasks"], row["difference"]) for (over, *_), row in found.items()} == {
        "b": (2, pytest.approx(1.5)),
        "all benchmarks": (3, pytest.approx(3)),
    }
    alone = compared(tmp_path, [whole], other)
    assert alone["all benchmarks", "both", "a", "b"]["tasks"] == 2


def test_p_values_are_raised_for_the_pairs_over_the_same_tasks_that_can_show_anything():
    # Eight tasks give 1/128 at best; b and c, which differ on none, cannot come so low and raise no other.
    families = {("a", "b"): [1.0] * 8, ("a", "c"): [1.0] * 8, ("b", "c"): [0.0] * 8}
    adjusted = {pair: p_adjusted for pair, _, p_adjusted in pair_tests(families)}
    assert adjusted == {("a", "b"): pytest.approx(2 / 128), ("a", "c"): pytest.approx(2 / 128), ("b", "c"): 1}
    few = {(f"x{number}", f"y{number}"): [1.0, 2.0, 3.0] for number in range(50)}
    adjusted = {pair: p_adjusted for pair, _, p_adjusted in pair_tests(few | {("a", "b"): [1.0] * 8})}
    assert adjusted.pop(("a", "b")) == 1 / 128
    assert set(adjusted.values()) == {1}  # 50 times 1/4


def share_with_a_difference(families: int, better: float = 0.0) -> float:
    """The share of simulated tables in which any two of four models differ; one may be better than all others.

    A value is what its task is worth to all models, and chance, which is twenty times as large on some tasks as on
    others. No two models differ but by chance.
    """
    draw = np.random.default_rng(11)
    any_found = 0
    for _ in range(families):
        spread = draw.uniform(0.2, 4.0, TASKS)
        values = draw.normal(50, 15, TASKS) + draw.normal(0, spread, (MODELS, TASKS))
        values[0] += better
        pairs = combinations(range(MODELS), 2)
        differences = {(str(one), str(other)): (values[one] - values[other]).tolist() for one, other in pairs}
        any_found += any(p_adjusted < 0.05 for *_, p_adjusted in pair_tests(differences))
    return any_found / families


def test_without_a_difference_one_family_in_twenty_shows_one_and_a_large_one_is_found():
    assert share_with_a_difference(250) < 0.09  # 0.05 and three standard errors
    assert share_with_a_difference(50, better=6.0) > 0.9


@pytest.mark.long
def test_of_ten_thousand_families_without_a_difference_one_in_twenty_shows_any():
    assert 0.02 < share_with_a_difference(10_000) <= 0.05
