"""Rankings by vectors and by words, their measures and ties; and the tables scores, outcomes and failures: their rows,
missing vectors, seeds and modes.

What the data make impossible is a row of the table failures; what the machine makes impossible stops the job.
"""

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
from sklearn.metrics import f1_score
from tests.evaluation import folders
from tests.evaluation.folders import scores_of
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.benchmarks import TASKS, declared
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import SciRepEval
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vector_column, write_table
from cocite.evaluation.benchmark import Benchmark, write_documents, write_tables
from cocite.evaluation.bm25 import Formula, Words, read_document_texts
from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.ranking import by_cosine, by_distance, rank_candidates, rank_reviewers
from cocite.evaluation.scored import Vectors, joined, read_blocks
from cocite.evaluation.scoring import by_words, score_task, write_results

SEARCH = next(task for task in SCIREPEVAL if task.name == "search")

RUN = replace(folders.RUN, training_seed=2, evaluation_seeds=[5, 6])


def vectors_for(documents, dimension=8, seed=0):
    ordered = sorted(documents)
    matrix = np.random.default_rng(seed).normal(size=(len(ordered), dimension)).astype(np.float32)
    return Vectors({document: row for row, document in enumerate(ordered)}, matrix)


def rankings(queries=30, candidates=20, relevant=4):
    """Queries of 20 candidates each, of which the first four are relevant."""
    return {f"q{q}": {f"q{q}-c{c}": int(c < relevant) for c in range(candidates)} for q in range(queries)}


def learnt(train, test=("0", "1")):
    """A task of one class a document."""
    sides = {"train": train, "test": test}
    return {("drsm", split): {f"{split}{n}": [name] for n, name in enumerate(of)} for split, of in sides.items()}


CLASSES = ["0", "1"] * 20


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


def test_a_supervised_task_has_one_row_a_seed_and_mode_and_its_predictions_as_outcomes(tmp_path):
    benchmark = Benchmark(labels=learnt(CLASSES, CLASSES), judgements={"relish": rankings(queries=3)})
    run = replace(RUN, modes=["compat", "correct", "sklearn"])
    *rows, ranking = score(tmp_path, benchmark, vectors_for(documents_in(benchmark)), run)
    assert [ranking[name] for name in ("task", "evaluation_seed", "mode")] == ["relish", 5, "both"]
    names = ("task", "evaluation_seed", "mode", "format", "documents", "missing")
    same = ("classification", 80, 0)
    found = sorted(tuple(row[name] for name in names) for row in rows)
    assert found == [("drsm", seed, mode, *same) for seed in (5, 6) for mode in run.modes]
    outcomes = rows_in(tmp_path, "outcomes")
    for row in rows:
        found = [of for of in outcomes if all(of[name] == row[name] for name in names[:3])]
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


def test_queries_and_test_documents_that_are_left_out_are_counted(tmp_path):
    labels, run = learnt(CLASSES, CLASSES * 5), replace(RUN, largest_missing=0.5)
    benchmark = Benchmark(labels=labels, judgements={"relish": rankings(queries=4, candidates=3, relevant=1)})
    lost = {"q0", "q1-c0", "q1-c1", "q1-c2", "q2-c0", "test1", "test2", "train3"}
    rows = score(tmp_path, benchmark, vectors_for(documents_in(benchmark) - lost), run)
    counts = {row["task"]: (row["documents"], row["missing"], row["scored"], row["unscored"]) for row in rows}
    assert counts == {"relish": (16, 5, 2, 2), "drsm": (240, 3, 198, 2)}


@pytest.mark.parametrize("command", ["average", "compare"])
def test_suites_that_are_no_json_are_refused(tmp_path, command):
    more = ["--resamples", "100", "--seed", "1"] if command == "compare" else []
    with pytest.raises(InputError, match="--suites: not JSON"):
        app(["evaluation", command, str(tmp_path), "--suites={broken", f"--output={tmp_path}/x", *more])


RANKING = Benchmark(judgements={"relish": {f"q{n}": {f"c{n}": 1, f"d{n}": 0} for n in range(10)}})


