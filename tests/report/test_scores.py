"""The report's tables of models say what the scores say."""

import polars as pl
import pytest

from cocite.config.benchmarks import declared
from cocite.report.inputs import graph_embeddings
from cocite.report.results import read_scored
from cocite.report.scores import models_by_format

MODEL = {"triplets": "t", "encoder": "e", "margin": 1.0, "lr": 0.1}
CONFIGURATION = {
    "models": {"infonce": {**MODEL, "loss": {"kind": "infonce"}}, "triplet": {**MODEL, "loss": {"kind": "triplet"}}},
    "encoders": {"e": {}},
    "benchmarks": {"holdout": {"kind": "holdout"}, "sre": {"kind": "scirepeval"}},
}


def score(
    model,
    value,
    *,
    benchmark="sre",
    task="fos",
    metric=None,
    format="classification",
    seed=1,
    evaluation=1,
    mode="both",
):
    return {
        "model": model,
        "seed": seed,
        "benchmark": benchmark,
        "task": task,
        "metric": metric or declared(task).metrics[0],
        "evaluation_seed": evaluation,
        "format": format,
        "value": value,
        "mode": mode,
    }


def test_a_format_is_the_mean_of_its_tasks_and_seeds_deviate():
    scores = pl.DataFrame(
        [
            score("triplet", 60.0, task="fos"),
            score("triplet", 80.0, task="drsm"),
            score("triplet", 70.0, task="fos", seed=2),
            score("triplet", 74.0, task="drsm", seed=2),
        ]
    )
    table = models_by_format(scores, CONFIGURATION)
    assert table.to_dicts() == [{"model": "triplet", "sre: classification": "71.0 ± 1.4"}]  # 70 and 72


def test_a_format_is_the_mean_over_the_first_metric_of_each_task():
    values = {
        ("beir_scifact", "ndcg_cut_10"): 60.0,
        ("beir_scifact", "recall_100"): 90.0,
        ("beir_nfcorpus", "ndcg_cut_10"): 30.0,
        ("beir_nfcorpus", "recip_rank_10"): 70.0,
    }
    scores = [
        score("bm25", value, benchmark="beir", task=task, metric=metric, format="search")
        for (task, metric), value in values.items()
    ]
    facets = {"ndcg_csfcube": 80.0, "map": 40.0, "Rprec": 70.0}
    scores += [
        score("bm25", value, benchmark="cube", task="csfcube_method", metric=metric, format="proximity")
        for metric, value in facets.items()
    ]
    scores += [score("bm25", 50.0, task="biomimicry", metric="f1_with_few_shot")]
    beir = {"kind": "beir", "datasets": {"scifact": "x", "nfcorpus": "y"}}
    benchmarks = {"sre": {"kind": "scirepeval"}, "beir": beir, "cube": {"kind": "csfcube"}}
    [row] = models_by_format(pl.DataFrame(scores), {**CONFIGURATION, "benchmarks": benchmarks}).to_dicts()
    first = declared("csfcube_method").metrics[0]
    assert row == {
        "model": "bm25",
        "sre: classification": "50.0",
        "beir: search": "45.0",
        "cube: proximity": str(facets[first]),
    }


@pytest.mark.parametrize(
    ("listed", "cell"),
    [(["csfcube_background", "csfcube_method", "csfcube_all"], "20.0"), (["csfcube_all"], "90.0")],
)
@pytest.mark.parametrize("folds", [False, True])
def test_a_task_that_repeats_the_queries_of_others_is_not_averaged_with_them(listed, cell, folds):
    values = {"csfcube_background": 10.0, "csfcube_method": 30.0, "csfcube_all": 90.0}
    metric = "map_folds" if folds else "map"
    scores = [
        score("bm25", values[task], benchmark="cube", task=task, metric=metric, format="proximity") for task in listed
    ]
    benchmarks = {"cube": {"kind": "csfcube", "folds": folds, "tasks": listed}}
    table = models_by_format(pl.DataFrame(scores), {**CONFIGURATION, "benchmarks": benchmarks})
    assert table.to_dicts() == [{"model": "bm25", "cube: proximity": cell}]


