"""SciRepEval, SciDocs and MDCR stand beside published values, and tasks of mteb beside what others reported."""

import polars as pl
import pytest
from tests.configurations import recorded

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import Mdcr
from cocite.evaluation.over_tasks import expected_values
from cocite.report.page import ranking_of, shown
from cocite.report.published import (
    COLUMNS,
    WEIGHTS,
    published_rows,
    read_published,
    scirepeval,
    with_published,
    with_reported,
)

KINDS = {"own": "scidocs", "fields": "mdcr", "sre": "scirepeval", "beir": "beir", "holdout": "holdout"}
BASELINES = {"bm25": "bm25", "random": "random", "theirs": "reported"}
CONFIGURATION = recorded(
    {
        "models": {"ours": {}},
        "benchmarks": {name: {"kind": kind} for name, kind in KINDS.items()},
        "baselines": {name: {"kind": kind} for name, kind in BASELINES.items()},
    }
)


def score(task, metric, value, *, benchmark="own", model="ours", seed=1, evaluation_seed=1, mode="both"):
    row = {"benchmark": benchmark, "model": model, "task": task, "metric": metric, "mode": mode}
    return row | {"seed": seed, "evaluation_seed": evaluation_seed, "value": value}


def beside(table, *scores):
    return with_published(table, pl.DataFrame(scores), CONFIGURATION).to_dicts()


def test_a_model_has_its_value_in_the_column_of_the_literature():
    ours, corrected, chance, *published = beside(
        "scidocs",
        score("scidocs_view", "map", 70.0),
        score("scidocs_cocite", "ndcg", 1.0, model="random"),
        score("mag", "f1_macro", 60.0, mode="compat"),
        score("mag", "f1_macro", 64.0, mode="correct"),
        score("mag", "f1_macro", 20.0, model="random"),
    )
    values = ("own (compat)", "60.0", "70.0", "–")
    assert (ours["source"], ours["MAG F1"], ours["view MAP"], ours["co-cite nDCG"]) == values
    assert (corrected["source"], corrected["MAG F1"], corrected["view MAP"]) == ("own (correct)", "64.0", "70.0")
    assert (chance["model"], chance["MAG F1"]) == ("random", "20.0")
    assert {row["source"] for row in published} == {"published"}
    values = {row["model"]: (row["MAG F1"], row["view MAP"], row["co-cite nDCG"]) for row in published}
    assert values["SPECTER [SPECTER, Table 1]"] == ("82.6", "83.8", "94.7")
    assert values["SPECTER [released evaluation of SciDocs]"] == ("81.95", "83.63", "94.77")
    assert values["SPECTERCL (1 × 5, τ .05) [SciAspect, Table 6.2]"] == ("81.99", "84.53", "95.82")


def test_a_metric_of_mdcr_is_the_plain_mean_over_the_fields_and_by_field_there_is_the_map_of_each():
    values = [("mdcr_art", 1, 10.0), ("mdcr_physics", 1, 30.0), ("mdcr_art", 2, 20.0), ("mdcr_physics", 2, 24.0)]
    scores = [score(task, "map", value, benchmark="fields", seed=seed) for task, seed, value in values]
    ours, *published = beside("mdcr", *scores)
    assert ours == {"model": "ours", "source": "fields", "MAP": "21.0 ± 1.4"}  # 20 and 22
    values = {row["model"].partition(" [")[0]: row["MAP"] for row in published}
    assert (values["SciNCL"], values["BM25"], values["SPECTERCL (1 × 5, τ .05)"]) == ("32.5704", "33.7", "33.7741")
    scores = [score("mdcr_art", metric, value, benchmark="fields") for metric, value in (("map", 10.0), ("ndcg", 50.0))]
    ours, *published = beside("mdcr_fields", *scores)
    assert ours == {"model": "ours", "source": "fields", "Art": "10.0"}
    assert {row["model"]: row["Art"] for row in published}["BM25 [SciAspect, Table 6.8]"] == "38.2"


