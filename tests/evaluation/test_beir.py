"""BEIR folders: whole corpora are searched, exactly, in blocks, and no query finds itself."""

import gzip
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytrec_eval
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.evaluation.folders import BenchmarkFolder, read_benchmark, scores_of, write_vectors

from cocite.config.benchmarks import TASKS, declared, tasks_of
from cocite.config.benchmarks.beir import Beir, BeirSettings, files_of
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.evaluation import vectors as vectors_module
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.bm25 import score_words
from cocite.evaluation.preparation.beir import prepare_beir, read_beir
from cocite.evaluation.ranking import best_hits
from cocite.evaluation.scored import Run, UnscorableError
from cocite.evaluation.scoring import embedded

RUN = Run(model="m", training_seed=1, benchmark="b", modes=["compat"], evaluation_seeds=[1])
TASK = TASKS["beir_scifact"]
NUMBERED_ALIKE = "task beir_scifact: query with the id of a document that it is not (may be found)"
WITHOUT = "task beir_scifact: query without text, or without a judged document that counts"


class Datasets(BenchmarkFolder):
    """A folder of datasets in BEIR's layout."""

    def write_dataset(self, name, corpus, queries, judgements):
        self.write_lines(f"{name}/corpus.jsonl", *corpus)
        self.write_lines(f"{name}/queries.jsonl", *queries)
        lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in judgements)]
        self.write_text(f"{name}/qrels/test.tsv", "".join(f"{line}\n" for line in lines))

    def prepare(self, *tasks, **settings):
        datasets = {path.name: str(path) for path in self.root.iterdir()}
        asked = BeirSettings.model_validate({"datasets": datasets, **settings})
        omissions = self.tables / "omissions.parquet"
        prepare_beir(settings=asked, tasks=",".join(tasks), tables=self.tables, omissions=omissions)
        return read_benchmark(self.tables)

    def short_queries(self):
        rows = read_table(self.tables / "documents.parquet", "documents").to_pylist()
        return {row["document"] for row in rows if row.get("is_query")}


def document(number, **more):
    return {"_id": str(number), "title": f"t{number}", "text": f"x{number}", "metadata": {}, **more}


@pytest.fixture
def beir(tmp_path):
    folder = Datasets(tmp_path, "beir")
    queries = [{"_id": "1", "text": "a claim"}, {"_id": "9", "text": "unjudged"}]
    folder.write_dataset("scifact", map(document, range(4)), queries, [(1, 2, 1), (1, 3, -1)])
    return folder


def test_the_whole_corpus_is_searched_and_only_judged_queries_are_kept(beir):
    benchmark = beir.prepare("beir_scifact")
    assert benchmark.judgements == {"beir_scifact": {"scifact-query:1": {"2": 1, "3": 0}}}
    assert benchmark.collections == {"beir_scifact": {"0", "scifact:1", "2", "3"}}
    assert beir.documents()["scifact-query:1"] == ("a claim", None)
    assert beir.documents()["2"] == ("t2", "x2")
    assert len(beir.documents()) == 4 + 1
    assert beir.omitted() == {
        "document that no task asks for": 1,
        "task beir_scifact: query without a judgement": 1,
        "task beir_scifact: judgement below 0 (counts as 0)": 1,
        NUMBERED_ALIKE: 1,
    }


def test_a_dataset_of_any_name_is_a_task(beir):
    beir.write_dataset("my-papers-2", [document(5)], [{"_id": "q", "text": "words"}], [("q", 5, 2)])
    benchmark = beir.prepare()
    assert benchmark.judgements["beir_my_papers_2"] == {"q": {"5": 2}}
    assert benchmark.judgements.keys() == {"beir_scifact", "beir_my_papers_2"}
    assert declared("beir_my_papers_2").metrics == ("ndcg_cut_10", "recip_rank_10", "recall_100")


def test_a_dataset_that_is_asked_for_must_be_there(beir):
    with pytest.raises(InputError, match="beir_trec_covid is the task of no dataset; there are beir_scifact"):
        beir.prepare("beir_scifact", "beir_trec_covid")


