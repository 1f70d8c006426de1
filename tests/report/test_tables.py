"""The report's tables say what the scores say."""

import polars as pl
import pyarrow as pa
import pytest

from cocite.report.inputs import (
    band_quality,
    graph_embeddings,
    leaks,
    leaks_in_words,
    omissions,
    searches,
    triplet_sets,
)
from cocite.report.results import read_scored
from cocite.report.scores import models_by_format
from cocite.tables.files import write_omissions, write_table

MODEL = {"triplets": "t", "encoder": "e", "margin": 1.0, "lr": 0.1}
CONFIGURATION = {
    "models": {"infonce": {**MODEL, "loss": "infonce"}, "triplet": {**MODEL, "loss": "triplet"}},
    "encoders": {"e": {}},
    "benchmarks": {"holdout": {"kind": "holdout"}, "sre": {"kind": "scirepeval"}},
}


def score(
    model,
    value,
    *,
    benchmark="sre",
    task="fos",
    metric="f1",
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
        "metric": metric,
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


def test_a_graph_embedding_is_told_by_its_last_epoch_raw_and_filtered():
    rows = [(1, "mrr", True, 0.1), (2, "mrr", False, 0.25), (2, "mrr", True, 0.5), (2, "auc", False, 0.9)]
    table = pl.DataFrame(
        [
            {"epoch": epoch, "metric": metric, "filtered": filtered, "value": value, "edges": 1200}
            for epoch, metric, filtered, value in rows
        ]
    )
    told = {"embedding": "g", "graph": "cited", "epochs": "2", "held-out edges": "1,200"}
    assert graph_embeddings({"g": table}, {"embeddings": {"g": {"graph": "cited"}}}).to_dicts() == [
        {**told, "negatives": "raw", "MRR": "0.250", "AUC": "0.900"},
        {**told, "negatives": "filtered", "MRR": "0.500", "AUC": None},
    ]


@pytest.mark.parametrize("counts", [{"gone": 3, "never": 0}])
def test_what_was_left_out_is_told_by_step_and_what_never_occurred_is_not(tmp_path, counts):
    write_omissions(tmp_path / "corpus/omissions/ingest.parquet", counts)
    configuration = {"queries": {"from": "rule"}, "corpus": {}}
    assert omissions(tmp_path, configuration).rows() == [("corpus", "ingest", "gone", 3)]


def test_what_steps_of_entries_left_out_that_are_gone_is_not_told(tmp_path):
    steps = {
        "corpus": ["merge-papers-0", "read-triplets", "update-papers-0"],
        "graph": ["a-edges-0", "a-cocitations-0", "a-b-edges-0"],
        "neighbours": ["a_0", "a-b_0"],
        "triplets": ["a", "b"],
    }
    for stage, names in steps.items():
        for name in names:
            write_omissions(tmp_path / stage / f"omissions/{name}.parquet", {"gone": 1})
    configuration = {"queries": {"from": "rule"}, "corpus": {}}
    configuration |= {"graphs": {"a": {}}, "embeddings": {"a": {}}, "triplets": {"b": {}}}
    assert [row[:2] for row in omissions(tmp_path, configuration).rows()] == [
        ("corpus", "merge-papers"),
        ("graph", "a-cocitations"),
        ("graph", "a-edges"),
        ("neighbours", "a"),
        ("triplets", "b"),
    ]


def test_the_jobs_that_share_a_step_are_counted_together_and_names_that_end_in_numbers_are_not(tmp_path):
    for stage, name, count in [
        ("corpus", "merge-papers-0", 3),
        ("corpus", "merge-papers-10", 4),
        ("graph", "cited-2-edges-0", 1),
        ("graph", "cited-2-edges-1", 1),
        ("triplets", "cocite-25-1000", 5),
        ("triplets", "cocite-25-5000", 6),
    ]:
        write_omissions(tmp_path / stage / f"omissions/{name}.parquet", {"gone": count})
    configuration = {"queries": {"from": "rule"}, "corpus": {}, "graphs": {"cited-2": {}}}
    configuration["triplets"] = {"cocite-25-1000": {}, "cocite-25-5000": {}}
    assert omissions(tmp_path, configuration).rows() == [
        ("corpus", "merge-papers", "gone", 7),
        ("graph", "cited-2-edges", "gone", 2),
        ("triplets", "cocite-25-1000", "gone", 5),
        ("triplets", "cocite-25-5000", "gone", 6),
    ]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (["0", "0"], "2 columns of 1 tables were searched for papers that are kept out, and none was found."),
        (["1,200", "3"], "2 columns of 1 tables were searched for papers that are kept out: 1,203 were found."),
    ],
)
def test_the_leaks_are_summed_up_in_a_sentence(found, said):
    assert leaks_in_words(pl.DataFrame({"table": ["t", "t"], "papers found": found})) == said


