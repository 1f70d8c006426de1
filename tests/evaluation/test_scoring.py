"""The tables scores, outcomes and failures: their rows, missing vectors, seeds and modes.

What the data make impossible is a row of the table failures; what the machine makes impossible stops the job.
"""

from dataclasses import replace
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import f1_score
from tests.evaluation import folders
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.benchmarks import TASKS, declared
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import SciRepEval
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vector_column, write_table
from cocite.evaluation.benchmark import Benchmark, write_tables
from cocite.evaluation.scored import Vectors, joined, read_blocks
from cocite.evaluation.scoring import score_task, write_results

SEARCH = next(task for task in SCIREPEVAL if task.name == "search")

RUN = replace(folders.RUN, training_seed=2, evaluation_seeds=[5, 6])


def vectors_for(documents, dimension=8, seed=0):
    ordered = sorted(documents)
    matrix = np.random.default_rng(seed).normal(size=(len(ordered), dimension)).astype(np.float32)
    return Vectors({document: row for row, document in enumerate(ordered)}, matrix)


def rankings(queries=30, candidates=20, relevant=4):
    """Queries of 20 candidates each, of which the first four are relevant."""
    return {f"q{q}": {f"q{q}-c{c}": int(c < relevant) for c in range(candidates)} for q in range(queries)}


def score(folder, benchmark, vectors, run=RUN):
    """The scores of every task of a benchmark, each of which is scored by itself."""
    write_tables(benchmark, folder)
    tasks = [TASKS[name] for name in sorted(benchmark.tasks)]
    write_results(tasks, folder, run, files_in(folder), lambda task, asks: score_task(task, asks, vectors, run))
    return rows_in(folder, "scores")


def documents_in(benchmark):
    return {document for name in benchmark.tasks for document in benchmark.documents_of(TASKS[name])}


def files_in(folder):
    return {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures")}


def rows_in(folder, table):
    return read_table(folder / f"{table}.parquet", table).to_pylist()


def test_a_ranking_has_one_row_a_metric_whatever_the_seeds_and_the_mean_of_the_queries_is_the_score(tmp_path):
    benchmark = Benchmark(judgements={"cite": rankings()})
    rows = score(tmp_path, benchmark, vectors_for(documents_in(benchmark) - {"q3", "q5-c0"}))
    names = ("metric", "evaluation_seed", "mode", "format", "model", "seed", "benchmark", "documents", "missing")
    same = (5, "both", "proximity", "m", 2, "b", 30 * 21, 2)
    assert [tuple(row[name] for name in names) for row in rows] == [("map", *same), ("ndcg", *same)]
    for row in rows:
        values = [of["value"] for of in rows_in(tmp_path, "outcomes") if of["metric"] == row["metric"]]
        assert len(values) == row["scored"] == 29
        assert row["value"] == pytest.approx(np.mean(values))


def test_a_supervised_task_has_one_row_a_seed_and_its_predictions_as_outcomes(tmp_path):
    benchmark = Benchmark(labels=two_classes())
    rows = score(tmp_path, benchmark, vectors_for(documents_in(benchmark)))
    names = ("evaluation_seed", "mode", "format", "documents", "missing")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (seed, "compat", "classification", 80, 0) for seed in (5, 6)
    ]
    for row in rows:
        found = [of for of in rows_in(tmp_path, "outcomes") if of["evaluation_seed"] == row["evaluation_seed"]]
        assert {of["item"]: of["expected"] for of in found} == benchmark.labels["drsm", "test"]
        pairs = [(of["expected"][0], of["predicted"][0]) for of in found]
        assert row["value"] == pytest.approx(100 * f1_score(*zip(*pairs, strict=True), average="macro"))


def test_vectors_are_read_for_the_documents_that_are_asked_for_and_must_be_finite(tmp_path):
    path = folders.write_vectors(tmp_path, {"a": [1.0], "b": [np.inf], "c": [3.0]})
    read = joined(read_blocks(path, SEARCH, [], ["c", "a", "unknown"]))
    assert read.of(["c", "a"]).tolist() == [[3], [1]]
    assert "unknown" not in read.rows
    with pytest.raises(InputError, match="the vector of the document 'b' contains values that are not finite"):
        joined(read_blocks(path, SEARCH, [], ["a", "b"]))


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


