"""The report's tables of models say what the scores say, and what has none; and what it says about popularity."""

from itertools import product

import polars as pl
import pyarrow as pa
import pytest
from tests.configurations import recorded
from tests.report.made_run import curve
from tests.workflow.conftest import SMALL

from cocite.config.benchmarks import declared
from cocite.config.configuration import configure
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_table
from cocite.evaluation.benchmark import write_rows
from cocite.report.inputs import graph_embeddings
from cocite.report.page import ranking_of, shown
from cocite.report.results import empty_frame, read_scored
from cocite.report.scores import (
    by_year,
    difficulties,
    empty_fields,
    failures,
    found_by_citations,
    incomplete,
    losses,
    models_by_format,
    popularity_in_words,
    same_authors_in_words,
    tasks,
)

MODEL = {"triplets": "near", "encoder": "e", "lr": 0.1}
BAND = {"sampler": "neighbours", "embedding": "g", "per_query": 7, "k_positive": 25}
CONFIGURATION = {
    "triplets": {
        "near": {**BAND, "k_negative": 1000},
        "far": {**BAND, "k_negative": [4000, 5000]},
        "fewer": {**BAND, "k_negative": 1000, "per_query": 5},
    },
    "models": {"infonce": {**MODEL, "loss": {"kind": "infonce"}}, "triplet": {**MODEL, "loss": {"kind": "triplet"}}},
    "encoders": {"e": {}},
    "benchmarks": {"holdout": {"kind": "holdout"}, "sre": {"kind": "scirepeval"}},
}


def score(model, value, task="fos", *, benchmark="sre", metric=None, format=None, seed=1, evaluation=1, mode="both"):
    known = declared(task)
    of = {"benchmark": benchmark, "task": task, "metric": metric or known.metrics[0], "format": format or known.format}
    counts = {"documents": 90, "missing": 0, "unscored": 0}
    return {"model": model, "seed": seed, "evaluation_seed": evaluation, "value": value, "mode": mode, **of, **counts}


def by_format(*scores, **configuration):
    return models_by_format(pl.DataFrame(scores), recorded({**CONFIGURATION, **configuration}))


def cells(column, *scores, **configuration):
    table = by_format(*scores, **configuration)
    return dict(zip(table["model"], table[column], strict=True))


OF_CLASSES = "sre: classification"


def test_a_format_is_the_mean_over_the_first_metric_of_each_task():
    values = [
        *(("beir", "beir_scifact", "ndcg_cut_10", 60.0), ("beir", "beir_scifact", "recall_100", 90.0)),
        *(("beir", "beir_nfcorpus", "ndcg_cut_10", 30.0), ("beir", "beir_nfcorpus", "recip_rank_10", 70.0)),
        *(("cube", "csfcube_method", metric, 40.0) for metric in declared("csfcube_method").metrics[1:]),
        ("cube", "csfcube_method", declared("csfcube_method").metrics[0], 80.0),
        ("sre", "biomimicry", "f1_with_few_shot", 50.0),
    ]
    scores = [score("bm25", value, task, benchmark=name, metric=metric) for name, task, metric, value in values]
    beir = {"kind": "beir", "datasets": {"scifact": "x", "nfcorpus": "y"}}
    benchmarks = {"sre": {"kind": "scirepeval"}, "beir": beir, "cube": {"kind": "csfcube"}}
    assert by_format(*scores, benchmarks=benchmarks).to_dicts() == [
        {"model": "bm25", OF_CLASSES: "50.0", "beir: search": "45.0", "cube: proximity": "80.0"}
    ]


