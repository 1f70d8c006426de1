"""BEIR folders: whole corpora are searched, exactly, in blocks, and no query finds itself."""

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluation.folders import BenchmarkFolder

from cocite.config.benchmarks import TASKS
from cocite.evaluation import vectors as vectors_module
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.bm25 import score_words
from cocite.evaluation.ranking import best_hits
from cocite.evaluation.scored import Run, UnscorableError
from cocite.evaluation.scoring import embedded
from cocite.ground.errors import InputError
from cocite.tables.files import vector_column, write_table

RUN = Run(model="m", training_seed=1, benchmark="b", modes=["compat"], evaluation_seeds=[1])
TASK = TASKS["beir_scifact"]


@pytest.fixture
def beir(tmp_path):
    folder = BenchmarkFolder(tmp_path, "beir")
    folder.write_lines(
        "scifact/corpus.jsonl",
        *({"_id": str(n), "title": f"t{n}", "text": f"x{n}", "metadata": {}} for n in range(4)),
    )
    folder.write_lines("scifact/queries.jsonl", {"_id": "1", "text": "a claim"}, {"_id": "9", "text": "unjudged"})
    folder.write_text("scifact/qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\t2\t1\n1\t3\t-1\n")
    return folder


def test_the_whole_corpus_is_searched_and_only_judged_queries_are_kept(beir):
    benchmark = beir.prepare("beir_scifact")
    assert benchmark.judgements == {"beir_scifact": {"scifact-query:1": {"2": 1, "3": 0}}}
    assert benchmark.collections == {"beir_scifact": {"0", "scifact:1", "2", "3"}}
    assert beir.documents()["scifact-query:1"] == ("a claim", None)
    assert beir.documents()["2"] == ("t2", "x2")
    assert len(beir.documents()) == 4 + 1
    assert beir.omitted() == {"document that no task asks for": 1}


def test_a_dataset_that_is_asked_for_must_be_there(beir):
    with pytest.raises(
        InputError, match="has no folder trec-covid, but the task beir_trec_covid is asked for; it holds beir_scifact"
    ):
        beir.prepare("beir_scifact", "beir_trec_covid")
    assert "beir_scifact" in beir.prepare().judgements
    assert beir.omitted()["task beir_arguana absent"] == 1


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (
            "qrels/test.tsv",
            "query-id\tcorpus-id\tscore\n1\t2\n",
            "test.tsv, line 2: has 2 fields, where 3 are expected",
        ),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\t2\thigh\n", "relevance must be a whole number, not 'high'"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\tlost\t1\n", "no text for the document 'lost'"),
        ("corpus.jsonl", '{"title": "t"}\n', "corpus.jsonl, line 1: the key '_id' is missing"),
        ("corpus.jsonl", "{broken\n", "corpus.jsonl, line 1: not JSON"),
        ("queries.jsonl", '{"_id": "1", "text": 3}\n', "queries.jsonl, line 1: text must be a string"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(beir, path, text, message):
    beir.write_text(f"scifact/{path}", text)
    with pytest.raises(InputError) as error:
        beir.prepare("beir_scifact")
    assert message in str(error.value)


@pytest.mark.parametrize("lost", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(beir, lost):
    (beir.root / "scifact" / lost).unlink()
    with pytest.raises(InputError, match=f"{lost} does not exist"):
        beir.prepare("beir_scifact")


def collection(documents, queries, seed=0):
    """A collection, the judgements of its queries, and a vector for each document and query."""
    draw = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(documents)]
    judged = {f"scifact-query:q{n}": {names[d]: 1 for d in draw.choice(documents, 3, False)} for n in range(queries)}
    benchmark = Benchmark(judgements={TASK.name: judged}, collections={TASK.name: set(names)})
    return benchmark, {name: draw.normal(size=5).astype(np.float32) for name in [*names, *judged]}


def write_vectors(folder, vectors):
    names = sorted(vectors)
    columns = {"adapter": [""] * len(names), "document": names}
    table = pa.table({**columns, "vector": vector_column(np.array([vectors[name] for name in names]))})
    write_table(folder / "vectors.parquet", "document_embeddings", table)
    return folder / "vectors.parquet"


def scores_of(scored):
    return {row[4]: row[8] for row in scored.scores}


@pytest.mark.parametrize("block", [7, 64, 8192])
def test_scores_are_those_of_the_distances_to_all_documents_whatever_the_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(vectors_module, "ROWS_AT_ONCE", block)
    benchmark, vectors = collection(300, 20)
    found = embedded(write_vectors(tmp_path, vectors), RUN)(TASK, benchmark)
    judged = benchmark.judgements[TASK.name]
    names = sorted(benchmark.collections[TASK.name])
    run = {}
    for query in judged:
        near = {
            name: -float(np.linalg.norm(vectors[name].astype("f8") - vectors[query].astype("f8"))) for name in names
        }
        order = sorted(near, key=near.get, reverse=True)[:100]
        run[query] = {name: 100.0 - place for place, name in enumerate(order)}
    measured = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10", "recall_100"}).evaluate(run)
    for metric, value in scores_of(found).items():
        assert value == pytest.approx(100 * np.mean([of_query[metric] for of_query in measured.values()]))


def test_a_query_never_finds_the_document_with_its_own_id(tmp_path):
    names = [f"d{n}" for n in range(12)]
    query = "scifact-query:d3"
    benchmark = Benchmark(judgements={TASK.name: {query: {"d7": 1}}}, collections={TASK.name: set(names)})
    vectors = {name: np.array([n], "f4") for n, name in enumerate(names)} | {query: np.array([3.2], "f4")}
    vectors["d7"] = np.array([3.3], "f4")
    assert scores_of(embedded(write_vectors(tmp_path, vectors), RUN)(TASK, benchmark))["ndcg_cut_10"] == 100


def test_missing_vectors_of_the_collection_are_counted_and_many_of_them_are_a_failure(tmp_path):
    benchmark, vectors = collection(300, 20)
    del vectors["d0"]
    path = write_vectors(tmp_path, vectors)
    assert {row[9:11] for row in embedded(path, RUN)(TASK, benchmark).scores} == {(320, 1)}
    for number in range(5):
        vectors.pop(f"d{number}", None)
    with pytest.raises(UnscorableError, match="5 of 320 documents have no vector"):
        embedded(write_vectors(tmp_path, vectors), RUN)(TASK, benchmark)


def test_bm25_searches_the_collection_by_words():
    benchmark = Benchmark(
        judgements={TASK.name: {"q": {"d5": 1}}}, collections={TASK.name: {f"d{n}" for n in range(30)}}
    )
    texts = {f"d{n}": f"common words number{n}" for n in range(30)} | {"q": "about number5"}
    assert scores_of(score_words(TASK, benchmark, texts, RUN))["ndcg_cut_10"] == pytest.approx(100)


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=40), depth=st.integers(1, 12), cut=st.integers(1, 40))
def test_equal_documents_are_cut_alike_whatever_the_blocks(values, depth, cut):
    names = [f"d{n}" for n in range(len(values))]
    scores = np.array([values], dtype=float)
    whole = best_hits(TASK, ["q"], [(names, scores)], depth)
    parts = [(names[:cut], scores[:, :cut]), (names[cut:], scores[:, cut:])]
    assert best_hits(TASK, ["q"], [part for part in parts if part[0]], depth) == whole
    assert sorted(whole["q"].values()) == sorted(values)[-depth:]
