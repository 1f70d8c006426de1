"""The averages of the literature: what they are over, and the published ones from their format rows; and by year."""

import json
import statistics

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.papers import papers_table

from cocite.cli import app
from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.by_aspect import CsfCube
from cocite.config.benchmarks.holdout import Holdout
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.benchmark import ScoredSuite
from cocite.evaluation.over_tasks import averages, expected_values, score_by_year

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


def averaged(folder, of_runs, tasks, suite="small"):
    """The table averages of the scores of some runs on a benchmark with these tasks."""
    for run, scores in of_runs.items():
        table = pa.Table.from_pylist([score | COUNTS for score in scores])
        write_table(folder / f"{suite}/{run}.parquet", "scores", table)
    suites = json.dumps({suite: {"tasks": [task.name for task in tasks], "runs": [*of_runs]}})
    options = [f"--suites={suites}", f"--output={folder / 'averages.parquet'}"]
    app(["evaluation", "average", str(folder), *options], standalone_mode=False)
    return read_table(folder / "averages.parquet", "averages").to_pylist()


def whole_benchmark():
    """A value for each metric of each task, 1, 2, 3, … in the order of their declaration."""
    names = [(task.name, metric) for task in SCIREPEVAL for metric in task.metrics]
    return [row(task, float(number), metric) for number, (task, metric) in enumerate(names, start=1)]


def test_the_average_over_25_values_is_that_of_formats_and_of_groups_and_reviewer_matching_is_apart():
    counted = {average: values for _, average, (*_, values) in averages(whole_benchmark())}
    assert counted["all", "all"] == 25
    assert counted["format", "reviewer-matching"] == 4
    assert [counted["group", group] for group in ("in-train", "out-of-train", "scidocs")] == [7, 8, 10]
    assert expected_values(SCIREPEVAL)["all", "all"] == 25
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
    rows = averaged(tmp_path, {"m-1": [row("cite", 70.0)]}, Holdout(kind="holdout").scored_tasks)
    expected = {"all all": 8, "format proximity": 8, "group holdout": 4, "metric map": None}
    assert {f"{row['over']} {row['average']}": row["expected"] for row in rows} == expected
    assert {(row["mean"], row["deviation"], row["runs"], row["values"]) for row in rows} == {(70, None, 1, 1)}


@pytest.mark.parametrize(
    ("listed", "mean", "tasks"),
    [(["csfcube_background", "csfcube_method", "csfcube_all"], 20, 2), (["csfcube_all"], 90, 1)],
)
def test_a_task_that_repeats_the_queries_of_others_is_in_no_average_with_them(tmp_path, listed, mean, tasks):
    values = {"csfcube_background": 10.0, "csfcube_method": 30.0, "csfcube_all": 90.0}
    scores = sorted((row(task, values[task]) for task in listed), key=lambda row: row["task"])
    found = averaged(tmp_path, {"m-1": scores}, CsfCube(kind="csfcube", folder=".", tasks=tuple(listed)).scored_tasks)
    expected = dict.fromkeys(("all", "format", "group", "metric"), (mean, tasks))
    assert {row["over"]: (row["mean"], row["values"]) for row in found} == expected
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
    averaged(tmp_path, {"m-3": [row("drsm", 99.0, seed=3)]}, [TASKS["drsm"]], suite="drsm")
    averaged(tmp_path, {"m-1": [row("fos", 99.0)]}, [TASKS["fos"]], suite="fos")
    of_runs = {"m-1": [row("drsm", 40.0)], "m-2": [row("drsm", 60.0, seed=2)]}
    found = averaged(tmp_path, of_runs, [TASKS["drsm"]], suite="drsm")
    assert {(row["mean"], row["runs"]) for row in found} == {(50, 2)}


SUITES = {
    "small": ScoredSuite(tasks=("cite", "title_search"), runs=("bm25-0", "m-1", "m-2")),
    "search": ScoredSuite(tasks=("cite_search",), runs=("m-1",)),
}
METRICS = {"cite": ["map", "ndcg"], "title_search": ["ndcg_cut_10"], "cite_search": ["map", "recall_cap_20"]}
MAIN = {"cite": "map", "title_search": "ndcg_cut_10", "cite_search": "recall_cap_20"}


def outcomes_of(run, tasks, random):
    """The outcomes of a run: every task leaves some queries out; those of title_search are texts of papers."""
    model, _, seed = run.rpartition("-")
    same = {"model": model, "seed": int(seed), "benchmark": "later", "evaluation_seed": 1, "mode": "both"}
    same |= {"weight": 1.0, "predicted": [], "expected": []}
    rows = [
        {**same, "task": task, "metric": metric, "value": random.uniform(0, 100)}
        | {"item": f"title:{paper}" if task == "title_search" else str(paper)}
        for task in tasks
        for paper in random.choice(40, 30, replace=False).tolist()
        for metric in METRICS[task]
    ]
    return sorted(rows, key=lambda row: [row[key] for key in TABLES["outcomes"].key])


def test_the_main_metric_of_each_task_is_averaged_over_the_queries_of_each_year(tmp_path):
    random = np.random.default_rng(5)
    years = {paper: 2020 + paper % 4 if paper != 3 else 2031 for paper in range(40)}
    for bucket in range(2):
        ids = [paper for paper in years if paper % 2 == bucket]
        rows = papers_table(dict.fromkeys(ids, ("Title", "Text")), year=[years[paper] for paper in ids])
        write_table(tmp_path / f"papers/{bucket}.parquet", "papers", rows)
    written = []
    for suite, of in SUITES.items():
        for run in [*of.runs, "left-over-1"]:
            rows = outcomes_of(run, of.tasks, random)
            table = pa.Table.from_pylist(rows, empty_schema(TABLES["outcomes"]))
            write_table(tmp_path / f"outcomes/{suite}/{run}.parquet", "outcomes", table)
            written += rows if run in of.runs else []
    given = {"suites": SUITES, "papers": tmp_path / "papers", "memory_mb": 500}
    score_by_year(tmp_path / "outcomes", **given, output=tmp_path / "by-year.parquet")
    found = read_table(tmp_path / "by-year.parquet", "scores_by_year").to_pandas()
    frame = pd.DataFrame(written)
    frame = frame[frame.metric == frame.task.map(MAIN)]
    frame["year"] = frame["item"].str.replace("title:", "").astype(int).map(years)
    grouped = frame.groupby(["model", "seed", "benchmark", "task", "metric", "year"]).value
    expected = grouped.agg(queries="size", value="mean", error="sem").reset_index()
    keys, of_each = (table.drop(columns=["value", "error"]).to_dict("records") for table in (found, expected))
    assert keys == of_each
    for column in ("value", "error"):
        assert found[column].to_numpy() == pytest.approx(expected[column].to_numpy(), nan_ok=True)
    assert found[found.year == 2031].error.isna().all()