def test_the_published_means_of_mdcr_and_scidocs_are_those_of_their_values():
    for column, number in {"MAP": 10, "nDCG": 5, "recall@5": 10}.items():
        rows = read_published("mdcr").filter(pl.col(column).is_not_null()).with_columns(pl.col(column).cast(float))
        means = rows.filter(pl.col("field") != "mean").group_by("model").agg(pl.col(column).mean(), pl.len())
        stated = dict(rows.filter(field="mean").select("model", column).rows())
        assert all(n == 19 and mean == pytest.approx(stated[model], abs=0.06) for model, mean, n in means.rows())
        assert len(means) == number
    rows = read_published("scidocs")
    columns = list(COLUMNS["scidocs"])
    computed = rows.select(pl.mean_horizontal(pl.col(columns).cast(float))).to_series()
    for mean, stated_mean in zip(computed, rows["average"], strict=True):
        assert stated_mean is None or mean == pytest.approx(float(stated_mean), abs=0.06)
    assert rows.select(columns).null_count().sum_horizontal().item() == 0


def test_a_task_of_scirepeval_has_mean_and_deviation_over_the_seeds_few_shot_stages_included():
    of = {"benchmark": "sre", "mode": "compat"}
    scores = [score("fos", "f1_macro_with_few_shot", 38.0 + 2 * seed, evaluation_seed=seed, **of) for seed in (1, 2)]
    ours, first, *_ = beside("scirepeval", *scores, score("scidocs_cite", "map", 70.0, benchmark="sre"))
    assert ours == {"model": "ours", "source": "sre (compat)", "fos F1": "41.0 ± 1.4", "scidocs_cite MAP": "70.0"}
    assert first["model"] == "SciBERT [SciAspect, Table 6.11]"
    assert (first["scidocs_cite MAP"], first["fos F1"]) == ("53.20", "–")


def test_the_published_values_of_scirepeval_give_the_published_averages_of_formats():
    """SciAspect, Table 6.11: averages of classification, regression and SciDocs; L2 lacks three values there."""
    rows = {row["model"]: row for row in read_published("scirepeval_tasks").iter_rows(named=True)}
    stated = {
        "SciBERT": (70.02, 23.22, 69.04),
        "SPECTER (with leakage)": (73.99, 22.15, 89.10),
        "SPECTERCL (1 × 5, τ .05)": (75.48, 17.35, 89.85),
        "SciAspect (L1)": (76.16, 24.63, 88.86),
    }
    for model, averages in stated.items():
        for average, holds in zip(averages, (" F1", " τ", "scidocs_"), strict=True):
            values = [float(value) for name, value in rows[model].items() if holds in name]
            assert sum(values) / len(values) == pytest.approx(average, abs=0.05)


def test_every_column_is_a_metric_of_a_declared_task():
    named = [*COLUMNS["scidocs"].values(), *COLUMNS["scirepeval"].values()]
    assert all(metric in TASKS[task].metrics for task, metric in named)
    assert all(metric in Mdcr.declared[0].metrics for _, metric in COLUMNS["mdcr"].values())
    assert set(COLUMNS["scidocs"]) < set(read_published("scidocs").columns)
    assert set(read_published("scirepeval_tasks").columns) - {"model", "reference"} < set(COLUMNS["scirepeval"])
    of_reviewers = [task for task, _ in COLUMNS["scirepeval"].values() if task.startswith("paper_reviewer")]
    assert (len(COLUMNS["scirepeval"]), len(of_reviewers)) == (29, 4)


def average(model, over, name, mean, *, benchmark="sre", mode="compat", deviation=None, runs=1, values=25):
    row = {"benchmark": benchmark, "model": model, "mode": mode, "over": over, "average": name}
    return row | {"mean": mean, "deviation": deviation, "runs": runs, "values": values, "expected": 25}


def test_published_averages_follow_from_their_formats_and_groups_but_for_one_misprint():
    """In-train has 7 values, SciDocs 10, out-of-train 8."""
    rows = {row["model"].partition(" [")[0]: row for row in published_rows()}
    assert rows["SciNCL"]["average"] == "67.8 (its formats give 68.7)"
    assert [name for name, row in rows.items() if "give" in row["average"]] == ["SciNCL"]
    assert len(rows) == 25
    assert rows["SciBERT-cls Triplet"]["average"] == "68.6 ± 0.8"
    with_groups = [row for name, row in rows.items() if row["SciDocs"] != "–" and name != "SciNCL"]
    for row in with_groups:
        inside, outside, scidocs = (float(row[name].split()[0]) for name in ("in-train", "out-of-train", "SciDocs"))
        over_all = float(row["average"].split()[0])
        assert (7 * inside + 8 * outside + 10 * scidocs) / 25 == pytest.approx(over_all, abs=0.1)
    assert len(with_groups) == 20

    over = expected_values(SCIREPEVAL)
    assert {name: over["format", name] for name in WEIGHTS} == WEIGHTS
    assert over["all", "all"] == sum(WEIGHTS.values()) == 25


