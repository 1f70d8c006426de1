"""What the data make impossible is a row of the table failures; what the machine makes impossible stops the job."""

import numpy as np
import pytest

from cocite.config.benchmarks import TASKS
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.evaluation.benchmark import Benchmark, write_tables
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import score_task, write_results
from cocite.evaluation.vectors import Vectors

RUN = Run(model="m", training_seed=2, benchmark="b", modes=["compat"], evaluation_seeds=[5])


def files_in(folder):
    return {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures")}


def written(folder):
    return {
        name: read_table(folder / f"{name}.parquet", name).to_pylist() for name in ("scores", "outcomes", "failures")
    }


def labels(train, test=("0", "1")):
    sides = {"train": train, "test": test}
    return {("drsm", split): {f"{split}{n}": [name] for n, name in enumerate(sides[split])} for split in sides}


def attempt(folder, task, benchmark, without=(), **changed):
    """Score a task on vectors of all its documents but some; return the tables that were written."""
    documents = sorted(benchmark.documents_of(TASKS[task]).difference(without))
    matrix = np.random.default_rng(0).normal(size=(len(documents), 4)).astype(np.float32)
    vectors = Vectors({name: row for row, name in enumerate(documents)}, matrix)
    run = Run(**(vars(RUN) | changed))
    write_tables(benchmark, folder)
    write_results([TASKS[task]], folder, run, files_in(folder), lambda task, asks: score_task(task, asks, vectors, run))
    return written(folder)


RANKING = Benchmark(judgements={"relish": {f"q{n}": {f"c{n}": 1, f"d{n}": 0} for n in range(10)}})


@pytest.mark.parametrize(
    ("task", "benchmark", "without", "reason"),
    [
        ("relish", RANKING, ["c3"], "task relish of b: 1 of 30 documents have no vector of m, among them 'c3'; embed"),
        ("drsm", Benchmark(labels=labels(["0"] * 9)), [], "only one class among its training documents"),
        ("drsm", Benchmark(labels=labels(["0", "0", "1"])), [], "only 2 training documents (of a class); 3 are needed"),
        ("drsm", Benchmark(labels=labels(["0", "1"] * 5, [])), [], "no test document with a vector"),
    ],
)
def test_what_the_data_make_impossible_is_reported_and_leaves_no_score(
    tmp_path, capsys, task, benchmark, without, reason
):
    tables = attempt(tmp_path, task, benchmark, without)
    assert tables["scores"] == tables["outcomes"] == []
    [failure] = tables["failures"]
    assert reason in failure.pop("reason")
    assert failure == {"model": "m", "seed": 2, "benchmark": "b", "task": task}
    assert "NOT SCORED: m (seed 2)" in capsys.readouterr().err


def test_where_no_query_can_be_ranked_there_is_a_failure(tmp_path):
    queries = [f"q{n}" for n in range(10)]
    [failure] = attempt(tmp_path, "relish", RANKING, queries, largest_missing=1.0)["failures"]
    assert failure["reason"] == "No query of the task has a vector, and a candidate with one."


def test_how_many_vectors_may_be_missing_is_for_the_run_to_say(tmp_path):
    tables = attempt(tmp_path, "relish", RANKING, ["c3"], largest_missing=0.1)
    assert tables["failures"] == []
    assert {(row["documents"], row["missing"]) for row in tables["scores"]} == {(30, 1)}


def test_a_task_that_the_benchmark_lacks_has_neither_score_nor_failure(tmp_path):
    write_tables(RANKING, tmp_path)
    write_results(
        [TASKS["fos"]], tmp_path, RUN, files_in(tmp_path), lambda *_: pytest.fail("there is nothing to score")
    )
    assert written(tmp_path) == {"scores": [], "outcomes": [], "failures": []}


@pytest.mark.parametrize("error", [MemoryError(), OSError("No space left"), InputError("x.parquet: not readable")])
def test_what_the_machine_makes_impossible_stops_the_job_and_writes_nothing(tmp_path, error):
    def fail(*_):
        raise error

    write_tables(RANKING, tmp_path / "b")
    with pytest.raises(type(error)):
        write_results([TASKS["relish"]], tmp_path / "b", RUN, files_in(tmp_path), fail)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