@pytest.mark.parametrize(
    ("listed", "cell"),
    [(["csfcube_background", "csfcube_method", "csfcube_all"], "20.0"), (["csfcube_all"], "90.0")],
)
@pytest.mark.parametrize("folds", [False, True])
def test_a_task_that_repeats_the_queries_of_others_is_not_averaged_with_them(listed, cell, folds):
    values = {"csfcube_background": 10.0, "csfcube_method": 30.0, "csfcube_all": 90.0}
    metric = "map_folds" if folds else "map"
    scores = [score("bm25", values[task], task, benchmark="cube", metric=metric) for task in listed]
    table = by_format(*scores, benchmarks={"cube": {"kind": "csfcube", "folds": folds, "tasks": listed}})
    assert table.to_dicts() == [{"model": "bm25", "cube: proximity": cell}]


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        ({(1, 1, "fos"): 60, (1, 1, "drsm"): 80, (2, 1, "fos"): 70, (2, 1, "drsm"): 74}, "71.0 ± 1.4"),  # 70 and 72
        # Of 62 and 72; of all four, 6.0.
        ({(1, 1, "fos"): 60, (1, 2, "fos"): 64, (2, 1, "fos"): 70, (2, 2, "fos"): 74}, "67.0 ± 7.1"),
        ({(0, 1, "fos"): 60, (0, 2, "fos"): 64}, "62.0 ± 2.8"),
    ],
)
def test_a_format_is_the_mean_of_its_tasks_and_deviates_over_training_seeds_or_over_evaluation_seeds(values, cell):
    scores = [
        score("triplet", float(value), task, seed=seed, evaluation=of) for (seed, of, task), value in values.items()
    ]
    assert cells(OF_CLASSES, *scores) == {"triplet": cell}


def test_a_mean_that_lacks_a_task_says_over_how_many_it_is():
    scores = [score("triplet", 60.0), score("triplet", 80.0, "drsm"), score("infonce", 70.0)]
    assert cells(OF_CLASSES, *scores) == {"triplet": "70.0", "infonce": "70.0 (1 of 2 tasks)"}


def test_the_holdout_has_a_column_for_each_task_and_metric():
    asked = [("cite", "map"), ("cite", "ndcg"), ("cocite", "map")]
    scores = [score("bm25", 50.0, task, benchmark="holdout", metric=metric) for task, metric in asked]
    assert by_format(*scores).columns == [
        "model",
        "holdout: papers it cites, MAP",
        "holdout: papers it cites, nDCG",
        "holdout: papers cited with it, MAP",
    ]


def test_models_and_benchmarks_come_as_configured_formats_and_modes_as_in_the_literature():
    formats, modes = ("search", "regression", "classification"), ("correct", "compat")
    names = ("bm25", "triplet", "untrained_e", "infonce", "random")
    scores = [
        score(name, 1.0, benchmark=benchmark, format=format, mode=mode)
        for name, benchmark, format, mode in product(names, "az", formats, modes)
    ]
    table = by_format(*scores, benchmarks={key: {"kind": "scirepeval"} for key in ("z", "a")})
    assert table["model"].to_list() == ["infonce", "triplet", "untrained_e", "bm25", "random"]
    of_columns = product("za", ("classification", "regression", "search"), ("compat", "correct"))
    assert table.columns[1:] == [f"{name}: {format} ({mode})" for name, format, mode in of_columns]


def test_a_model_that_was_not_scored_on_a_format_has_a_dash_and_a_mode_is_named_where_there_are_two():
    table = by_format(score("triplet", 1.0, mode="compat"), score("bm25", 2.0, "search"))
    assert table.to_dicts() == [
        {"model": "triplet", "sre: classification (compat)": "1.0", "sre: search": "–"},
        {"model": "bm25", "sre: classification (compat)": "–", "sre: search": "2.0"},
    ]


def test_a_run_without_benchmarks_hold_outs_or_graph_embeddings_has_empty_tables(tmp_path):
    nothing = recorded({"models": {}, "encoders": {}, "benchmarks": {}, "baselines": {}})
    scores = read_scored(tmp_path, nothing, "scores")
    assert models_by_format(scores, nothing).columns == ["model"]
    assert graph_embeddings({}, nothing).is_empty()
    assert by_year(empty_frame("scores_by_year"), nothing).is_empty()
    assert found_by_citations(empty_frame("scores_by_citations")).is_empty()
    assert popularity_in_words(pl.DataFrame(schema=["model"]), nothing) == []