@pytest.mark.parametrize(
    ("queries", "short", "texts"),
    [
        ("auto", {"b"}, {"a": ("a title", "a text"), "b": ("words", None)}),
        ("short", {"a", "b"}, {"a": ("a text", None), "b": ("words", None)}),
        ("documents", set(), {"a": ("a title", "a text"), "b": (None, "words")}),
    ],
)
def test_queries_with_a_title_and_a_text_are_documents_and_others_short_unless_said_otherwise(
    tmp_path, queries, short, texts
):
    folder = Datasets(tmp_path, "beir")
    asked = [{"_id": "a", "title": "a title", "text": "a text"}, {"_id": "b", "text": "words"}]
    folder.write_dataset("own", [document(1)], asked, [("a", 1, 1), ("b", 1, 1)])
    folder.prepare(queries=queries)
    assert folder.short_queries() == short
    assert {name: text for name, text in folder.documents().items() if name in texts} == texts


def test_a_query_that_is_a_document_of_the_corpus_is_embedded_once_and_does_not_find_itself(tmp_path):
    folder = Datasets(tmp_path, "beir")
    query = {"_id": "1", "title": "t1", "text": "x1"}
    folder.write_dataset("iclr2022", map(document, range(1, 4)), [query], [(1, 1, 2), (1, 2, 2), (1, 3, 1)])
    benchmark = folder.prepare()
    assert set(folder.documents()) == {"1", "2", "3"}
    assert folder.short_queries() == set()
    assert folder.omitted() == {
        "task beir_iclr2022: query with the id of a document, which it is (never found)": 1,
        "task beir_iclr2022: relevant document that is its query (never found)": 1,
    }
    vectors = {name: np.array([1.0, float(name)], "f4") for name in "123"}
    found = embedded(write_vectors(tmp_path, vectors), RUN)(declared("beir_iclr2022"), benchmark)
    # Found are 2 and 3, of grades 2 and 1, where 1, 2 and 3 are judged.
    ideal = 2 + 2 / np.log2(3) + 1 / np.log2(4)
    assert scores_of(found)["ndcg_cut_10"] == pytest.approx(100 * (2 + 1 / np.log2(3)) / ideal)
    assert scores_of(found)["recall_100"] == pytest.approx(100 * 2 / 3)


def test_a_short_query_with_the_text_and_id_of_a_document_is_another_document(tmp_path):
    folder = Datasets(tmp_path, "beir")
    corpus = [{"_id": "1", "title": "words"}, document(2)]
    folder.write_dataset("own", corpus, [{"_id": "1", "text": "words"}], [(1, 2, 1)])
    folder.prepare()
    assert folder.short_queries() == {"own-query:1"}
    assert set(folder.documents()) == {"own-query:1", "own:1", "2"}


@pytest.mark.parametrize(
    ("missing", "judged", "omitted"),
    [
        (
            "keep",
            {"c": {"2": 1, "not in scifact: lost": 1, "0": 0}, "d": {"not in scifact: gone": 2}},
            {"counts as not found": 2},
        ),
        ("drop", {"c": {"2": 1, "0": 0}}, {"left out": 2}),
    ],
)
def test_judged_documents_that_the_corpus_lacks_are_kept_unless_said_otherwise(beir, missing, judged, omitted):
    rows = [("c", 2, 1), ("c", "lost", 1), (8, 2, 1), (8, 3, 1), ("c", 0, 0), ("d", "gone", 2)]
    beir.write_dataset("scifact", map(document, range(3)), [{"_id": each, "text": "a claim"} for each in "cd"], rows)
    assert beir.prepare(missing_documents=missing).judgements == {"beir_scifact": judged}
    [how] = omitted
    assert beir.omitted() == {
        f"task beir_scifact: judgement of a document that is not in the corpus ({how})": 2,
        WITHOUT: 1 if missing == "keep" else 2,  # 8, and d
    }


def test_judgements_that_are_mostly_of_another_corpus_are_refused(beir):
    beir.write_dataset("scifact", map(document, range(4)), [{"_id": "1", "text": "a claim"}], [(7, 8, 1), (1, 2, 1)])
    beir.prepare()
    beir.write_dataset("scifact", map(document, range(4)), [{"_id": "1", "text": "a claim"}], [(7, 8, 1), (1, 8, 1)])
    with pytest.raises(InputError, match="no text for the document '7'; 3 of 4 mentions in the task beir_scifact"):
        beir.prepare()


