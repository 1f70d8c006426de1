"""The averages of the literature: what they are over, and the published ones from their format rows."""

import statistics

import pyarrow as pa
import pytest

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.by_aspect import CsfCube
from cocite.config.benchmarks.holdout import Holdout
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.benchmark import ScoredSuite
from cocite.evaluation.over_tasks import averages, expected_values, write_averages

COUNTS = dict.fromkeys(("documents", "missing", "scored", "unscored"), 0)
COUNTS |= dict.fromkeys(("searched", "copies", "unfindable"))


def row(task, value, metric=None, *, seed=1, evaluation_seed=1, mode=None):
    declared = TASKS[task]
    return {
        **{"model": "m", "benchmark": "b", "task": task, "metric": metric or declared.metrics[0]},
        **{"seed": seed, "evaluation_seed": evaluation_seed, "format": declared.format, "value": value},
        "mode": mode or ("compat" if declared.is_supervised else "both"),
    }


def means(scores):
    return {(mode, name): mean for mode, (_, name), (mean, *_) in averages(scores)}


def averaged(folder, scores, tasks):
    """The table averages of one run on a benchmark with these tasks."""
    write_table(folder / "small/m-1.parquet", "scores", pa.Table.from_pylist([score | COUNTS for score in scores]))
    suites = {"small": ScoredSuite(tasks=tuple(task.name for task in tasks), runs=("m-1",))}
    output = folder / "averages.parquet"
    write_averages(folder, suites=suites, output=output)
    return read_table(output, "averages").to_pylist()


def whole_benchmark():
    """A value for each metric of each task, 1, 2, 3, … in the order of their declaration."""
    names = [(task.name, metric) for task in SCIREPEVAL for metric in task.metrics]
    return [row(task, float(number), metric) for number, (task, metric) in enumerate(names, start=1)]


def test_the_average_is_over_25_values_and_reviewer_matching_is_apart():
    counted = {average: values for _, average, (*_, values) in averages(whole_benchmark())}
    assert counted["all", "all"] == 25
    assert counted["format", "reviewer-matching"] == 4
    assert [counted["group", group] for group in ("in-train", "out-of-train", "scidocs")] == [7, 8, 10]
    assert expected_values(SCIREPEVAL)["all", "all"] == 25


def test_the_average_over_all_is_that_of_the_formats_and_that_of_the_groups():
    found = {average: mean for (_, average), mean in means(whole_benchmark()).items()}
    weights = {"classification": 6, "regression": 5, "proximity": 11, "search": 3}
    by_format = sum(found[name] * weight for name, weight in weights.items()) / 25
    by_group = (7 * found["in-train"] + 8 * found["out-of-train"] + 10 * found["scidocs"]) / 25
    assert found["all"] == pytest.approx(by_format) == pytest.approx(by_group)


def test_a_ranking_counts_in_every_run_of_its_training_seed():
    scores = [row("relish", 80.0, seed=1), row("relish", 60.0, seed=2)]
    fits = {(1, 1): 40.0, (1, 2): 50.0, (2, 1): 10.0, (2, 2): 30.0}
    scores += [row("drsm", value, seed=seed, evaluation_seed=other) for (seed, other), value in fits.items()]
    of_runs = [(80 + 40) / 2, (80 + 50) / 2, (60 + 10) / 2, (60 + 30) / 2]
    [(mean, deviation, runs, _)] = [found for _, (over, _), found in averages(scores) if over == "all"]
    assert (mean, runs) == (statistics.fmean(of_runs), 4)
    assert deviation == pytest.approx(statistics.stdev(of_runs))


def test_modes_are_averaged_apart_and_share_the_rankings():
    scores = [row("drsm", 40.0, mode="compat"), row("drsm", 60.0, mode="correct"), row("relish", 80.0)]
    found = means(scores)
    assert (found["compat", "all"], found["correct", "all"]) == (60, 70)


def test_the_average_of_one_run_has_no_deviation(tmp_path):
    rows = averaged(tmp_path, [row("cite", 70.0)], Holdout(kind="holdout").scored_tasks)
    assert {(row["over"], row["average"]): row["expected"] for row in rows} == {
        ("all", "all"): 8,
        ("format", "proximity"): 8,
        ("group", "holdout"): 4,
        ("metric", "map"): None,
    }
    assert {(row["mean"], row["deviation"], row["runs"], row["values"]) for row in rows} == {(70, None, 1, 1)}


@pytest.mark.parametrize(
    ("listed", "mean", "tasks"),
    [(["csfcube_background", "csfcube_method", "csfcube_all"], 20, 2), (["csfcube_all"], 90, 1)],
)
def test_a_task_that_repeats_the_queries_of_others_is_in_no_average_with_them(tmp_path, listed, mean, tasks):
    values = {"csfcube_background": 10.0, "csfcube_method": 30.0, "csfcube_all": 90.0}
    scores = sorted((row(task, values[task]) for task in listed), key=lambda row: row["task"])
    found = averaged(tmp_path, scores, CsfCube(kind="csfcube", folder=".", tasks=listed and tuple(listed)).scored_tasks)
    assert {row["over"]: (row["mean"], row["values"]) for row in found} == dict.fromkeys(
        ("all", "format", "group", "metric"), (mean, tasks)
    )
    [of_all] = [row for row in found if row["over"] == "all"]
    assert of_all["expected"] == tasks * len(CsfCube.declared[0].metrics)


def test_a_task_that_one_run_lacks_is_in_no_run_of_that_average():
    scores = [row("drsm", 40.0), row("drsm", 50.0, seed=2), row("fos", 90.0, seed=2)]
    scores += [row("relish", 70.0), row("relish", 80.0, seed=2)]
    found = {average: (mean, values) for _, average, (mean, _, _, values) in averages(scores)}
    assert found["format", "classification"] == (45, 1)
    assert found["all", "all"] == ((40 + 70 + 50 + 80) / 4, 2)
    assert ("group", "in-train") not in found


def test_of_the_tables_in_a_folder_only_those_of_the_runs_and_suites_that_are_named_count(tmp_path):
    for task, run, value in (("drsm", "m-1", 40.0), ("drsm", "m-2", 60.0), ("drsm", "m-3", 99.0), ("fos", "m-1", 99.0)):
        scored = row(task, value, seed=int(run[-1])) | COUNTS
        write_table(tmp_path / task / f"{run}.parquet", "scores", pa.Table.from_pylist([scored]))
    suites, output = {"drsm": ScoredSuite(tasks=("drsm",), runs=("m-1", "m-2"))}, tmp_path / "averages.parquet"
    write_averages(tmp_path, suites=suites, output=output)
    rows = read_table(output, "averages").to_pylist()
    assert {(row["mean"], row["runs"]) for row in rows} == {(50, 2)}