@pytest.mark.parametrize(
    ("task", "benchmark", "without", "largest", "reason"),
    [
        ("relish", RANKING, ["c3"], 0.01, "task relish of b: 1 of 30 documents have no vector of m, among them 'c3'"),
        ("relish", RANKING, [f"q{n}" for n in range(10)], 1, "No query of the task has a vector, and a candidate with"),
        ("drsm", Benchmark(labels=learnt(["0"] * 9)), [], 0.01, "only one class among its training documents"),
        (
            "drsm",
            Benchmark(labels=learnt(["0", "0", "1"])),
            [],
            0.01,
            "only 2 training documents (of a class); 3 are needed",
        ),
        ("drsm", Benchmark(labels=learnt(["0", "1"] * 5, [])), [], 0.01, "no test document with a vector"),
    ],
)
def test_what_the_data_make_impossible_is_reported_and_leaves_no_score(
    tmp_path, capsys, task, benchmark, without, largest, reason
):
    vectors = vectors_for(documents_in(benchmark).difference(without))
    assert score(tmp_path, benchmark, vectors, replace(RUN, largest_missing=largest)) == []
    assert rows_in(tmp_path, "outcomes") == []
    [failure] = rows_in(tmp_path, "failures")
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


def vectors(**rows: list[float]) -> Vectors:
    return Vectors({name: row for row, name in enumerate(rows)}, np.array(list(rows.values()), np.float32))


def test_measures_equal_trec_eval_where_nothing_ties():
    draw = np.random.default_rng(5)
    judgements = {f"q{q}": {f"d{d}": int(draw.integers(3)) for d in range(12)} for q in range(6)}
    run = {query: dict(zip(of, draw.permutation(12).astype(float), strict=True)) for query, of in judgements.items()}
    metrics = ["map", "ndcg", "P_5", "P_10", "recall_5", "Rprec"]
    reference = pytrec_eval.RelevanceEvaluator(judgements, set(metrics)).evaluate(run)
    for metric, values in measure_rankings(judgements, run, metrics).items():
        assert values == {query: pytest.approx(100 * reference[query][metric]) for query in judgements}


def test_differences_below_single_precision_still_rank():
    run = {f"q{q}": {"a": 1.0 + 1e-12, "b": 1.0} for q in range(20)}
    values = measure_rankings({query: {"a": 1, "b": 0} for query in run}, run, ["map"])["map"]
    assert set(values.values()) == {100}


def test_ties_favour_no_side_of_the_ids():
    queries = [f"q{q}" for q in range(2000)]
    run = {query: {"1": 0.0, "2": 0.0} for query in queries}
    low, high = (
        np.mean(list(measure_rankings(dict.fromkeys(queries, judged), run, ["map"])["map"].values()))
        for judged in ({"1": 1, "2": 0}, {"1": 0, "2": 1})
    )
    assert low == pytest.approx(75, abs=2)
    assert low + high == pytest.approx(150)


def test_candidates_are_ranked_by_distance_not_by_angle_and_the_cosine_to_zeros_is_zero():
    embedded = vectors(q=[1.0, 0.0], near=[1.0, 0.5], aligned=[9.0, 0.0], empty=[0.0, 0.0])
    assert by_distance(embedded)("q", ["near", "aligned"]).tolist() == [-0.5, -8.0]
    assert by_cosine(embedded)("q", ["near", "aligned", "empty"]) == pytest.approx([1 / math.sqrt(1.25), 1.0, 0.0])


def test_a_candidate_without_vector_counts_as_not_found():
    embedded = vectors(q=[0.0], b=[1.0])
    judgements = {"q": {"a": 1, "b": 1}, "unknown": {"b": 1}}
    run = rank_candidates(judgements, by_distance(embedded), embedded.rows)
    assert run == {"q": {"b": -1.0}}
    assert measure_rankings(judgements, run, ["map"])["map"] == {"q": pytest.approx(50)}


def test_a_reviewer_scores_the_mean_of_the_three_nearest_papers():
    embedded = vectors(q=[1.0, 0.0], east=[2.0, 0.0], north=[0.0, 3.0], west=[-1.0, 0.0], south=[0.0, -1.0])
    reviewers = {"many": {"east", "north", "west", "south"}, "one": {"west"}, "none": {"lost"}}
    judgements = {"q": {"many": 1, "one": 0, "none": 0}}
    run = rank_reviewers(judgements, reviewers, by_cosine(embedded), embedded.rows)
    assert run["q"] == {"many": pytest.approx((1 + 0 + 0) / 3), "one": pytest.approx(-1)}


def test_bm25_of_texts_without_words_is_zero():
    texts = {"q": "axolotl regeneration", "same": "regeneration in the axolotl", "stop": "the of and in", "empty": ""}
    words = Words(texts)
    assert words.to_some("q", ["same"]) > 0
    for one, other in (("q", "stop"), ("q", "empty"), ("stop", "q"), ("empty", "q")):
        assert words.to_some(one, [other]).tolist() == [0]
    nothing = Words({"q": "", "a": "the"})
    assert nothing.to_some("q", ["a", "q"]).tolist() == nothing.to_all("the").tolist() == [0, 0]