def test_only_searches_that_are_not_exact_are_told_with_their_recall(tmp_path):
    row = {"metric": "l2", "index": "ivf", "k": 5000, "queries": 1200, "seconds": 0.4, "exact_seconds": 4.0}
    table = pa.Table.from_pylist([row | {"k": 10, "recall": 1.0}, row | {"recall": 0.98765}])
    write_table(tmp_path / "neighbours/listed/search_quality.parquet", "search_quality", table)
    embeddings = {"exact": {"neighbours": {"index": "flat"}}, "listed": {"neighbours": {"index": "ivf"}}}
    told = searches(tmp_path, {"embeddings": embeddings}).rows()
    assert told[0][5] == "1.000"
    assert told[1:] == [("listed", "ivf", "l2", "1,200", "5,000", "0.988", "0.4", "4.0")]


def test_leaks_are_told_by_table_and_column(tmp_path):
    row = {"path": "graph/g/edges", "table_name": "edges", "column_name": "source"}
    counts = {"rows": 12000, "kept_out": 1500, "leaked": 0}
    write_table(tmp_path / "corpus/leaks.parquet", "leaks", pa.Table.from_pylist([row | counts]))
    assert leaks(tmp_path).rows() == [("graph/g/edges", "source", "12,000", "1,500", "0")]


def test_a_run_without_benchmarks_or_graph_embeddings_has_empty_tables(tmp_path):
    nothing = {"models": {}, "encoders": {}, "benchmarks": {}}
    scores = read_scored(tmp_path, nothing, "scores")
    assert models_by_format(scores, nothing).columns == ["model"]
    assert graph_embeddings({}, nothing).is_empty()


def test_an_embedding_has_a_row_for_each_way_to_be_related_and_a_column_a_band():
    columns = {"first_rank": [1, 6, 96], "last_rank": [5, 10, 100], "papers": [8, 10, 10], "cited": [2, 0, 0]}
    wide = pl.DataFrame({**columns, "cocited": [6, 5, 1]})
    table = band_quality({"wide": wide, "narrow": wide.head(2)})
    assert table.columns == ["embedding", "neighbours", "ranks 1–5", "ranks 6–10", "ranks 96–100"]
    assert table.rows() == [
        ("wide", "co-cited with the query", "75.0", "50.0", "10.0"),
        ("wide", "citing it or cited by it", "25.0", "0.0", "0.0"),
        ("narrow", "co-cited with the query", "75.0", "50.0", "–"),
        ("narrow", "citing it or cited by it", "25.0", "0.0", "–"),
    ]


def test_a_set_of_triplets_has_its_size_its_queries_and_its_checks_in_a_row():
    counts = pl.DataFrame({"split": ["train", "train", "validation"], "count": [0, 5, 5], "queries": [2, 300, 10]})
    checks = pl.DataFrame(
        [
            {"check": "collision", "part": "pairs", "found": 3, "among": 1500},
            {"check": "in benchmark", "part": "scirepeval", "found": 0, "among": 70},
            {"check": "no text", "part": "query", "found": 0, "among": 310},
        ]
    )
    assert triplet_sets({"cocite": counts}, {"cocite": checks}).to_dicts() == [
        {
            "triplets": "cocite",
            "number": "1,550",
            "queries served": "310 of 312",
            "colliding pairs": "3 of 1,500",
            "papers of scirepeval": "0 of 70",
            "query papers without text": "0 of 310",
        }
    ]


def test_without_embeddings_and_triplets_their_tables_are_empty():
    assert len(band_quality({})) == len(triplet_sets({}, {})) == 0
