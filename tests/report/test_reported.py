"""What others reported stands beside what the run measured on the same tasks, and is marked as theirs."""

import polars as pl
import pytest

from cocite.report.page_tables import ranking_of, shown
from cocite.report.reported import beside_reported

CONFIGURATION = {
    "models": {"cocite": {}},
    "encoders": {"base": {}},
    "baselines": {"bm25": {"kind": "bm25"}, "theirs": {"kind": "reported"}},
    "benchmarks": {"beir": {"kind": "beir"}, "other": {"kind": "holdout"}},
}


def score(model, task, value, *, seed=1, metric="ndcg_cut_10", benchmark="beir"):
    row = {"model": model, "seed": seed, "benchmark": benchmark, "task": task, "metric": metric, "value": value}
    return row | {"evaluation_seed": 1}


def reported(task, name, value, model=None, revision=None):
    row = {"baseline": "theirs", "benchmark": "beir", "task": task, "metric": "ndcg_cut_10", "value": value}
    return row | {"mteb_task": name, "mteb_model": model, "mteb_revision": revision}


def table_of(scores, rows):
    schema = {"mteb_model": pl.String, "mteb_revision": pl.String}
    return beside_reported(pl.DataFrame(scores), pl.DataFrame(rows, schema_overrides=schema), CONFIGURATION)


@pytest.fixture
def table():
    scores = [score("cocite", "beir_scifact", value, seed=seed) for seed, value in ((1, 50.0), (2, 54.0))]
    scores += [score("cocite", "beir_scifact", 99.0, metric="recall_100"), score("bm25", "beir_scifact", 66.5, seed=0)]
    scores += [score("bm25", "beir_arguana", 40.0, seed=0), score("cocite", "cite", 99.0, benchmark="other")]
    rows = [reported("beir_scifact", "SciFact", 64.5082, "them/model", "0123456789abcdef")]
    return table_of(scores, [*rows, reported("beir_nfcorpus", "NFCorpus", 31.6, "them/model", "0123456789abcdef")])


def test_the_tasks_are_those_with_a_reported_score_and_ours_come_first(table):
    assert table.columns == ["model", "source", "NFCorpus nDCG@10", "SciFact nDCG@10"]
    assert table.rows() == [
        ("cocite", "beir", "–", "52.0 ± 2.8"),
        ("bm25", "beir", "–", "66.5"),
        ("theirs", "reported: them/model 01234567", "31.6", "64.5"),
    ]


def test_what_was_reported_does_not_compete(table):
    best = {row[0].text: row[3].is_best for row in shown(table, ranking_of("reported")).rows}
    assert best == {"cocite": False, "bm25": True, "theirs": False}


def test_of_a_file_without_a_model_beside_it_no_name_is_known():
    [row] = table_of([score("bm25", "beir_arguana", 40.0)], [reported("beir_scifact", "SciFact", 64.5)]).to_dicts()
    assert row == {"model": "theirs", "source": "reported", "SciFact nDCG@10": "64.5"}


def test_without_reported_scores_there_is_no_table():
    none = pl.DataFrame(schema=dict.fromkeys(reported("a", "A", 1.0), pl.String))
    assert beside_reported(pl.DataFrame([score("cocite", "beir_scifact", 1.0)]), none, CONFIGURATION).is_empty()