def test_a_query_whose_documents_are_all_irrelevant_is_counted_and_scored_0(beir):
    beir.write_dataset("scifact", map(document, range(4)), [{"_id": "1", "text": "a claim"}], [(1, 2, 0)])
    beir.prepare()
    assert beir.omitted() == {"task beir_scifact: query without a relevant document (scored 0)": 1, NUMBERED_ALIKE: 1}


def test_another_table_of_judgements_can_be_named(beir):
    beir.write_text("scifact/qrels/dev.tsv", "query-id\tcorpus-id\tscore\n9\t0\t1\n")
    assert beir.prepare(split="dev").judgements == {"beir_scifact": {"9": {"0": 1}}}


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (
            "qrels/test.tsv",
            "query-id\tcorpus-id\tscore\n1\t2\n",
            "test.tsv, line 2: has 2 fields, where 3 are expected",
        ),
        ("qrels/test.tsv", "1\t2\t1\n", "test.tsv, line 1: is a judgement, where a line of names is expected"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n", "test.tsv: has no rows"),
        ("qrels/test.tsv", "", "test.tsv: has no rows"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\t2\thigh\n", "relevance must be a whole number, not 'high'"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\tlost\t1\n", "judges no query of queries.jsonl"),
        ("corpus.jsonl", '{"title": "t"}\n', "corpus.jsonl, line 1: the key '_id' or 'id' is missing"),
        ("corpus.jsonl", "{broken\n", "corpus.jsonl, line 1: not JSON"),
        ("corpus.jsonl", "", "corpus.jsonl: has no rows"),
        ("queries.jsonl", '{"_id": "1", "text": 3}\n', "queries.jsonl, line 1: text must be a text"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(beir, path, text, message):
    beir.write_text(f"scifact/{path}", text)
    with pytest.raises(InputError) as error:
        beir.prepare("beir_scifact")
    assert message in str(error.value)


def test_judgements_may_lie_beside_the_corpus_unless_there_are_those_of_the_split(tmp_path):
    datasets = Datasets(tmp_path, "beir")
    documents = [{"_id": name, "title": name, "text": "text"} for name in ("a", "b")]
    datasets.write_dataset("iclr2022", documents, [{"_id": "q", "text": "words"}], [("q", "a", 1)])
    datasets.write_text("iclr2022/qrels.tsv", "query-id\tcorpus-id\tscore\nq\tb\t2\n")
    folder = datasets.root / "iclr2022"
    assert datasets.prepare().judgements["beir_iclr2022"] == {"q": {"a": 1}}
    (folder / "qrels/test.tsv").unlink()
    assert datasets.prepare().judgements["beir_iclr2022"] == {"q": {"b": 2}}
    entry = Beir.model_validate({"kind": "beir", "datasets": {"iclr2022": str(folder)}})
    assert [*entry.faults("benchmarks.iclr", {})] == []
    (folder / "qrels.tsv").unlink()
    [said] = entry.faults("benchmarks.iclr", {})
    assert "the dataset iclr2022 has no file qrels/test.tsv" in said


@pytest.mark.parametrize("lost", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(beir, lost):
    (beir.root / "scifact" / lost).unlink()
    with pytest.raises(InputError, match=f"{lost} does not exist"):
        beir.prepare("beir_scifact")


def test_the_how_to_page_writes_a_dataset_that_its_configuration_scores(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs/how-to/own-search.md").read_text(encoding="utf-8")
    [script], [entry] = (re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) for language in ("python", "yaml"))
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-c", script], check=True)
    asked = Beir.model_validate(yaml.safe_load(entry)["benchmarks"]["searches"])
    assert list(asked.faults("benchmarks.searches", None)) == []
    settings, omissions = BeirSettings(datasets=asked.datasets), tmp_path / "omissions.parquet"
    prepare_beir(settings=settings, tables=tmp_path, omissions=omissions)
    assert read_benchmark(tmp_path).judgements == {"beir_library": {"q1": {"d1": 2, "d2": 0}}}


def test_a_kind_of_its_own_can_have_tasks_in_the_layout(beir):
    tasks = [declared("beir_scifact"), declared("beir_arguana")]
    builder = read_beir(beir.root, tasks, [])
    assert builder.benchmark.judgements.keys() == {"beir_scifact"}
    assert builder.omitted["task beir_arguana absent"] == 1
    with pytest.raises(InputError, match="has no folder arguana, but the task beir_arguana is asked for"):
        read_beir(beir.root, tasks, ["beir_arguana"])


def collection(documents, queries, seed=0):
    """A collection, the judgements of its queries, and a vector for each document and query."""
    draw = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(documents)]
    judged = {f"scifact-query:q{n}": {names[d]: 1 for d in draw.choice(documents, 3, False)} for n in range(queries)}
    benchmark = Benchmark(judgements={TASK.name: judged}, collections={TASK.name: set(names)})
    return benchmark, {name: draw.normal(size=5).astype(np.float32) for name in [*names, *judged]}


def cosine(one, other):
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def minus_distance(one, other):
    return -float(np.sqrt(((one - other) ** 2).sum()))


@pytest.mark.parametrize(("similarity", "near_by"), [("distance", minus_distance), ("cosine", cosine)])
@pytest.mark.parametrize("block", [7, 64, 8192])
def test_scores_are_those_of_the_nearest_of_all_documents_whatever_the_blocks(
    tmp_path, monkeypatch, block, similarity, near_by
):
    monkeypatch.setattr(vectors_module, "ROWS_AT_ONCE", block)
    benchmark, vectors = collection(300, 20)
    task = replace(TASK, similarity=similarity)
    found = embedded(write_vectors(tmp_path, vectors), RUN)(task, benchmark)
    judged = benchmark.judgements[TASK.name]
    names = sorted(benchmark.collections[TASK.name])
    run = {}
    for query in judged:
        near = {name: near_by(vectors[name].astype("f8"), vectors[query].astype("f8")) for name in names}
        order = sorted(near, key=near.get, reverse=True)[:100]
        run[query] = {name: 100.0 - place for place, name in enumerate(order)}
    measured = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10", "recall_100"}).evaluate(run)
    expected = {
        metric: np.mean([of_query[metric] for of_query in measured.values()])
        for metric in ("ndcg_cut_10", "recall_100")
    }
    firsts = [[name in judged[query] for name in list(ranked)[:10]] for query, ranked in run.items()]
    expected["recip_rank_10"] = np.mean([1 / (1 + hits.index(True)) if any(hits) else 0 for hits in firsts])
    assert scores_of(found) == pytest.approx({metric: 100 * value for metric, value in expected.items()})


def test_a_query_never_finds_the_document_with_its_own_id(tmp_path):
    names = [f"d{n}" for n in range(12)]
    query = "scifact-query:d3"
    benchmark = Benchmark(
        judgements={TASK.name: {query: {"d7": 1}}},
        collections={TASK.name: set(names)},
        own={TASK.name: {query: "d3"}},
    )
    vectors = {name: np.array([n], "f4") for n, name in enumerate(names)} | {query: np.array([3.2], "f4")}
    vectors["d7"] = np.array([3.3], "f4")
    by_distance = replace(TASK, similarity="distance")
    assert scores_of(embedded(write_vectors(tmp_path, vectors), RUN)(by_distance, benchmark))["ndcg_cut_10"] == 100


def by_definition(order, grades):
    """nDCG@10, MRR@10 and recall@100 of the documents of one query in their order, × 100."""
    gains = [max(grades.get(name, 0), 0) for name in order]
    best = sorted((max(grade, 0) for grade in grades.values()), reverse=True)
    found, ideal = (sum(g / np.log2(2 + place) for place, g in enumerate(some[:10])) for some in (gains, best))
    first = next((1 / (1 + place) for place, gain in enumerate(gains[:10]) if gain), 0.0)
    relevant = sum(grade > 0 for grade in best)
    recall = sum(gain > 0 for gain in gains[:100]) / relevant if relevant else 0.0
    return {
        "ndcg_cut_10": 100 * found / ideal if ideal else 0.0,
        "recip_rank_10": 100 * first,
        "recall_100": 100 * recall,
    }


@given(data=st.data(), documents=st.integers(3, 130), queries=st.integers(1, 4), seed=st.integers(0, 99))
def test_scores_of_a_dataset_are_those_of_the_definitions_of_the_metrics(data, documents, queries, seed):
    names = [str(number) for number in range(documents)]  # some are the ids of queries, too
    grades = st.dictionaries(st.sampled_from(names), st.integers(-1, 2), min_size=1, max_size=20)
    judged = {str(2 * number): data.draw(grades) for number in range(queries)}
    draw = np.random.default_rng(seed)
    with TemporaryDirectory() as name:
        folder = Datasets(Path(name), "beir")
        rows = [(query, paper, grade) for query, of in judged.items() for paper, grade in of.items()]
        folder.write_dataset("own", map(document, names), [{"_id": q, "text": "words"} for q in judged], rows)
        hidden = data.draw(st.booleans())
        benchmark = folder.prepare(ignore_identical_ids=hidden)
        vectors = {each: draw.normal(size=4).astype("f4") for each in folder.documents()}
        found = scores_of(embedded(write_vectors(Path(name), vectors), RUN)(declared("beir_own"), benchmark))
    expected = []
    for query, of_query in judged.items():
        own = vectors[f"own-query:{query}" if query in names else query]
        near = {each: cosine(vectors.get(f"own:{each}", vectors.get(each)), own) for each in names}
        if hidden:
            near.pop(query, None)
        expected.append(by_definition(sorted(near, key=near.get, reverse=True), of_query))
    means = {metric: np.mean([of_query[metric] for of_query in expected]) for metric in found}
    assert found == pytest.approx(means)


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


@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=40), depth=st.integers(1, 12), cut=st.integers(1, 40))
def test_equal_documents_are_cut_alike_whatever_the_blocks(values, depth, cut):
    names = [f"d{n}" for n in range(len(values))]
    scores = np.array([values], dtype=float)
    whole = best_hits(["q"], [(names, scores)], {}, depth)
    parts = [(names[:cut], scores[:, :cut]), (names[cut:], scores[:, cut:])]
    assert best_hits(["q"], [part for part in parts if part[0]], {}, depth) == whole
    assert sorted(whole["q"].values()) == sorted(values)[-depth:]


