"""Scores by year against pandas."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.papers import papers_table

from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.benchmark import ScoredSuite
from cocite.evaluation.over_tasks import score_by_year

SUITES = {
    "small": ScoredSuite(tasks=("cite", "title_search"), runs=("bm25-0", "m-1", "m-2")),
    "search": ScoredSuite(tasks=("cite_search",), runs=("m-1",)),
}
METRICS = {"cite": ["map", "ndcg"], "title_search": ["ndcg_cut_10"], "cite_search": ["map", "recall_cap_20"]}
MAIN = {"cite": "map", "title_search": "ndcg_cut_10", "cite_search": "recall_cap_20"}


def outcomes_of(run, tasks, random):
    """The outcomes of a run: every task leaves some queries out; those of title_search are texts of papers."""
    model, _, seed = run.rpartition("-")
    rows = [
        {"model": model, "seed": int(seed), "benchmark": "later", "task": task, "metric": metric, "mode": "both"}
        | {"evaluation_seed": 1, "item": f"title:{paper}" if task == "title_search" else str(paper)}
        | {"value": random.uniform(0, 100), "weight": 1.0, "predicted": [], "expected": []}
        for task in tasks
        for paper in random.choice(40, 30, replace=False).tolist()
        for metric in METRICS[task]
    ]
    keys = TABLES["outcomes"].key
    return sorted(rows, key=lambda row: [row[key] for key in keys])


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
    assert found.drop(columns=["value", "error"]).to_dict("records") == (
        expected.drop(columns=["value", "error"]).to_dict("records")
    )
    for column in ("value", "error"):
        assert found[column].to_numpy() == pytest.approx(expected[column].to_numpy(), nan_ok=True)
    assert found[found.year == 2031].error.isna().all()
