"""The paired bootstrap: its statistics against the metrics themselves, and what it finds where the truth is known."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kendalltau, norm, ttest_rel
from scipy.stats import t as student
from sklearn.metrics import f1_score

from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.benchmark import ScoredSuite
from cocite.evaluation.comparisons import compare_models, difference, draws
from cocite.evaluation.metrics import f1_statistic, mean_statistic, tau_statistic

ITEMS = 120


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
    suites = {"small": ScoredSuite(tasks=("relish",), runs=tuple(runs))}
    compare_models(folder, suites=suites, resamples=1000, seed=seed, output=folder / "comparisons.parquet")
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
    truth, found = (draw.choice(["1", "2", "3"], ITEMS) for _ in range(2))
    lists = [[[str(name)] for name in side] for side in (truth, found)]
    macro, binary = f1_statistic(*lists)(counts), f1_statistic(*lists, positive="1")(counts)
    values, weights = draw.random((2, ITEMS))
    for row, of_macro, of_binary, mean in zip(
        counts, macro, binary, mean_statistic(values, weights)(counts), strict=True
    ):
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
    found = difference(values.mean(), drawn)
    error = values.std() / np.sqrt(400)
    assert [found.low, found.high] == pytest.approx(
        [values.mean() - 1.96 * error, values.mean() + 1.96 * error], abs=0.005
    )
    assert found.p_value == pytest.approx(2 * norm.sf(values.mean() / error), rel=0.3)


def test_training_seeds_widen_the_interval_and_many_pairs_raise_the_p_value(tmp_path):
    draw = np.random.default_rng(4)
    values = draw.random(ITEMS) * 100
    runs = {f"m{number}": [outcomes(f"m{number}", values, seed=1)] for number in range(3)}
    runs["seeded"] = [outcomes("seeded", values + draw.normal(1 + seed, 4, ITEMS), seed=seed) for seed in (1, 2, 3)]
    rows = {
        (row["model"], row["other"]): row for row in compare(tmp_path, *(run for of in runs.values() for run in of))
    }
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
    assert (row["difference"], row["p_adjusted"]) == (10, 0.5)


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