CORPUS = [{"_id": f"d{number}", "title": f"t{number}", "text": f"x{number}"} for number in range(4)]
ASKED = [{"_id": "q1", "text": "a claim"}, {"_id": "q2", "text": "another"}]
JUDGED = {"q1": {"d0": 2, "d1": 0}, "q2": {"d3": 1}}


def pack(path):
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def as_table(path):
    pq.write_table(pa.Table.from_pylist([json.loads(line) for line in path.open()]), path.with_suffix(".parquet"))
    path.unlink()


def rename(path):
    """Write keys that others use."""
    names = {"_id": "id", "text": "abstract"}
    rows = [json.loads(line) for line in path.open()]
    path.write_text("".join(json.dumps({names.get(key, key): row[key] for key in row}) + "\n" for row in rows))


@pytest.mark.parametrize("change", [pack, as_table, rename])
def test_queries_and_documents_are_read_in_other_forms(tmp_path, change):
    folder = Datasets(tmp_path, "beir")
    folder.write_dataset("own", CORPUS, ASKED, [(q, d, grade) for q, of in JUDGED.items() for d, grade in of.items()])
    expected, texts = folder.prepare(), folder.documents()
    for file in ("corpus.jsonl", "queries.jsonl"):
        change(folder.root / "own" / file)
    assert (folder.prepare(), folder.documents()) == (expected, texts)
    assert expected.judgements == {"beir_own": JUDGED}
    found = Beir.model_validate({"kind": "beir", "folder": str(folder.root)})
    assert (list(found.datasets), list(found.faults("benchmarks.beir", None))) == (["own"], [])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("qrels/test.tsv.gz", None),
        ("qrels/test.csv", "query-id,corpus-id,score\nq1,d0,2.0\nq1,d1,-1\nq2,d3,1\n"),
        ("qrels/test.txt", "q1 0 d0 2\nq1 0 d1 0\nq2 0 d3 1\n"),
        ("qrels/test.qrel", "q1 0 d0 2\nq1 0 d1 -2\nq2 0 d3 1\n"),
        ("qrels.tsv", "q1\t0\td0\t2\nq1\t0\td1\t0\nq2\t0\td3\t1\n"),
    ],
)
def test_judgements_are_found_in_other_forms(tmp_path, path, text):
    folder = Datasets(tmp_path, "beir")
    folder.write_dataset("own", CORPUS, ASKED, [(q, d, grade) for q, of in JUDGED.items() for d, grade in of.items()])
    if text is None:
        pack(folder.root / "own/qrels/test.tsv")
    else:
        (folder.root / "own/qrels/test.tsv").unlink()
        folder.write_text(f"own/{path}", text)
    assert folder.prepare().judgements == {"beir_own": JUDGED}
    asked = Beir.model_validate({"kind": "beir", "folder": str(folder.root)})
    assert list(asked.faults("benchmarks.beir", None)) == []
    assert str(files_of(folder.root / "own", "test")[2]).endswith(path)


