"""The tables of tasks: every score, what was not scored, and what lacks documents."""

import polars as pl

from cocite.report.scores import failures, incomplete, tasks

CONFIGURATION = {
    "models": {"ours": {}},
    "encoders": {"e": {}},
    "benchmarks": {"sre": {"kind": "scirepeval"}, "holdout": {"kind": "holdout"}},
}


def score(model, value, *, task="fos", seed=1, missing=0, mode="compat"):
    row = {"model": model, "seed": seed, "benchmark": "sre", "task": task, "metric": "f1_macro", "mode": mode}
    row |= {"value": value, "documents": 90, "missing": missing, "unscored": missing}
    return row | {"evaluation_seed": 1}


def test_what_could_not_be_scored_is_listed_by_benchmark_and_task():
    rows = [("m", 2, "sre", "fos", "too few"), ("m", 1, "sre", "fos", "too few"), ("n", 1, "sre", "drsm", "no vector")]
    found = pl.DataFrame(rows, schema=["model", "seed", "benchmark", "task", "reason"], orient="row")
    assert failures(found).rows() == [
        ("sre", "drsm", "n", "1", "no vector"),
        ("sre", "fos", "m", "1", "too few"),
        ("sre", "fos", "m", "2", "too few"),
    ]


def test_a_benchmark_has_a_row_for_each_model_and_a_column_for_each_metric_of_its_tasks():
    scores = [score("random", 9.96, seed=0), score("ours", 60.0), score("ours", 62.0, seed=2)]
    found = tasks(pl.DataFrame(scores), CONFIGURATION)
    assert list(found) == ["sre"]
    assert found["sre"].to_dicts() == [
        {"model": "ours", "fos macro F1 (compat)": "61.0 ± 1.4"},
        {"model": "random", "fos macro F1 (compat)": "10.0"},
    ]


def test_a_model_that_was_not_scored_on_a_task_has_a_dash():
    found = tasks(pl.DataFrame([score("ours", 60.0), score("bm25", 50.0, task="drsm")]), CONFIGURATION)
    assert found["sre"].filter(model="bm25")["fos macro F1 (compat)"].item() == "–"


def test_tasks_that_lack_documents_are_listed_with_the_most_that_any_model_lacks():
    scores = [score("ours", 60.0), score("other", 60.0, missing=3), score("ours", 50.0, task="drsm")]
    assert incomplete(pl.DataFrame(scores)).rows() == [("sre", "fos", "3 of 90", "3")]


def test_what_no_model_can_find_or_tell_apart_is_listed_where_there_is_any():
    def searched(task, unfindable, copies):
        return score("ours", 60.0, task=task) | {"searched": 80, "copies": copies, "unfindable": unfindable}

    nothing = {"searched": None, "copies": None, "unfindable": None}
    scores = [searched("a", 3, 0), searched("b", 0, 9), searched("c", 0, 0), score("ours", 1.0, missing=2) | nothing]
    assert incomplete(pl.DataFrame(scores)).to_dicts() == [
        {
            "benchmark": "sre",
            "task": task,
            "documents without a vector": f"{missing} of 90",
            "left out of the score": str(missing),
            "judged relevant, but not in the collection": unfindable,
            "documents that repeat a text": copies,
        }
        for task, missing, unfindable, copies in [
            ("a", 0, "3", "0 of 80"),
            ("b", 0, "0", "9 of 80"),
            ("fos", 2, "–", "–"),
        ]
    ]
