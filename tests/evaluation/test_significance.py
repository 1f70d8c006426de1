"""Differences of models with two sources of chance, and many at once: against the metrics themselves, textbooks, SciPy,
and simulation."""

import json
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kendalltau, norm, ttest_ind, ttest_rel
from scipy.stats import t as student
from sklearn.metrics import f1_score

from cocite.cli import app
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.comparisons import (
    Error,
    difference,
    draws,
    error_of,
    holm,
    interval_of,
    p_value_of,
    smallest_difference,
    variance_of_mean,
)
from cocite.evaluation.metrics import f1_statistic, mean_statistic, tau_statistic
from cocite.evaluation.over_tasks import signed_rank_p_value

ITEMS = 120
TABLES, QUERIES, SEEDS = 10_000, 150, 3
MODELS = {"bm25": 1, "one": SEEDS, "two": SEEDS, "three": SEEDS}
"""How many seeds each has."""


def outcomes(model, values, *, task="relish", metric="ndcg", seed=1, items=None, weight=1.0, **lists):
    """The outcomes of a run: a value for each item, or lists of what is predicted and expected."""
    count = len(values)
    names = ("model", "seed", "benchmark", "task", "metric", "evaluation_seed", "mode")
    columns = {n: [v] * count for n, v in zip(names, (model, seed, "b", task, metric, 1, "both"), strict=True)}
    columns |= {"item": items or [f"{n:03}" for n in range(count)], "value": values}
    columns |= {"weight": np.broadcast_to(weight, count), "predicted": [[]] * count, "expected": [[]] * count, **lists}
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def compare(folder, *tables, seed=1):
    runs = [f"m-{number}" for number in range(len(tables))]
    for run, table in zip(runs, tables, strict=True):
        write_table(folder / f"small/{run}.parquet", "outcomes", table)
    suites = json.dumps({"small": {"tasks": ["relish"], "runs": runs}})
    asked = [f"--suites={suites}", "--resamples=1000", f"--seed={seed}", f"--output={folder / 'comparisons.parquet'}"]
    app(["evaluation", "compare", str(folder), *asked], standalone_mode=False)
    return read_table(folder / "comparisons.parquet", "comparisons").to_pylist()


@pytest.fixture(scope="module")
def counts():
    return np.vstack([np.ones(ITEMS), *draws(ITEMS, 4, 1, "x")])


def test_a_draw_counts_as_many_items_as_there_are():
    blocks = list(draws(ITEMS, 100, 1, "x"))
    assert sum(map(len, blocks)) == 100
    assert {row.sum() for block in blocks for row in block} == {ITEMS}


def test_statistics_on_a_draw_are_those_of_the_drawn_items(counts):
    draw = np.random.default_rng(0)
    truth, found = draw.choice(["1", "2", "3"], (2, ITEMS))
    values, weights = draw.random((2, ITEMS))
    lists = [[[str(name)] for name in side] for side in (truth, found)]
    statistics = f1_statistic(*lists), f1_statistic(*lists, positive="1"), mean_statistic(values, weights)
    for row, of_macro, of_binary, mean in zip(counts, *(of(counts) for of in statistics), strict=True):
        drawn = [np.repeat(side, row.astype(int)) for side in (truth, found, values, weights)]
        assert of_macro == pytest.approx(100 * f1_score(*drawn[:2], average="macro"))
        assert of_binary == pytest.approx(100 * f1_score(*drawn[:2], average=None, labels=["1"])[0])
        assert mean == pytest.approx(np.average(drawn[2], weights=drawn[3]))


def test_tau_is_exact_on_all_documents_near_on_a_draw_and_zero_of_a_constant(counts):
    truth = np.random.default_rng(0).integers(0, 40, ITEMS).astype(float)
    found = truth + np.random.default_rng(1).normal(scale=15, size=ITEMS).round()
    values = tau_statistic(truth, found)(counts)
    assert values[0] == pytest.approx(100 * kendalltau(truth, found).statistic)
    for row, value in zip(counts[1:], values[1:], strict=True):
        drawn = 100 * kendalltau(*(np.repeat(side, row.astype(int)) for side in (truth, found))).statistic
        assert value == pytest.approx(drawn, abs=3)
    assert tau_statistic(np.ones(ITEMS), np.arange(ITEMS))(counts).tolist() == [0] * len(counts)


def test_the_interval_and_the_p_value_are_those_of_the_normal_distribution():
    values = np.random.default_rng(0).normal(loc=0.15, size=400)
    statistic = mean_statistic(values, np.ones(400))
    drawn = np.concatenate([statistic(counts) for counts in draws(400, 20_000, 1, "x")])
    found = difference(values.mean(), drawn, 400)
    error = values.std() / np.sqrt(400)
    assert [found.low, found.high] == pytest.approx(values.mean() + 1.96 * error * np.array([-1, 1]), abs=0.005)
    assert found.p_value == pytest.approx(2 * norm.sf(values.mean() / error), rel=0.3)


def test_training_seeds_widen_the_interval_and_many_pairs_raise_the_p_value(tmp_path):
    draw = np.random.default_rng(4)
    values = draw.random(ITEMS) * 100
    runs = {f"m{number}": [outcomes(f"m{number}", values, seed=1)] for number in range(3)}
    runs["seeded"] = [outcomes("seeded", values + draw.normal(1 + seed, 4, ITEMS), seed=seed) for seed in (1, 2, 3)]
    compared = compare(tmp_path, *(run for of in runs.values() for run in of))
    rows = {(row["model"], row["other"]): row for row in compared}
    row = rows["m0", "seeded"]
    assert row["wide_low"] < row["low"] < row["high"] < row["wide_high"]
    means = [values.mean() - seed["value"].to_numpy().mean() for seed in runs["seeded"]]
    assert row["wide_high"] - row["wide_low"] > 2 * 1.96 * np.std(means, ddof=1) / np.sqrt(3)
    assert row["p_adjusted"] > 6 * row["p_value"] / 2
    assert row["detectable"] > row["wide_high"] - row["difference"]
    assert (rows["m0", "m1"]["p_adjusted"], rows["m0", "m1"]["detectable"]) == (1, 0)