def test_bm25_of_some_documents_is_that_of_all():
    texts = {f"d{n}": " ".join(f"word{n * k % 17}" for k in range(1, 9)) for n in range(40)} | {"empty": ""}
    words = Words(texts)
    for query in texts:
        everything = words.to_all(texts[query])
        for some in (list(texts), ["d7", "d3", "empty"]):
            expected = everything[[words.rows[name] for name in some]]
            assert words.to_some(query, some) == pytest.approx(expected, rel=1e-6)


def test_bm25_reads_the_words_of_the_documents_of_a_ranking_and_of_a_collection(tmp_path):
    collection = {f"d{n}" for n in range(30)}
    benchmark = Benchmark(
        judgements={
            "search": {"q": {"a": 0, "b": 1}},
            "paper_reviewer_matching_hard": {"q": {"r": 0, "s": 1}},
            "beir_scifact": {"five": {"d5": 1}},
        },
        labels={("fos", "train"): {"a": ["x"]}},
        collections={"beir_scifact": collection},
        reviewers={"r": {"a"}, "s": {"a", "b"}},
    )
    words = {"q": "rare birds", "a": "common fish", "b": "birds which are rare", "other": "birds", "five": "number5"}
    words |= {name: f"common words number{name[1:]}" for name in collection}
    fields = {name: text.partition(" ") for name, text in words.items()}
    write_documents(tmp_path, {name: (title, text or None, (), None) for name, (title, _, text) in fields.items()})
    ranked = [TASKS[name] for name in benchmark.judgements]
    path = tmp_path / "documents.parquet"
    texts = [read_document_texts(path, benchmark.documents_of(task)) for task in ranked]
    assert [set(of_task) for of_task in texts] == [{"a", "b", "q"}, {"a", "b", "q"}, {"five", *collection}]
    found = [scores_of(by_words(path, "{}", RUN)(task, benchmark)) for task in ranked]
    assert found[0] == {"ndcg": pytest.approx(100)}
    assert found[1] == {"P_5": pytest.approx(20), "P_10": pytest.approx(10)}
    assert found[2]["ndcg_cut_10"] == pytest.approx(100)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_bm25_counts_words_by_the_formula_that_is_asked_for(method):
    texts = {"q": "rare bird", "a": "rare rare fish", "b": "bird of a feather in a long text about fish"}
    texts |= {"c": "fish", "d": "trees"}
    words = {name: [word for word in text.split() if word not in ("of", "a", "in")] for name, text in texts.items()}
    k1, b, mean = 0.9, 0.4, sum(map(len, words.values())) / 5

    def worth(word, name):
        having, often = sum(word in of for of in words.values()), words[name].count(word)
        odds = (5 - having + 0.5) / (having + 0.5)
        idf = {"lucene": math.log(1 + odds), "robertson": math.log(odds), "atire": math.log(5 / having)}
        pushed = often / (often + k1 * (1 - b + b * len(words[name]) / mean))
        return idf[method] * pushed * (k1 + 1 if method == "atire" else 1)

    found = Words(texts, Formula(k1=k1, b=b, method=method)).to_some("q", list(texts))
    assert found == pytest.approx([worth("rare", name) + worth("bird", name) for name in texts], abs=1e-4)
    assert found[3] == 0 < found[2]


NOT_ONE = "Exactly one of --embeddings, --words, --by-citations and --answers must be given"


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([], NOT_ONE),
        (["--embeddings=vectors.parquet", '--words={"k1": 1.5}'], NOT_ONE),
        (["--words={k1: 1.5}"], "--words: not JSON"),
        (['--words={"k2": 1.5}'], "--words: key k2"),
    ],
)
def test_a_run_is_scored_by_its_vectors_or_by_words(tmp_path, named, message):
    asked = {"tables": tmp_path, "tasks": "fos", "model": "m", "training-seed": 0, "mode": "compat", "threads": 1}
    asked |= {"largest-missing": 0} | {table: tmp_path / table for table in ("scores", "outcomes", "failures")}
    options = [f"--{name}={value}" for name, value in asked.items()]
    with pytest.raises(InputError, match=message):
        app(["evaluation", "score", "1", *named, *options], standalone_mode=False)