def test_our_averages_stand_before_the_published_ones_and_say_if_they_lack_values():
    averages = [
        average("random", "all", "all", 30.0, values=24),
        average("ours", "all", "all", 60.0, deviation=0.5, runs=9),
        average("ours", "format", "search", 70.04, deviation=0.25, runs=9),
        average("ours", "group", "scidocs", 50.0, deviation=1.0, runs=9),
        average("ours", "all", "all", 99.0, benchmark="holdout", mode="both"),
    ]
    first, second, *rest = scirepeval(pl.DataFrame(averages), CONFIGURATION).to_dicts()
    assert first == {
        **{"model": "ours", "source": "sre (compat)", "average": "60.0 ± 0.5 (9)", "search": "70.0 ± 0.2 (9)"},
        **{"classification": "–", "regression": "–", "proximity": "–", "values": "25"},
        **{"in-train": "–", "out-of-train": "–", "SciDocs": "50.0 ± 1.0 (9)"},
    }
    assert (second["model"], second["average"], second["values"]) == ("random", "30.0", "24 of 25")
    assert {row["source"] for row in rest} == {"published"}


def test_nothing_published_is_shown_without_such_a_benchmark_or_of_tasks_that_are_not_ours():
    assert [row["source"] for row in beside("scirepeval", score("relish", "ndcg", 60.0, benchmark="sre"))] == ["sre"]
    assert beside("scidocs", score("cite", "map", 1.0, benchmark="other")) == []
    averages = pl.DataFrame([average("ours", "all", "all", 60.0, benchmark="holdout")])
    assert scirepeval(averages, CONFIGURATION).is_empty()


def search(model, task, value, *, seed=1, metric="ndcg_cut_10", benchmark="beir"):
    return score(task, metric, value, benchmark=benchmark, model=model, seed=seed)


def reported(task, name, value, model=None, revision=None):
    row = {"baseline": "theirs", "benchmark": "beir", "task": task, "metric": "ndcg_cut_10", "value": value}
    return row | {"mteb_task": name, "mteb_model": model, "mteb_revision": revision}


def below_ours(scores, rows):
    schema = {"mteb_model": pl.String, "mteb_revision": pl.String}
    return with_reported(pl.DataFrame(scores), pl.DataFrame(rows, schema_overrides=schema), CONFIGURATION)


def test_reported_scores_stand_below_ours_on_the_same_tasks_and_do_not_compete():
    scores = [search("ours", "beir_scifact", value, seed=seed) for seed, value in ((1, 50.0), (2, 54.0))]
    scores += [search("ours", "beir_scifact", 99.0, metric="recall_100"), search("bm25", "beir_scifact", 66.5, seed=0)]
    scores += [search("bm25", "beir_arguana", 40.0, seed=0), search("ours", "cite", 99.0, benchmark="holdout")]
    of = ("them/model", "0123456789abcdef")
    rows = [reported("beir_scifact", "SciFact", 64.5082, *of), reported("beir_nfcorpus", "NFCorpus", 31.6, *of)]
    table = below_ours(scores, rows)
    assert table.columns == ["model", "source", "NFCorpus nDCG@10", "SciFact nDCG@10"]
    assert table.rows() == [
        ("ours", "beir", "–", "52.0 ± 2.8"),
        ("bm25", "beir", "–", "66.5"),
        ("theirs", "reported: them/model 01234567", "31.6", "64.5"),
    ]
    best = {row[0].text: row[3].is_best for row in shown(table, ranking_of("reported")).rows}
    assert best == {"ours": False, "bm25": True, "theirs": False}


def test_of_a_file_without_a_model_no_name_is_known_and_without_reported_scores_there_is_no_table():
    rows = [reported("beir_scifact", "SciFact", 64.5)]
    [row] = below_ours([search("bm25", "beir_arguana", 40.0)], rows).to_dicts()
    assert row == {"model": "theirs", "source": "reported", "SciFact nDCG@10": "64.5"}
    none = pl.DataFrame(schema=dict.fromkeys(reported("a", "A", 1.0), pl.String))
    assert with_reported(pl.DataFrame([search("ours", "beir_scifact", 1.0)]), none, CONFIGURATION).is_empty()