def test_what_could_not_be_scored_is_listed_by_benchmark_and_task():
    rows = [("m", 2, "sre", "fos", "too few"), ("m", 1, "sre", "fos", "too few"), ("n", 1, "sre", "drsm", "no vector")]
    found = pl.DataFrame(rows, schema=["model", "seed", "benchmark", "task", "reason"], orient="row")
    assert failures(found).rows() == [
        ("sre", "drsm", "n", "1", "no vector"),
        ("sre", "fos", "m", "1", "too few"),
        ("sre", "fos", "m", "2", "too few"),
    ]


def test_a_benchmark_has_a_row_for_each_model_and_a_column_for_each_metric_of_its_tasks():
    scores = [score("random", 9.96, seed=0), score("triplet", 60.0), score("triplet", 62.0, seed=2)]
    found = tasks(pl.DataFrame([*scores, score("random", 5.0, "drsm", mode="compat")]), recorded(CONFIGURATION))
    assert list(found) == ["sre"]
    assert found["sre"].to_dicts() == [
        {"model": "triplet", "DRSM, macro F1 (compat)": "–", "fields of study, macro F1": "61.0 ± 1.4"},
        {"model": "random", "DRSM, macro F1 (compat)": "5.0", "fields of study, macro F1": "10.0"},
    ]


def searched(task, unfindable, copies):
    return score("triplet", 60.0) | {"task": task, "searched": 80, "copies": copies, "unfindable": unfindable}


def test_tasks_that_lack_documents_or_have_what_no_model_can_find_or_tell_apart_are_listed():
    lacking = score("other", 60.0) | {"missing": 3, "unscored": 3}
    found = incomplete(pl.DataFrame([score("triplet", 60.0), lacking, score("triplet", 50.0, "drsm")]))
    assert found.rows() == [("sre", "fos", "3 of 90", "3")]  # the most that any model lacks
    scores = [searched("a", 3, 0), searched("b", 0, 9), searched("c", 0, 0)]
    found = incomplete(pl.DataFrame([*scores, lacking | {"searched": None, "copies": None, "unfindable": None}]))
    columns = ("documents without a vector", "left out of the score")
    columns += ("judged relevant, but not in the collection", "documents that repeat a text")
    assert found.columns == ["benchmark", "task", *columns]
    assert found.rows() == [
        ("sre", "a", "0 of 90", "0", "3", "0 of 80"),
        ("sre", "b", "0 of 90", "0", "0", "9 of 80"),
        ("sre", "fos", "3 of 90", "3", "–", "–"),
    ]


def compared(table, curves=None, **models):
    """The models that a table compares."""
    configuration = {**CONFIGURATION, "models": models}
    curves = curves or dict.fromkeys(models, curve((1, 0.5, 0.7)))
    return table(pl.DataFrame([score(name, 1.0) for name in models]), curves, recorded(configuration))


def test_losses_are_compared_by_the_accuracy_of_the_state_that_was_kept_over_the_seeds():
    seeds = pl.concat([curve((1, 0.4, 0.8), (2, 0.5, 0.9), seed=1), curve((1, 0.6, 0.5), (2, 0.4, 0.84), seed=2)])
    curves = {"triplet": seeds, "infonce": curve((1, 0.5, 0.7), (2, 0.4, 0.8), (3, 0.6, 0.9))}
    table = compared(losses, curves, **CONFIGURATION["models"])
    accuracies = dict(zip(table["loss"], table["validation accuracy"], strict=True))
    assert accuracies == {"infonce": "80.0", "triplet": "82.0 ± 2.8"}  # 80 and 84


def test_a_model_that_differs_in_more_than_its_loss_is_not_compared():
    long = {**MODEL, "loss": {"kind": "angle", "scale": 20.0}, "lr": 9}
    assert compared(losses, **CONFIGURATION["models"], long=long)["model"].to_list() == ["infonce", "triplet"]
    assert compared(losses, triplet=CONFIGURATION["models"]["triplet"]).is_empty()


