"""SciDocs and MDCR beside published values."""

import polars as pl

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.mdcr import Mdcr
from cocite.report.published import COLUMNS, VALUES, beside_published

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
    ours, corrected, chance, published, contrastive = rows
    values = ("own (compat)", "60.0", "70.0", "–")
    assert (ours["source"], ours["MAG F1"], ours["view MAP"], ours["co-cite nDCG"]) == values
    assert (corrected["source"], corrected["MAG F1"], corrected["view MAP"]) == ("own (correct)", "64.0", "70.0")
    assert (chance["model"], chance["MAG F1"]) == ("random", "20.0")
    assert (published["model"], published["MAG F1"], published["co-cite nDCG"]) == ("SPECTER", "82.0", "94.8")
    assert (contrastive["model"], contrastive["MAG F1"], contrastive["co-cite nDCG"]) == ("SPECTERCL", "82.0", "–")


def test_what_was_not_published_on_any_of_our_tasks_has_no_row():
    found = beside_published(
        "scirepeval", pl.DataFrame([score("drsm", "f1_macro", 60.0, benchmark="sre")]), CONFIGURATION
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
    assert [(row["model"], row["MAP"]) for row in published] == [
        ("SciNCL", "32.6"),
        ("BM25", "33.7"),
        ("SPECTERCL", "33.8"),
    ]


def test_the_tasks_of_scirepeval_are_25_columns_and_the_four_of_reviewer_matching():
    assert len([task for task, _ in COLUMNS["scirepeval"].values() if not task.startswith("paper_reviewer")]) == 25
    assert len(COLUMNS["scirepeval"]) == 29


def test_a_task_of_scirepeval_has_mean_and_deviation_over_the_seeds_few_shot_stages_included():
    scores = [
        score("fos", "f1_macro_with_few_shot", value, benchmark="sre", evaluation_seed=seed, mode="compat")
        for seed, value in ((1, 40.0), (2, 42.0))
    ]
    scores.append(score("scidocs_cite", "map", 70.0, benchmark="sre"))
    ours, published, _ = beside_published("scirepeval", pl.DataFrame(scores), CONFIGURATION).to_dicts()
    assert ours == {"model": "ours", "source": "sre (compat)", "fos F1": "41.0 ± 1.4", "scidocs_cite MAP": "70.0"}
    assert (published["model"], published["scidocs_cite MAP"], published["fos F1"]) == ("SPECTER", "88.3", "–")


def test_every_column_is_a_metric_of_a_declared_task():
    named = [*COLUMNS["scidocs"].values(), *COLUMNS["scirepeval"].values()]
    assert all(metric in TASKS[task].metrics for task, metric in named)
    assert all(metric in Mdcr.declared[0].metrics for _, metric in COLUMNS["mdcr"].values())
    assert all(len(values) == len(COLUMNS[kind]) for kind, rows in VALUES.items() for values in rows.values())


def test_without_such_a_benchmark_nothing_published_is_shown():
    scores = pl.DataFrame([score("cite", "map", 1.0, benchmark="other")])
    assert beside_published("scidocs", scores, CONFIGURATION).is_empty()