@pytest.mark.parametrize("mode", get_args(SciRepEval.model_fields["mode"].annotation))
def test_the_command_scores_what_the_tables_hold_in_each_mode_of_a_configuration(mode, tmp_path):
    tables = tmp_path / "b"
    write_tables(Benchmark(judgements={name: {"q": {"a": 1, "b": 0}} for name in ("cite", "relish")}), tables)
    embeddings = folders.write_vectors(tmp_path, {"a": [1.0], "b": [5.0], "q": [0.0]})
    options = {
        **{"tables": tables, "model": "m", "training-seed": 1, "mode": mode, "largest-missing": 0.01, "threads": 1},
        **{"embeddings": embeddings, "tasks": "cite,relish", **files_in(tmp_path)},
    }
    arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    result = CliRunner().invoke(app, ["evaluation", "score", "1", "2", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    values = {(row["benchmark"], row["task"], row["metric"], row["value"]) for row in rows_in(tmp_path, "scores")}
    assert values == {("b", *each, 100) for each in (("cite", "map"), ("cite", "ndcg"), ("relish", "ndcg"))}


def two_classes(test=40):
    sizes = {"train": 40, "test": test}
    return {("drsm", split): {f"{split}{n}": [str(n % 2)] for n in range(sizes[split])} for split in sizes}


def test_all_modes_are_scored_in_one_run_and_say_which_they_are(tmp_path):
    benchmark = Benchmark(labels=two_classes(), judgements={"relish": rankings(queries=3)})
    vectors = vectors_for(documents_in(benchmark))
    rows = score(tmp_path, benchmark, vectors, replace(RUN, modes=["compat", "correct", "sklearn"]))
    assert sorted((row["task"], row["evaluation_seed"], row["mode"]) for row in rows) == [
        *(("drsm", seed, mode) for seed in (5, 6) for mode in ("compat", "correct", "sklearn")),
        ("relish", 5, "both"),
    ]


def test_queries_and_test_documents_that_are_left_out_are_counted(tmp_path):
    labels, run = two_classes(test=200), replace(RUN, largest_missing=0.5)
    benchmark = Benchmark(labels=labels, judgements={"relish": rankings(queries=4, candidates=3, relevant=1)})
    lost = {"q0", "q1-c0", "q1-c1", "q1-c2", "q2-c0", "test1", "test2", "train3"}
    rows = score(tmp_path, benchmark, vectors_for(documents_in(benchmark) - lost), run)
    counts = {row["task"]: (row["documents"], row["missing"], row["scored"], row["unscored"]) for row in rows}
    assert counts == {"relish": (16, 5, 2, 2), "drsm": (240, 3, 198, 2)}


def test_averages_and_comparisons_are_made_from_what_was_scored(tmp_path):
    benchmark = Benchmark(judgements={"cite": rankings()})
    for seed, model in enumerate(("one", "two")):
        score(tmp_path / model, benchmark, vectors_for(documents_in(benchmark), seed=seed), replace(RUN, model=model))
        for kind in ("scores", "outcomes"):
            (tmp_path / kind / "small").mkdir(parents=True, exist_ok=True)
            (tmp_path / model / f"{kind}.parquet").rename(tmp_path / kind / "small" / f"{model}-1.parquet")

    def run(command, kind, table, *more, suites='{"small": {"tasks": ["cite"], "runs": ["one-1", "two-1"]}}'):
        options = ["--suites", suites, "--output", str(tmp_path / f"{table}.parquet"), *more]
        app(["evaluation", command, str(tmp_path / kind), *options], standalone_mode=False)
        return rows_in(tmp_path, table)

    with pytest.raises(InputError, match="--suites: not JSON"):
        run("average", "scores", "averages", suites="{broken")
    means = {(row["model"], row["average"]): row["mean"] for row in run("average", "scores", "averages")}
    for row in run("compare", "outcomes", "comparisons", "--resamples", "100", "--seed", "1"):
        difference = means[row["model"], row["metric"]] - means[row["other"], row["metric"]]
        assert row["difference"] == pytest.approx(difference)


RANKING = Benchmark(judgements={"relish": {f"q{n}": {f"c{n}": 1, f"d{n}": 0} for n in range(10)}})


def attempt(folder, benchmark, without=(), **changed):
    """Score a benchmark on vectors of all its documents but some; return the scores and the failures."""
    vectors = vectors_for(documents_in(benchmark).difference(without))
    return score(folder, benchmark, vectors, replace(RUN, **changed)), rows_in(folder, "failures")


def learnt(train, test=("0", "1")):
    sides = {"train": train, "test": test}
    return Benchmark(
        labels={("drsm", split): {f"{split}{n}": [name] for n, name in enumerate(sides[split])} for split in sides}
    )


@pytest.mark.parametrize(
    ("task", "benchmark", "without", "largest", "reason"),
    [
        ("relish", RANKING, ["c3"], 0.01, "task relish of b: 1 of 30 documents have no vector of m, among them 'c3'"),
        ("relish", RANKING, [f"q{n}" for n in range(10)], 1, "No query of the task has a vector, and a candidate with"),
        ("drsm", learnt(["0"] * 9), [], 0.01, "only one class among its training documents"),
        ("drsm", learnt(["0", "0", "1"]), [], 0.01, "only 2 training documents (of a class); 3 are needed"),
        ("drsm", learnt(["0", "1"] * 5, []), [], 0.01, "no test document with a vector"),
    ],
)
def test_what_the_data_make_impossible_is_reported_and_leaves_no_score(
    tmp_path, capsys, task, benchmark, without, largest, reason
):
    rows, [failure] = attempt(tmp_path, benchmark, without, largest_missing=largest)
    assert rows == rows_in(tmp_path, "outcomes") == []
    assert reason in failure.pop("reason")
    assert failure == {"model": "m", "seed": 2, "benchmark": "b", "task": task}
    assert "NOT SCORED: m (seed 2)" in capsys.readouterr().err


def test_a_task_that_the_benchmark_lacks_has_neither_score_nor_failure(tmp_path):
    write_tables(RANKING, tmp_path)
    write_results([TASKS["fos"]], tmp_path, RUN, files_in(tmp_path), lambda *_: pytest.fail("nothing to score"))
    assert [rows_in(tmp_path, table) for table in files_in(tmp_path)] == [[], [], []]


@pytest.mark.parametrize("error", [MemoryError(), OSError("No space left"), InputError("x.parquet: not readable")])
def test_what_the_machine_makes_impossible_stops_the_job_and_writes_nothing(tmp_path, error):
    def fail(*_):
        raise error

    write_tables(RANKING, tmp_path / "b")
    with pytest.raises(type(error)):
        write_results([TASKS["relish"]], tmp_path / "b", RUN, files_in(tmp_path), fail)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