@pytest.mark.parametrize(
    ("other", "rows"),
    [
        ({"triplets": "far"}, [("first", "25", "1000", "70.0"), ("second", "25", "4000–5000", "70.0")]),
        ({"triplets": "fewer"}, []),
        ({"triplets": "far", "lr": 9}, []),
    ],
)
def test_models_are_compared_by_their_bands_if_they_differ_in_nothing_else(other, rows):
    first = CONFIGURATION["models"]["triplet"]
    table = compared(difficulties, first=first, second={**first, **other})
    found = [] if table.is_empty() else table.select("model", "k⁺", "k⁻", "validation accuracy").rows()
    assert found == rows


READING = {
    "encoders": {
        **{"plain": {}, "specter": {"text": ["title", "abstract", "venue", "authors"]}},
        "years": {"text": ["title", "year"]},
    },
    "models": {"m": {"encoder": "specter"}, "further": {"from": "m"}, "p": {"encoder": "plain"}},
    "benchmarks": {"b": {"kind": "scidocs"}},
}
ALL = "everything that reads texts"
PAPER = {"title": "A title", "abstract": "An abstract", "is_query": False}
QUERY = {"title": "some words", "abstract": None, "is_query": True}


def write_documents(results, rows):
    documents = [{"document": str(n), "more": [], **row} for n, row in enumerate(rows)]
    schema = empty_schema(TABLES["documents"])
    if not any("is_query" in row for row in documents):
        schema = pa.schema([field for field in schema if field.name != "is_query"])
    path = results / "evaluation/b/documents.parquet"
    write_table(path, "documents", pa.Table.from_pylist(documents, schema=schema))


@pytest.mark.parametrize(
    ("documents", "fields", "expected"),
    [
        ([PAPER], [("0", ("Venue", ["A"], 1999))], []),
        ([PAPER], [("0", (None, ["A"], 1999))], [("b", "venue", 1, "untrained_specter, m, further")]),
        ([PAPER, PAPER], [("1", ("Venue", [], None)), ("0", (None, None, None))], ["authors", "year"]),
        ([PAPER], [], ["venue", "authors", "year"]),
        ([PAPER | {"abstract": None}, PAPER | {"abstract": ""}], [("0", ("V", ["A"], 1))], [("b", "abstract", 2, ALL)]),
        ([PAPER | {"abstract": None}, PAPER], [("0", ("V", ["A"], 1))], []),
        ([PAPER | {"abstract": None}, QUERY | {"abstract": "of a query"}], [("0", ("V", ["A"], 1))], ["abstract"]),
        ([QUERY], [("0", ("V", ["A"], 1))], []),
        ([PAPER | {"title": None}], [("0", ("V", ["A"], 1))], ["title"]),
    ],
)
def test_a_field_that_is_empty_for_every_document_is_named_with_what_reads_it(tmp_path, documents, fields, expected):
    write_documents(tmp_path, documents)
    write_rows(
        tmp_path / "evaluation/b/document_fields.parquet",
        "document_fields",
        [(name, *values) for name, values in fields],
    )
    found = empty_fields(tmp_path, recorded(READING)).rows()
    assert [row if isinstance(expected[at], tuple) else row[1] for at, row in enumerate(found)] == expected


def test_without_an_encoder_that_reads_more_no_further_field_is_looked_at(tmp_path):
    write_documents(tmp_path, [{"title": "A title", "abstract": None}])
    plain = {"encoders": {"plain": {}}, "models": {}, "benchmarks": {"b": {"kind": "beir"}}}
    assert empty_fields(tmp_path, recorded(plain)).rows() == [("b", "abstract", 1, ALL)]
    assert empty_fields(tmp_path, recorded(plain | {"benchmarks": {}})).is_empty()


def of_year(model, seed, year, value, queries, task="cite", metric="map"):
    keys = {"model": model, "seed": seed, "benchmark": "later", "task": task, "metric": metric, "year": year}
    return {**keys, "queries": queries, "value": value, "error": 1.0}