def test_an_id_keeps_its_quotation_marks_unless_only_the_file_of_judgements_has_them(tmp_path):
    folder = Datasets(tmp_path, "beir")
    corpus = [{"_id": '"d1"', "text": "x"}, {"_id": 'd"2', "text": "y"}, {"_id": "d3", "text": "z"}]
    rows = [('"q', '"d1"', 1), ('"q', 'd"2', 2), ('"q', '"d3"', 1)]
    folder.write_dataset("own", corpus, [{"_id": '"q', "text": "words"}], rows)
    assert folder.prepare().judgements == {"beir_own": {'"q': {'"d1"': 1, 'd"2': 2, "d3": 1}}}


def test_a_query_finds_a_document_that_only_has_its_number(tmp_path):
    folder = Datasets(tmp_path, "beir")
    numbered = [{"_id": str(number), "text": f"where is paper {number}"} for number in range(1, 4)]
    folder.write_dataset("own", map(document, range(4)), numbered, [(n, n, 1) for n in range(1, 4)])
    assert folder.prepare().own == {}
    assert folder.omitted()["task beir_own: query with the id of a document that it is not (may be found)"] == 3
    vectors = {name: np.array([1.0, float(name[-1])], "f4") for name in folder.documents()}
    searched = embedded(write_vectors(tmp_path, vectors), RUN)
    assert scores_of(searched(declared("beir_own"), folder.prepare()))["ndcg_cut_10"] == pytest.approx(100)
    hidden = folder.prepare(ignore_identical_ids=True)
    assert hidden.own == {"beir_own": {f"own-query:{n}": f"own:{n}" for n in range(1, 4)}}
    assert scores_of(searched(declared("beir_own"), hidden))["ndcg_cut_10"] == 0


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        ([("1", "t1", "x1"), ("2", "t2", "x2"), ("3", None, "else")], {"1": "1", "2": "2", "own-query:3": "own:3"}),
        ([("1", None, "T1, x1!"), ("2", None, "t2")], {"own-query:1": "own:1", "own-query:2": "own:2"}),
        ([("1", "t1", "x1"), ("2", None, "other words"), ("3", None, "still others")], {}),
        ([("7", "t1", "x1")], {}),
        ([("1", None, "?"), ("2", None, None)], {}),
    ],
)  # fmt: skip
def test_whether_ids_are_shared_is_seen_by_the_words_of_most_of_them(tmp_path, queries, expected):
    folder = Datasets(tmp_path, "beir")
    rows = [{"_id": name, "title": title, "text": text} for name, title, text in queries]
    folder.write_dataset("own", map(document, range(4)), rows, [(name, 0, 1) for name, *_ in queries])
    assert folder.prepare().own.get("beir_own", {}) == expected