def test_of_means_the_wide_interval_is_the_paired_t_interval_whatever_was_drawn(tmp_path):
    one, other = np.random.default_rng(7).normal([[50], [47]], 20, size=(2, 9))
    [row] = compare(tmp_path, outcomes("a", one), outcomes("b", other))
    expected = ttest_rel(one, other)
    assert [row["wide_low"], row["wide_high"]] == pytest.approx(list(expected.confidence_interval()))
    assert row["p_adjusted"] == pytest.approx(expected.pvalue)


def test_the_wide_interval_of_few_items_is_as_wide_if_their_metric_is_drawn(tmp_path):
    shared = {"task": "s2and", "metric": "b3_recall", "expected": [["a"], ["a"], ["b"], ["b"]]}
    runs = {"right": ["1", "1", "2", "2"], "split": ["1", "1", "2", "3"]}
    of_runs = [outcomes(name, [None] * 4, predicted=[[c] for c in of], **shared) for name, of in runs.items()]
    [row] = compare(tmp_path, *of_runs)
    expected = ttest_rel([100, 100, 100, 100], [100, 100, 50, 50]).confidence_interval()
    assert [row["wide_low"], row["wide_high"]] == pytest.approx(list(expected), rel=0.05)


def test_a_weighted_mean_varies_as_when_it_is_drawn_many_times(tmp_path):
    draw = np.random.default_rng(7)
    one, other, weights = draw.random((3, 400)) * [[100], [90], [1]]
    tables = [outcomes(name, values, weight=weights) for name, values in (("a", one), ("b", other))]
    [row] = compare(tmp_path, *tables)
    statistic = mean_statistic(one - other, weights)
    drawn = np.concatenate([statistic(counts) for counts in draws(400, 20_000, 1, "x")])
    reach = student.ppf(0.975, 399) * drawn.std()
    assert row["wide_high"] - row["difference"] == pytest.approx(reach, rel=0.03)


def test_only_queries_of_all_models_count_and_a_model_counts_as_the_mean_of_its_seeds(tmp_path):
    first = outcomes("a", [10.0, 20.0, 90.0], items=["x", "y", "z"])
    [row] = compare(tmp_path, first, outcomes("b", [10.0, 30.0], items=["x", "y"]))
    assert (row["items"], row["difference"]) == (2, pytest.approx(15 - 20))
    runs = pa.concat_tables([outcomes("a", [10.0, 30.0], seed=1), outcomes("a", [30.0, 50.0], seed=2)])
    [row] = compare(tmp_path, runs, outcomes("b", [20.0, 30.0]))
    assert row["difference"] == pytest.approx((20 + 40) / 2 - 25)


def test_one_query_shows_no_difference_and_two_of_one_size_are_no_proof(tmp_path):
    assert compare(tmp_path, outcomes("a", [90.0]), outcomes("b", [10.0])) == []
    [row] = compare(tmp_path, outcomes("a", [90.0, 80.0]), outcomes("b", [80.0, 70.0]))
    assert (row["difference"], row["p_value"], row["p_adjusted"]) == (10, 0.5, 0.5)


def test_predictions_are_compared_by_the_metric_of_their_task(tmp_path):
    expected = [["1"], ["1"], ["0"], ["0"]]
    shared = {"task": "biomimicry", "metric": "f1", "expected": expected}
    right = outcomes("right", [None] * 4, predicted=expected, **shared)
    half = outcomes("half", [None] * 4, predicted=[["1"], ["0"], ["0"], ["0"]], **shared)
    [row] = compare(tmp_path, right, half)
    assert row["difference"] == pytest.approx(100 * (2 / 3 - 1))


def test_the_draws_depend_on_the_seed_alone_and_models_that_do_alike_do_not_differ(tmp_path):
    values = np.random.default_rng(0).random((2, ITEMS)) * 100
    tables = [outcomes(name, row) for name, row in zip("ab", values, strict=True)]
    assert compare(tmp_path, *tables) == compare(tmp_path, *tables[::-1])
    assert compare(tmp_path, *tables) != compare(tmp_path, *tables, seed=2)
    [row] = compare(tmp_path, outcomes("a", values[0]), outcomes("b", values[0]))
    assert (row["difference"], row["low"], row["high"], row["p_value"]) == (0, 0, 0, 1)


def test_p_values_are_raised_in_the_order_of_their_size_for_the_tests_that_can_give_one_as_small():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1, 1]
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


def test_one_source_of_chance_gives_the_paired_t_test_and_two_welchs():
    one, other = np.random.default_rng(1).normal([[0.4], [0]], size=(2, 40))
    few, more = np.random.default_rng(2).normal(size=5), np.random.default_rng(3).normal(0.8, 3, size=8)
    paired, of_both = [Error(np.var(one - other, ddof=1) / 40, 39)], [*variance_of_mean(few), *variance_of_mean(more)]
    for found, errors, expected in (
        ((one - other).mean(), paired, ttest_rel(one, other)),
        (few.mean() - more.mean(), of_both, ttest_ind(few, more, equal_var=False)),
    ):
        assert p_value_of(found, error_of(errors)) == pytest.approx(expected.pvalue)
        assert interval_of(found, error_of(errors)) == pytest.approx(expected.confidence_interval())


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
