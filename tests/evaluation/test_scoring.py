"""The tables scores and outcomes: their rows, missing vectors, seeds and modes."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import f1_score
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.benchmarks import TASKS, declared
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import SciRepEval
from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vector_column, write_table
from cocite.evaluation.benchmark import Benchmark, write_tables
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import score_task, write_results
from cocite.evaluation.vectors import Vectors, joined, read_blocks

SEARCH = next(task for task in SCIREPEVAL if task.name == "search")

RUN = Run(model="m", training_seed=2, benchmark="b", modes=["compat"], evaluation_seeds=[5, 6])


def vectors_for(documents, dimension=8, seed=0):
    ordered = sorted(documents)
    matrix = np.random.default_rng(seed).normal(size=(len(ordered), dimension)).astype(np.float32)
    return Vectors({document: row for row, document in enumerate(ordered)}, matrix)


def rankings(queries=30, candidates=20, relevant=4):
    """Queries of 20 candidates each, of which the first four are relevant."""
    return {f"q{q}": {f"q{q}-c{c}": int(c < relevant) for c in range(candidates)} for q in range(queries)}


def score(tmp_path, benchmark, vectors, run=RUN):
    """The scores of every task of a benchmark, each of which is scored by itself."""
    return score_all(tmp_path, benchmark, run, lambda task, asks: score_task(task, asks, vectors, run))


def score_all(folder, benchmark, run, of_task):
    write_tables(benchmark, folder)
    write_results(tasks_in(benchmark), folder, run, files_in(folder), of_task)
    return rows_in(folder, "scores")


def tasks_in(benchmark):
    return [TASKS[name] for name in sorted({*benchmark.judgements, *(task for task, _ in benchmark.labels)})]


def documents_in(benchmark):
    return {document for task in tasks_in(benchmark) for document in benchmark.documents_of(task)}


def files_in(folder):
    return {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures")}


def rows_in(folder, table):
    return read_table(folder / f"{table}.parquet", table).to_pylist()


def test_a_ranking_has_one_row_a_metric_whatever_the_seeds(tmp_path):
    benchmark = Benchmark(judgements={"cite": rankings()})
    rows = score(tmp_path, benchmark, vectors_for(documents_in(benchmark)))
    assert [(row["metric"], row["evaluation_seed"], row["mode"]) for row in rows] == [
        ("map", 5, "both"),
        ("ndcg", 5, "both"),
    ]
    assert {row["format"] for row in rows} == {"proximity"}
    assert {(row["model"], row["seed"], row["benchmark"]) for row in rows} == {("m", 2, "b")}
    assert {(row["documents"], row["missing"]) for row in rows} == {(30 * 21, 0)}


def test_a_supervised_task_has_one_row_a_seed(tmp_path):
    labels = {("drsm", split): {f"{split}{n}": [str(n % 2)] for n in range(40)} for split in ("train", "test")}
    benchmark = Benchmark(labels=labels)
    rows = score(tmp_path, benchmark, vectors_for({document for of in labels.values() for document in of}))
    assert [(row["evaluation_seed"], row["mode"], row["format"]) for row in rows] == [
        (5, "compat", "classification"),
        (6, "compat", "classification"),
    ]
    assert {(row["documents"], row["missing"]) for row in rows} == {(80, 0)}


def test_planted_neighbours_are_found_and_random_vectors_find_chance(tmp_path):
    benchmark = Benchmark(judgements={"cite": rankings(queries=200)})
    vectors = vectors_for(documents_in(benchmark))
    by_chance = score(tmp_path, benchmark, vectors)[0]["value"]
    for query, candidates in benchmark.judgements["cite"].items():
        for candidate, relevance in candidates.items():
            if relevance:
                vectors.matrix[vectors.rows[candidate]] = vectors.matrix[vectors.rows[query]] + 0.01
    assert score(tmp_path, benchmark, vectors)[0]["value"] == pytest.approx(100)
    draw = np.random.default_rng(1)
    simulated = [np.mean((np.arange(4) + 1) / (np.sort(draw.permutation(20)[:4]) + 1)) for _ in range(20_000)]
    assert by_chance == pytest.approx(100 * np.mean(simulated), abs=3)


def test_a_few_missing_vectors_are_counted(tmp_path):
    benchmark = Benchmark(judgements={"cite": rankings()})
    documents = documents_in(benchmark) - {"q3", "q5-c0"}
    assert {row["missing"] for row in score(tmp_path, benchmark, vectors_for(documents))} == {2}


def test_missing_vectors_of_labelled_documents_are_left_out_of_both_splits(tmp_path):
    labels = {("drsm", split): {f"{split}{n}": [str(n % 2)] for n in range(200)} for split in ("train", "test")}
    documents = {document for of in labels.values() for document in of} - {"train7", "test8"}
    assert {row["missing"] for row in score(tmp_path, Benchmark(labels=labels), vectors_for(documents))} == {2}


def test_vectors_that_are_not_finite_are_refused(tmp_path):
    path = tmp_path / "embeddings.parquet"
    vectors = vector_column(np.array([[1.0, 2.0], [np.nan, 0.0]]))
    write_table(path, "document_embeddings", pa.table({"adapter": [""] * 2, "document": ["a", "b"], "vector": vectors}))
    with pytest.raises(InputError, match="the vector of the document 'b' holds values that are not finite"):
        joined(read_blocks(path, SEARCH, [], ["a", "b"]))


def test_vectors_are_read_for_the_documents_that_are_asked_for(tmp_path):
    path = tmp_path / "embeddings.parquet"
    vectors = vector_column(np.array([[1.0], [np.inf], [3.0]]))
    rows = {"adapter": [""] * 3, "document": ["a", "b", "c"], "vector": vectors}
    write_table(path, "document_embeddings", pa.table(rows))
    read = joined(read_blocks(path, SEARCH, [], ["c", "a", "unknown"]))
    assert read.of(["c", "a"]).tolist() == [[3], [1]]
    assert "unknown" not in read.rows


@pytest.mark.parametrize(
    ("present", "read"),
    [
        (["", "proximity", "search"], {"q": "search", "a": "proximity"}),
        (["", "search"], {"q": "search", "a": ""}),
        (["proximity"], {"q": "proximity", "a": "proximity"}),
        ([""], {"q": "", "a": ""}),
    ],
)
def test_a_search_sees_queries_by_its_own_adapter_and_documents_by_that_of_proximity(tmp_path, present, read):
    path, documents = tmp_path / "embeddings.parquet", ["a", "q"]
    rows = [(adapter, document, [float(place)]) for place, adapter in enumerate(present) for document in documents]
    adapters, names, vectors = zip(*rows, strict=True)
    columns = {"adapter": adapters, "document": names, "vector": vector_column(np.array(vectors))}
    write_table(path, "document_embeddings", pa.table(columns))
    asked = Benchmark(judgements={SEARCH.name: {"q": {"a": 1}}})
    found = joined(read_blocks(path, SEARCH, asked.queries_alone(SEARCH), documents))
    numbers = {document: present[int(found.of([document])[0, 0])] for document in found.rows}
    assert numbers == read


def test_a_query_that_is_searched_as_a_document_is_seen_as_a_document():
    task = declared("beir_own")
    asked = Benchmark(judgements={task.name: {"1": {"2": 1}, "words": {"1": 1}}}, collections={task.name: {"1", "2"}})
    assert asked.queries_alone(task) == {"words"}


def test_scirepeval_averages_over_25_values():
    values = {
        name: sum(len(task.metrics) for task in SCIREPEVAL if task.format == name)
        for name in ("classification", "regression", "proximity", "search")
    }
    assert values == {"classification": 6, "regression": 5, "proximity": 11, "search": 3}
    outside = [task for task in SCIREPEVAL if task.kind != "reviewers"]
    groups = {
        group: sum(len(t.metrics) for t in outside if t.group == group)
        for group in ("in-train", "out-of-train", "scidocs")
    }
    assert groups == {"in-train": 7, "out-of-train": 8, "scidocs": 10}


@pytest.mark.parametrize("mode", get_args(SciRepEval.model_fields["mode"].annotation))
def test_the_command_scores_what_the_tables_hold_in_each_mode_of_a_configuration(mode, tmp_path):
    tables = tmp_path / "b"
    write_tables(Benchmark(judgements={name: {"q": {"a": 1, "b": 0}} for name in ("cite", "relish")}), tables)
    vectors = vector_column(np.array([[1.0], [5.0], [0.0]]))
    embeddings = tmp_path / "embeddings.parquet"
    write_table(
        embeddings,
        "document_embeddings",
        pa.table({"adapter": [""] * 3, "document": ["a", "b", "q"], "vector": vectors}),
    )
    written = {name: tmp_path / f"{name}.parquet" for name in ("scores", "outcomes", "failures")}
    options = {
        "tables": tables,
        "model": "m",
        "training-seed": 1,
        "mode": mode,
        "largest-missing": 0.01,
        "threads": 1,
        "embeddings": embeddings,
        "tasks": "cite,relish",
    }
    arguments = [str(part) for name, value in (options | written).items() for part in (f"--{name}", value)]
    result = CliRunner().invoke(app, ["evaluation", "score", "1", "2", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    rows = read_table(written["scores"], "scores").to_pylist()
    assert {(row["benchmark"], row["task"], row["metric"], row["value"]) for row in rows} == {
        ("b", "cite", "map", 100),
        ("b", "cite", "ndcg", 100),
        ("b", "relish", "ndcg", 100),
    }


def two_classes(test=40):
    sizes = {"train": 40, "test": test}
    return {("drsm", split): {f"{split}{n}": [str(n % 2)] for n in range(sizes[split])} for split in sizes}


def documents_of(labels):
    return {document for of_split in labels.values() for document in of_split}


def outcomes_in(folder):
    return rows_in(folder, "outcomes")


def test_all_modes_are_scored_in_one_run_and_say_which_they_are(tmp_path):
    labels = two_classes()
    benchmark = Benchmark(labels=labels, judgements={"relish": rankings(queries=3)})
    vectors = vectors_for(documents_in(benchmark))
    rows = score(tmp_path, benchmark, vectors, replace(RUN, modes=["compat", "correct", "sklearn"]))
    assert sorted((row["task"], row["evaluation_seed"], row["mode"]) for row in rows) == [
        *(("drsm", seed, mode) for seed in (5, 6) for mode in ("compat", "correct", "sklearn")),
        ("relish", 5, "both"),
    ]


def test_the_mean_outcome_of_the_queries_is_the_score(tmp_path):
    benchmark = Benchmark(judgements={"cite": rankings()})
    rows = score(tmp_path, benchmark, vectors_for(documents_in(benchmark)))
    for row in rows:
        values = [found["value"] for found in outcomes_in(tmp_path) if found["metric"] == row["metric"]]
        assert len(values) == row["scored"] == 30
        assert row["value"] == pytest.approx(np.mean(values))


def test_the_outcomes_of_a_classification_are_its_predictions(tmp_path):
    labels = two_classes()
    rows = score(tmp_path, Benchmark(labels=labels), vectors_for(documents_of(labels)))
    for row in rows:
        found = [of for of in outcomes_in(tmp_path) if of["evaluation_seed"] == row["evaluation_seed"]]
        assert {of["item"]: of["expected"] for of in found} == labels["drsm", "test"]
        pairs = [(of["expected"][0], of["predicted"][0]) for of in found]
        assert row["value"] == pytest.approx(100 * f1_score(*zip(*pairs, strict=True), average="macro"))


def test_queries_and_test_documents_that_are_left_out_are_counted(tmp_path):
    labels, run = two_classes(test=200), replace(RUN, largest_missing=0.5)
    benchmark = Benchmark(labels=labels, judgements={"relish": rankings(queries=4, candidates=3, relevant=1)})
    lost = {"q0", "q1-c0", "q1-c1", "q1-c2", "q2-c0", "test1", "test2", "train3"}
    rows = score(tmp_path, benchmark, vectors_for(documents_in(benchmark) - lost), run)
    counts = {row["task"]: (row["documents"], row["missing"], row["scored"], row["unscored"]) for row in rows}
    assert counts == {"relish": (16, 5, 2, 2), "drsm": (240, 3, 198, 2)}


def test_an_adjusted_metric_weighs_queries_by_their_inverse_propensity(tmp_path, monkeypatch):
    task = Task(name="recommendation", kind="ranking", group="scidocs", metrics=("P_1", "P_1_adjusted"))
    monkeypatch.setitem(TASKS, task.name, task)
    judgements = {"q": {"a": 1, "b": 0}, "r": {"a": 0, "b": 1}}
    benchmark = Benchmark(judgements={task.name: judgements}, weights={task.name: {"q": 1 / 0.5, "r": 1 / 0.1}})
    vectors = Vectors({name: row for row, name in enumerate("qrab")}, np.array([[0], [0], [1], [2]], np.float32))
    rows = score(tmp_path, benchmark, vectors)
    assert {row["metric"]: row["value"] for row in rows} == {
        "P_1": pytest.approx(50),
        "P_1_adjusted": pytest.approx(100 * 2 / (2 + 10)),
    }
    assert {of["item"]: of["weight"] for of in outcomes_in(tmp_path) if of["metric"] == "P_1_adjusted"} == {
        "q": 2,
        "r": 10,
    }


def test_averages_and_comparisons_are_made_from_what_was_scored(tmp_path):
    benchmark = Benchmark(judgements={"cite": rankings()})
    for model in ("one", "two"):
        vectors = vectors_for(documents_in(benchmark), seed=len(model) + ord(model[0]))
        score(tmp_path / model, benchmark, vectors, replace(RUN, model=model))
        for kind in ("scores", "outcomes"):
            (tmp_path / kind / "small").mkdir(parents=True, exist_ok=True)
            (tmp_path / model / f"{kind}.parquet").rename(tmp_path / kind / "small" / f"{model}-1.parquet")
    for command, kind in (("average", "scores"), ("compare", "outcomes")):
        more = ["--resamples", "100", "--seed", "1"] if command == "compare" else []
        options = [
            "--suites",
            '{"small": ["cite"]}',
            "--runs",
            "one-1,two-1",
            "--output",
            str(tmp_path / f"{command}.parquet"),
            *more,
        ]
        assert CliRunner().invoke(app, ["evaluation", command, str(tmp_path / kind), *options]).exit_code == 0
    means = {
        (row["model"], row["average"]): row["mean"]
        for row in read_table(tmp_path / "average.parquet", "averages").to_pylist()
    }
    for row in read_table(tmp_path / "compare.parquet", "comparisons").to_pylist():
        difference = means[row["model"], row["metric"]] - means[row["other"], row["metric"]]
        assert row["difference"] == pytest.approx(difference)