def test_the_deviation_is_over_training_seeds_whatever_evaluation_seeds_there_are():
    values = {(1, 1): 60.0, (1, 2): 64.0, (2, 1): 70.0, (2, 2): 74.0}
    scores = [score("triplet", value, seed=seed, evaluation=of) for (seed, of), value in values.items()]
    table = models_by_format(pl.DataFrame(scores), CONFIGURATION)
    assert table["sre: classification"].item() == "67.0 ± 7.1"  # of 62 and 72; of all four it would be 6.0


def test_what_was_trained_once_deviates_over_evaluation_seeds():
    scores = [score("random", value, seed=0, evaluation=of) for of, value in ((1, 60.0), (2, 64.0))]
    assert models_by_format(pl.DataFrame(scores), CONFIGURATION)["sre: classification"].item() == "62.0 ± 2.8"


def test_the_holdout_has_a_column_for_each_task_and_metric():
    scores = pl.DataFrame(
        [
            score("bm25", 50.0, benchmark="holdout", task="cite", metric="map", format="proximity"),
            score("bm25", 60.0, benchmark="holdout", task="cite", metric="ndcg", format="proximity"),
            score("bm25", 70.0, benchmark="holdout", task="cocite", metric="map", format="proximity"),
        ]
    )
    columns = models_by_format(scores, CONFIGURATION).columns
    assert columns == ["model", "holdout: cite MAP", "holdout: cite nDCG", "holdout: cocite MAP"]


def test_the_published_mode_comes_first_in_every_format():
    formats, modes = ("regression", "classification"), ("correct", "compat")
    scores = pl.DataFrame([score("bm25", 1.0, format=format, mode=mode) for mode in modes for format in formats])
    assert models_by_format(scores, CONFIGURATION).columns[1:] == [
        f"sre: {format} ({mode})" for format in ("classification", "regression") for mode in ("compat", "correct")
    ]


def test_models_come_in_the_order_of_the_configuration_and_baselines_after():
    scores = pl.DataFrame([score(name, 1.0) for name in ("bm25", "triplet", "untrained_e", "infonce", "random")])
    ordered = ["infonce", "triplet", "untrained_e", "bm25", "random"]
    assert models_by_format(scores, CONFIGURATION)["model"].to_list() == ordered


def test_benchmarks_come_in_the_order_of_the_configuration_and_formats_in_that_of_the_literature():
    formats = ("search", "regression", "classification")
    scores = pl.DataFrame(
        [score("bm25", 1.0, benchmark=name, format=format) for name in ("a", "z") for format in formats]
    )
    configuration = {**CONFIGURATION, "benchmarks": {key: {"kind": "scirepeval"} for key in ("z", "a")}}
    of_each = ["classification", "regression", "search"]
    expected = ["model", *(f"{name}: {format}" for name in ("z", "a") for format in of_each)]
    assert models_by_format(scores, configuration).columns == expected


def test_a_score_says_its_mode_where_there_are_two():
    scores = pl.DataFrame(
        [score("triplet", 1.0, mode="compat"), score("triplet", 2.0, format="proximity", task="relish")]
    )
    assert models_by_format(scores, CONFIGURATION).columns == [
        "model",
        "sre: classification (compat)",
        "sre: proximity",
    ]


def test_a_model_that_was_not_scored_on_a_format_has_a_dash():
    scores = pl.DataFrame([score("triplet", 1.0), score("bm25", 2.0, format="search", task="search")])
    table = models_by_format(scores, CONFIGURATION)
    assert table.filter(model="bm25")["sre: classification"].item() == "–"


def test_a_mean_that_lacks_a_task_says_over_how_many_it_is():
    scores = [score("triplet", 60.0), score("triplet", 80.0, task="drsm"), score("infonce", 70.0)]
    table = models_by_format(pl.DataFrame(scores), CONFIGURATION)
    cells = dict(zip(table["model"], table["sre: classification"], strict=True))
    assert cells == {"triplet": "70.0", "infonce": "70.0 (1 of 2 tasks)"}


def test_a_run_without_benchmarks_or_graph_embeddings_has_empty_tables(tmp_path):
    nothing = {"models": {}, "encoders": {}, "benchmarks": {}}
    scores = read_scored(tmp_path, nothing, "scores")
    assert models_by_format(scores, nothing).columns == ["model"]
    assert graph_embeddings({}, nothing).is_empty()
