"""SciDocs and MDCR beside published values."""

import polars as pl
import pytest

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.mdcr import Mdcr
from cocite.report.matched import read_published
from cocite.report.published import COLUMNS, beside_published

CONFIGURATION = {
    "models": {"ours": {}},
    "encoders": {},
    "benchmarks": {"own": {"kind": "scidocs"}, "fields": {"kind": "mdcr"}, "sre": {"kind": "scirepeval"}},
}


def score(task, metric, value, *, benchmark="own", model="ours", seed=1, evaluation_seed=1, mode="both"):
    row = {"benchmark": benchmark, "model": model, "task": task, "metric": metric, "mode": mode}
    return row | {"seed": seed, "evaluation_seed": evaluation_seed, "value": value}


def test_a_model_has_its_value_in_the_column_of_the_literature():
    scores = [score("scidocs_view", "map", 70.0), score("scidocs_cocite", "ndcg", 1.0, model="random")]
    scores.append(score("mag", "f1_macro", 60.0, mode="compat"))
    scores += [score("mag", "f1_macro", 64.0, mode="correct"), score("mag", "f1_macro", 20.0, model="random")]
    rows = beside_published("scidocs", pl.DataFrame(scores), CONFIGURATION).to_dicts()
    ours, corrected, chance, *published = rows
    values = ("own (compat)", "60.0", "70.0", "–")
    assert (ours["source"], ours["MAG F1"], ours["view MAP"], ours["co-cite nDCG"]) == values
    assert (corrected["source"], corrected["MAG F1"], corrected["view MAP"]) == ("own (correct)", "64.0", "70.0")
    assert (chance["model"], chance["MAG F1"]) == ("random", "20.0")
    assert {row["source"] for row in published} == {"published"}
    values = {row["model"]: (row["MAG F1"], row["view MAP"], row["co-cite nDCG"]) for row in published}
    assert values["SPECTER [SPECTER, Table 1]"] == ("82.6", "83.8", "94.7")
    assert values["SPECTER [released evaluation of SciDocs]"] == ("81.95", "83.63", "94.77")
    assert values["SPECTERCL (1 × 5, τ .05) [SciAspect, Table 6.2]"] == ("81.99", "84.53", "95.82")


def test_what_was_not_published_on_any_of_our_tasks_has_no_row():
    found = beside_published(
        "scirepeval", pl.DataFrame([score("relish", "ndcg", 60.0, benchmark="sre")]), CONFIGURATION
    )
    assert found["source"].to_list() == ["sre"]


def test_a_metric_of_mdcr_is_the_plain_mean_over_the_fields():
    scores = [
        score(task, "map", value, benchmark="fields", seed=seed)
        for seed, values in ((1, (10.0, 30.0)), (2, (20.0, 24.0)))
        for task, value in zip(("mdcr_art", "mdcr_physics"), values, strict=True)
    ]
    ours, *published = beside_published("mdcr", pl.DataFrame(scores), CONFIGURATION).to_dicts()
    assert ours == {"model": "ours", "source": "fields", "MAP": "21.0 ± 1.4"}  # 20 and 22
    values = {row["model"].partition(" [")[0]: row["MAP"] for row in published}
    assert (values["SciNCL"], values["BM25"], values["SPECTERCL (1 × 5, τ .05)"]) == ("32.5704", "33.7", "33.7741")


def test_mdcr_by_field_has_the_map_of_each_field():
    scores = [score("mdcr_art", "map", 10.0, benchmark="fields"), score("mdcr_art", "ndcg", 50.0, benchmark="fields")]
    ours, *published = beside_published("mdcr_fields", pl.DataFrame(scores), CONFIGURATION).to_dicts()
    assert ours == {"model": "ours", "source": "fields", "Art": "10.0"}
    assert {row["model"]: row["Art"] for row in published}["BM25 [SciAspect, Table 6.8]"] == "38.2"


@pytest.mark.parametrize("column", ["MAP", "nDCG", "recall@5"])
def test_the_published_means_of_mdcr_are_those_of_its_fields(column):
    rows = read_published("mdcr").filter(pl.col(column).is_not_null()).with_columns(pl.col(column).cast(float))
    means = rows.filter(pl.col("field") != "mean").group_by("model").agg(pl.col(column).mean(), pl.len())
    stated = dict(rows.filter(field="mean").select("model", column).rows())
    assert all(fields == 19 and mean == pytest.approx(stated[model], abs=0.06) for model, mean, fields in means.rows())
    assert len(means) == (5 if column == "nDCG" else 10)


def test_the_published_averages_of_scidocs_are_over_their_twelve_values():
    rows = read_published("scidocs")
    columns = list(COLUMNS["scidocs"])
    computed = rows.select(pl.mean_horizontal(pl.col(columns).cast(float))).to_series()
    for mean, stated in zip(computed, rows["average"], strict=True):
        assert stated is None or mean == pytest.approx(float(stated), abs=0.06)
    assert rows.select(columns).null_count().sum_horizontal().item() == 0


def test_the_tasks_of_scirepeval_are_25_columns_and_the_four_of_reviewer_matching():
    assert len([task for task, _ in COLUMNS["scirepeval"].values() if not task.startswith("paper_reviewer")]) == 25
    assert len(COLUMNS["scirepeval"]) == 29


def test_a_task_of_scirepeval_has_mean_and_deviation_over_the_seeds_few_shot_stages_included():
    scores = [
        score("fos", "f1_macro_with_few_shot", value, benchmark="sre", evaluation_seed=seed, mode="compat")
        for seed, value in ((1, 40.0), (2, 42.0))
    ]
    scores.append(score("scidocs_cite", "map", 70.0, benchmark="sre"))
    ours, *published = beside_published("scirepeval", pl.DataFrame(scores), CONFIGURATION).to_dicts()
    assert ours == {"model": "ours", "source": "sre (compat)", "fos F1": "41.0 ± 1.4", "scidocs_cite MAP": "70.0"}
    assert (published[0]["model"], published[0]["scidocs_cite MAP"]) == ("SciBERT [SciAspect, Table 6.11]", "53.20")
    assert published[0]["fos F1"] == "–"


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


def test_without_such_a_benchmark_nothing_published_is_shown():
    scores = pl.DataFrame([score("cite", "map", 1.0, benchmark="other")])
    assert beside_published("scidocs", scores, CONFIGURATION).is_empty()
