"""The published results of several objectives are in the rows of the models with the same settings."""

import polars as pl
import pytest

from cocite.report.matched import read_published
from cocite.report.objectives import objectives

FIVE = ("scifact", "nfcorpus", "trec-covid", "arguana", "scidocs")
MNRL = {"encoder": "minilm", "trainable": {"kind": "all"}, "loss": {"kind": "mnrl"}}
CONFIGURATION = {
    "triplets": {
        "crops": {"sampler": "cropping"},
        "random": {"sampler": "random"},
    },
    "models": {
        "crops": {**MNRL, "triplets": "crops"},
        "mine": {**MNRL, "triplets": "random"},
    },
    "encoders": {"minilm": {}},
    "benchmarks": {
        "beir": {"kind": "beir", "datasets": dict.fromkeys((*FIVE, "fiqa"), "x")},
        "again": {"kind": "beir", "datasets": {"scifact": "x"}},
        "iclr": {"kind": "beir", "datasets": {"iclr2022": "x"}, "queries": "documents"},
        "papers": {"kind": "scidocs"},
    },
}
COLUMNS = ("BEIR nDCG@10", "SciDocs", "ICLR2022 nDCG@10")


def score(model, dataset, value, *, benchmark="beir", seed=1, metric="ndcg_cut_10"):
    row = {"benchmark": benchmark, "task": f"beir_{dataset.replace('-', '_')}", "metric": metric, "value": value}
    return row | {"model": model, "seed": seed, "evaluation_seed": 1}


def rows_of(scores, averages=(), configuration=CONFIGURATION):
    schema = {"benchmark": str, "model": str, "mode": str, "over": str, "average": str}
    schema |= {"mean": float, "deviation": float, "values": int, "expected": int}
    table = objectives(pl.DataFrame(scores), pl.DataFrame(list(averages), schema=schema, orient="row"), configuration)
    rows = table.to_dicts()
    return {row["model"] if row["published result"] == "–" else row["published result"]: row for row in rows}


def test_there_is_a_row_for_each_of_the_published_results():
    published = read_published("objectives")
    assert len(published) == published["model"].n_unique() == 24
    assert published.null_count().sum_horizontal().item() == 0
    values = published.with_columns(pl.col(COLUMNS).cast(float))
    best = {column: values.filter(pl.col(column) == pl.col(column).max())["model"].item() for column in COLUMNS}
    assert best == {
        "BEIR nDCG@10": "cropping-msmarco",
        "SciDocs": "citations",
        "ICLR2022 nDCG@10": "cropping-citations",
    }


def test_ours_is_the_mean_over_the_five_datasets_and_over_seeds():
    scores = [score("crops", name, 20.0 + place, seed=1) for place, name in enumerate(FIVE)]
    scores += [score("crops", name, 24.0 + place, seed=2) for place, name in enumerate(FIVE)]
    scores += [score("crops", "fiqa", 99.0), score("crops", "scifact", 99.0, metric="recall_100")]
    scores += [score("crops", "scifact", 99.0, benchmark="again")]
    scores += [score("crops", "iclr2022", 41.0, benchmark="iclr")]
    averages = [("papers", "crops", "compat", "all", "all", 71.0, None, 12, 12)]
    assert rows_of(scores, averages)["ICrop"] == {
        "published result": "ICrop",
        "reference": "Parisot and Zavrel, Table 3",
        "model": "crops",
        "BEIR nDCG@10": "24.4",
        "BEIR nDCG@10, ours": "24.0 ± 2.8",
        "SciDocs": "74.93",
        "SciDocs, ours": "71.0",
        "ICLR2022 nDCG@10": "37.0",
        "ICLR2022 nDCG@10, ours": "41.0",
    }


def test_an_average_that_lacks_datasets_says_so():
    found = rows_of([score("mine", "scifact", 30.0), score("mine", "arguana", 40.0)])
    assert found["mine"]["BEIR nDCG@10, ours"] == "35.0 (2 of 5 datasets)"
    assert found["mine"]["published result"] == "–"


def test_further_models_and_baselines_stand_below_the_published_results():
    assert list(rows_of([score("bm25", "scifact", 66.0, seed=0)]))[24:] == ["mine", "untrained_minilm", "bm25"]


@pytest.mark.parametrize("kind", ["holdout", "scidocs"])
def test_a_run_without_any_of_the_searches_has_no_such_table(kind):
    configuration = {**CONFIGURATION, "benchmarks": {"b": {"kind": kind}}}
    assert rows_of([score("crops", "scifact", 1.0)], configuration=configuration) == {}