def test_scores_by_year_have_a_column_for_each_year_and_say_how_many_queries_it_has():
    found = [
        *(of_year("bm25", 0, 2021, 99.0, 2), of_year("bm25", 0, 2020, 30.0, 9)),
        *(of_year("infonce", 1, 2020, 40.0, 9), of_year("infonce", 1, 2021, 60.0, 2)),
        of_year("infonce", 2, 2020, 50.0, 8),  # a query of it has no vector
        of_year("infonce", 1, 2022, 20.0, 1, "cite_search", "recall_cap_20"),
    ]
    table = by_year(pl.DataFrame(found), recorded({**CONFIGURATION, "baselines": {"bm25": {"kind": "bm25"}}}))
    assert table.rows() == [
        ("later", "papers it cites (whole corpus), R@20", "number of queries", "–", "–", "1"),
        ("later", "papers it cites (whole corpus), R@20", "infonce", "–", "–", "20.0"),
        ("later", "papers it cites, MAP", "number of queries", "9", "2", "–"),
        ("later", "papers it cites, MAP", "infonce", "45.0 ± 7.1", "60.0", "–"),
        ("later", "papers it cites, MAP", "bm25", "30.0", "99.0", "–"),
    ]
    assert table.columns == ["benchmark", "task", "model", "2020", "2021", "2022"]
    best = [[cell.text for cell in row if cell.is_best] for row in shown(table, ranking_of("by_year")).rows]
    assert best == [[], [], [], ["45.0 ± 7.1"], ["99.0"]]


def found(model, seed, citations, recall, share):
    keys = {"model": model, "seed": seed, "benchmark": "holdout", "task": "cite_search", "citations": citations}
    return {**keys, "recall": recall, "error": 1.0, "queries": 10, "share": share}


def test_recall_by_citations_is_a_mean_over_seeds_and_a_class_without_papers_has_a_dash():
    rows = [
        *(found("m", 1, "0", 10.0, 30.0), found("m", 2, "0", 20.0, 40.0), found("m", 1, "over 10", None, 1.0)),
        *(found("m", 1, "top 1%", 50.0, 2.0), found("m", 2, "top 1%", 60.0, 4.0), found("bm25", 0, "0", 7.0, 3.0)),
    ]
    model, words = found_by_citations(pl.DataFrame(rows)).to_dicts()
    assert (model["model"], model["cited 0 times"], model["cited over 10 times"]) == ("m", "15.0 ± 7.1", "–")
    assert model["answers of the 1% most cited"] == "3.0 ± 1.4"
    assert (words["model"], words["cited 0 times"], words["answers of the 1% most cited"]) == ("bm25", "7.0", "–")


def test_a_sentence_says_what_citations_alone_score_on_each_hold_out():
    configuration = configure(SMALL)
    values = {"cite": 56.1, "cocite": 64.9, "cite_matched": 24.9}
    keys = {"model": "popularity", "seed": 0, "benchmark": "holdout", "metric": "map"}
    scores = pl.DataFrame([{**keys, "task": task, "value": value} for task, value in values.items()])
    assert popularity_in_words(scores, configuration) == [
        "On holdout, a ranking by citation counts has a MAP of 56.1 (papers it cites) and 64.9 (papers cited with "
        "it); with candidates that are cited as often, 24.9 (papers it cites)."
    ]
    assert popularity_in_words(scores.clear(), configuration) == []


def test_a_sentence_says_how_many_relevant_papers_share_an_author_with_their_query():
    counts = {
        "task cite: relevant papers whose authors are known, and the query's (kept)": 200,
        "task cite: relevant papers by an author of the query (kept)": 23,
        "task cocite: relevant papers whose authors are known, and the query's (kept)": 100,
        "held-out paper without text": 4,
    }
    rows = [{"stage": "evaluation", "step": "holdout", "reason": of, "count": count} for of, count in counts.items()]
    assert same_authors_in_words(pl.DataFrame(rows), configure(SMALL)) == [
        "On holdout, an author of the query wrote 11.5% (papers it cites) and 0.0% (papers cited with it) of the "
        "relevant papers."
    ]
    assert same_authors_in_words(pl.DataFrame(rows[3:]), configure(SMALL)) == []