def test_a_judged_document_that_is_missing_is_no_other_one(tmp_path):
    folder = Datasets(tmp_path, "beir")
    corpus = [{"_id": name, "text": "x"} for name in ("d0", "own:d9", "not in own: d9")]
    folder.write_dataset("own", corpus, ASKED, [("q1", "d0", 1), ("q1", "d9", 1)])
    assert folder.prepare().judgements == {"beir_own": {"q1": {"d0": 1, "not not in own: d9": 1}}}


def test_judged_documents_that_are_missing_and_copies_of_a_text_stand_beside_each_score(tmp_path):
    folder = Datasets(tmp_path, "beir")
    corpus = [*CORPUS, CORPUS[1] | {"_id": "e"}, CORPUS[1] | {"_id": "f"}]
    folder.write_dataset(
        "own", corpus, ASKED, [("q1", "d0", 1), ("q1", "gone", 2), ("q1", "lost", 0), ("q2", "gone", 1)]
    )
    benchmark = folder.prepare()
    assert benchmark.copies == {"beir_own": {"e": "d1", "f": "d1"}}
    names = [*(row["_id"] for row in corpus), "q1", "q2"]
    vectors = {name: np.array([1.0, number], "f4") for number, name in enumerate(names)}
    found = embedded(write_vectors(tmp_path, vectors), RUN)(declared("beir_own"), benchmark)
    assert {row[9:] for row in found.scores} == {(8, 0, 2, 0, 6, 2, 2)}
    # Of q1, d0 is the last of six hits (gain 1) where 2 and 1 would be ideal; of q2, nothing can be found.
    assert scores_of(found)["ndcg_cut_10"] == pytest.approx(100 * (1 / np.log2(7)) / (2 + 1 / np.log2(3)) / 2)
    assert scores_of(found)["recall_100"] == pytest.approx(100 * (1 / 2 + 0) / 2)
    by_words = score_words(declared("beir_own"), benchmark, dict.fromkeys(names, "words"), RUN)
    assert {row[13:] for row in by_words.scores} == {(6, 2, 2)}


