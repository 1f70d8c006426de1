"""The published ablations of SPECTER and SciNCL are in the rows of the models with the same settings."""

import polars as pl
import pytest

from cocite.config.benchmarks import BENCHMARKS
from cocite.report.ablations import FORMATS, VALUES, ablations
from cocite.report.matched import read_published

SPECTER = {"triplets": "specter", "trainable": {"kind": "all"}, "loss": {"kind": "triplet"}}
CONFIGURATION = {
    "graphs": {"citation": {"signal": "citation", "directed": True}},
    "triplets": {
        "specter": {"sampler": "citations", "graph": "citation", "directed": True, "per_query": 5, "easy": 3},
        "two": {"sampler": "citations", "graph": "citation", "directed": True, "per_query": 2, "easy": 1},
    },
    "models": {
        "with-venue": {**SPECTER, "encoder": "scibert-venue"},
        "mine": {**SPECTER, "triplets": "two", "encoder": "scibert"},
    },
    "encoders": {"scibert": {}, "scibert-venue": {"text": ["title", "abstract", "venue"]}},
    "benchmarks": {"holdout": {"kind": "holdout"}, "papers": {"kind": "scidocs"}},
}


def score(model, task, value, *, metric="map", mode="both", seed=1, evaluation_seed=1, benchmark="papers"):
    names = {"benchmark": benchmark, "model": model, "task": task, "metric": metric, "mode": mode}
    return {**names, "seed": seed, "evaluation_seed": evaluation_seed, "value": value}


def rows_of(scores, averages=(), configuration=CONFIGURATION):
    schema = {"benchmark": str, "model": str, "mode": str, "over": str, "average": str}
    schema |= {"mean": float, "deviation": float, "values": int, "expected": int}
    table = ablations(pl.DataFrame(scores), pl.DataFrame(list(averages), schema=schema, orient="row"), configuration)
    rows = table.to_dicts()
    return {row["model"] if row["published result"] == "–" else row["published result"]: row for row in rows}


def test_the_published_averages_of_formats_fit_the_average_over_all_values():
    """SPECTER's formats have 2, 4, 4 and 2 values. SciNCL's published USR is .9 below what its values give."""
    rows = read_published("ablations").filter(pl.col("REC").is_not_null())
    for row in rows.iter_rows(named=True):
        cls, usr, cite, rec = (float(row[name]) for name in ("CLS", "USR", "CITE", "REC"))
        published = float(row["SciDocs"].split()[0])
        lower = published - (2 * cls + 4 * usr + 4 * cite + 2 * rec) / 12
        least, most = (-0.1, 0.1) if row["reference"].startswith("SPECTER") else (0.1, 0.4)
        assert least < lower < most
    assert len(rows) == 17


def test_formats_are_over_all_metrics_of_tasks_that_exist():
    metrics = {task.name: task.metrics for task in BENCHMARKS["scidocs"]}
    assert {name: sum(len(metrics[task]) for task in tasks) for name, tasks in FORMATS.items()} == VALUES


def test_ours_are_means_over_the_values_of_a_format_in_the_published_mode_and_over_seeds():
    scores = [
        score("with-venue", task, value + 10 * (seed - 1), metric="f1_macro", mode=mode, seed=seed)
        for task, value in (("mag", 80.0), ("mesh", 84.0))
        for seed in (1, 2)
        for mode in ("compat", "correct")
    ]
    for row in scores:
        row["value"] += 5 * (row["mode"] == "correct")
    scores += [
        score("with-venue", task, value, metric=metric)
        for task, values in (
            ("scidocs_view", (80.0, 90.0)),
            ("scidocs_read", (82.0, 92.0)),
            ("scidocs_cite", (85.0, 95.0)),
        )
        for metric, value in zip(("map", "ndcg"), values, strict=True)
    ]
    scores += [
        score("with-venue", "recomm", 50.0, metric="ndcg_adjusted"),
        score("with-venue", "recomm", 20.0, metric="P_1_adjusted"),
    ]
    scores += [score("with-venue", "scidocs_view", 0.0, benchmark="holdout")]
    averages = [("papers", "with-venue", "compat", "all", "all", 79.5, 0.25, 12, 12)]
    assert rows_of(scores, averages)["SPECTER, + venue"] == {
        "published result": "SPECTER, + venue",
        "reference": "SPECTER, Table 2",
        "model": "with-venue",
        "CLS": "84.5",
        "CLS, ours": "87.0 ± 7.1",
        "USR": "88.0",
        "USR, ours": "86.0",
        "CITE": "91.2",
        "CITE, ours": "90.0 (2 of 4 values)",
        "REC": "36.7",
        "REC, ours": "35.0",
        "SciDocs": "79.9",
        "SciDocs, ours": "79.5 ± 0.2",
    }


def test_further_models_are_below_the_published_results_and_lack_values():
    rows = rows_of([score("mine", "mag", 70.0, metric="f1_macro", mode="compat")])
    assert list(rows)[24:] == ["mine", "untrained_scibert", "untrained_scibert-venue"]
    assert rows["mine"]["CLS, ours"] == "70.0 (1 of 2 values)"
    assert (rows["SciNCL, from BERT-large"]["SciDocs"], rows["SciNCL, from BERT-large"]["model"]) == ("81.4", "–")
    assert (rows["SPECTER, title only"]["CLS"], rows["SPECTER"]["SciDocs"]) == ("82.2", "80.2")


@pytest.mark.parametrize(
    "changed",
    [
        {"models": {"mine": CONFIGURATION["models"]["mine"]}},
        {"benchmarks": {"holdout": {"kind": "holdout"}}},
        {"benchmarks": {}},
    ],
)
def test_a_run_without_such_a_model_or_without_scidocs_has_no_such_table(changed):
    assert rows_of([score("mine", "mag", 1.0)], configuration={**CONFIGURATION, **changed}) == {}