def test_documents_without_a_text_are_no_copies_of_each_other(tmp_path):
    folder = Datasets(tmp_path, "beir")
    corpus = [*CORPUS, CORPUS[1] | {"_id": "e"}, *({"_id": name, "title": "", "text": " "} for name in "xyz")]
    folder.write_dataset("own", corpus, ASKED, [("q1", "d0", 1)])
    assert folder.prepare().copies == {"beir_own": {"e": "d1"}}


MEASURES = ["map", "map_cut_5", "ndcg_cut_20", "recall_1000", "P_7", "success_3", "recip_rank", "recip_rank_3", "Rprec"]


def test_metrics_and_depths_can_be_chosen_and_are_those_of_trec_eval(tmp_path):
    benchmark, vectors = collection(1200, 12)
    asked = Beir.model_validate({"kind": "beir", "datasets": {"scifact": "f"}, "metrics": MEASURES})
    [task] = tasks_of(asked.model_dump(exclude_none=True))
    assert task.metrics == ("ndcg_cut_10", *MEASURES)
    found = scores_of(embedded(write_vectors(tmp_path, vectors), RUN)(task, benchmark))
    judged, exact = benchmark.judgements[TASK.name], {name: vector.astype("f8") for name, vector in vectors.items()}
    names = benchmark.collections[TASK.name]
    run = {query: {name: cosine(exact[name], exact[query]) for name in names} for query in judged}
    run = {query: dict(sorted(of.items(), key=lambda pair: -pair[1])[:1000]) for query, of in run.items()}
    ranks = {query: {name: -float(place) for place, name in enumerate(of)} for query, of in run.items()}
    measured = pytrec_eval.RelevanceEvaluator(judged, {*task.metrics} - {"recip_rank_3"}).evaluate(ranks).values()
    expected = {name: 100 * np.mean([of[name] for of in measured]) for name in task.metrics if name != "recip_rank_3"}
    first = [of["recip_rank"] for of in measured]
    expected["recip_rank_3"] = 100 * np.mean([value if value > 0.3 else 0 for value in first])
    assert found == pytest.approx(expected)
    assert 0 < found["recip_rank"] < 100


@pytest.mark.parametrize("metric", ["ndcg_at_10", "map_10", "recall", "recall_0", "bpref", "P_99999", ""])
def test_a_metric_that_is_not_known_is_refused(metric):
    with pytest.raises(ValidationError, match="pattern"):
        Beir.model_validate({"kind": "beir", "datasets": {"scifact": "f"}, "metrics": [metric]})
