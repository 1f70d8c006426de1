"""BEIR folders: whole corpora are searched, exactly, in blocks, and no query finds itself."""

import gzip
import json
import re
import subprocess
import sys
from dataclasses import replace
from math import dist
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
from tests.evaluation.folders import RUN, BenchmarkFolder, read_benchmark, scored_by, scores_of

from cocite.config.benchmarks import TASKS, declared
from cocite.config.benchmarks.beir import Beir, BeirSettings, files_of
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.evaluation import scored as scored_module
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.bm25 import score_words
from cocite.evaluation.preparation.builder import Builder, Texts
from cocite.evaluation.preparation.searches import prepare_beir, read_beir
from cocite.evaluation.ranking import best_hits
from cocite.evaluation.scored import UnscorableError

TASK = TASKS["beir_scifact"]
NUMBERED_ALIKE = "task beir_scifact: query with the id of a document that it is not (may be found)"
HEADER = "query-id\tcorpus-id\tscore\n"
CORPUS = [{"_id": f"d{number}", "title": f"t{number}", "text": f"x{number}"} for number in range(4)]
ASKED = [{"_id": "q1", "text": "a claim"}, {"_id": "q2", "text": "another"}]
LOST = "not in scifact: "
JUDGED = {"q1": {"d0": 2, "d1": 0}, "q2": {"d3": 1}}
WITHOUT = "task beir_scifact: query without text, or without a judged document that counts"


class Datasets(BenchmarkFolder):
    """A folder of datasets in BEIR's layout."""

    def write_dataset(self, name, corpus, queries, judgements):
        self.write_lines(f"{name}/corpus.jsonl", *corpus)
        self.write_lines(f"{name}/queries.jsonl", *queries)
        rows = (f"{query}\t{document}\t{grade}\n" for query, document, grade in judgements)
        self.write_text(f"{name}/qrels/test.tsv", HEADER + "".join(rows))

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
def own(tmp_path):
    return Datasets(tmp_path, "beir")


@pytest.fixture
def beir(own):
    queries = [{"_id": "1", "text": "a claim"}, {"_id": "9", "text": "unjudged"}]
    own.write_dataset("scifact", map(document, range(4)), queries, [(1, 2, 1), (1, 3, -1)])
    return own


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


@pytest.mark.parametrize(
    ("queries", "short", "texts"),
    [
        ("auto", {"b"}, {"a": ("a title", "a text"), "b": ("words", None)}),
        ("short", {"a", "b"}, {"a": ("a text", None), "b": ("words", None)}),
        ("documents", set(), {"a": ("a title", "a text"), "b": (None, "words")}),
    ],
)
def test_queries_with_title_and_text_are_documents_and_others_short_unless_set(own, queries, short, texts):
    asked = [{"_id": "a", "title": "a title", "text": "a text"}, {"_id": "b", "text": "words"}]
    own.write_dataset("own", [document(1)], asked, [("a", 1, 1), ("b", 1, 1)])
    own.prepare(queries=queries)
    assert own.short_queries() == short
    assert {name: text for name, text in own.documents().items() if name in texts} == texts


def test_a_query_that_is_a_document_of_the_corpus_is_embedded_once_and_does_not_find_itself(own, tmp_path):
    query = {"_id": "1", "title": "t1", "text": "x1"}
    own.write_dataset("own", map(document, range(1, 4)), [query], [(1, 1, 2), (1, 2, 2), (1, 3, 1)])
    benchmark = own.prepare()
    assert set(own.documents()) == {"1", "2", "3"}
    assert own.short_queries() == set()
    same = ("query with the id of a document, which it is", "relevant document that is its query")
    assert own.omitted() == {f"task beir_own: {reason} (never found)": 1 for reason in same}
    found = scores_of(scored_by(tmp_path, {name: [1.0, float(name)] for name in "123"}, "beir_own", benchmark))
    # Found are 2 and 3, of grades 2 and 1, where 1, 2 and 3 are judged.
    ideal = 2 + 2 / np.log2(3) + 1 / np.log2(4)
    assert found["ndcg_cut_10"] == pytest.approx(100 * (2 + 1 / np.log2(3)) / ideal)
    assert found["recall_100"] == pytest.approx(100 * 2 / 3)


def test_a_query_without_a_text_counts_as_zero_and_many_missing_vectors_are_a_failure(tmp_path):
    benchmark, vectors = collection(300, 20)
    whole = scored_by(tmp_path, vectors, TASK, benchmark)
    values = {row[7]: row[8] for row in whole.outcomes if row[4] == "ndcg_cut_10"}
    lost = max(values, key=values.get)
    del vectors[lost]
    scored = scored_by(tmp_path, vectors, TASK, benchmark)
    assert scores_of(scored)["ndcg_cut_10"] == pytest.approx((sum(values.values()) - values[lost]) / 20)
    assert {row[9:13] for row in scored.scores} == {(320, 1, 20, 0)}
    few = {name: vector for name, vector in vectors.items() if name not in ("d1", "d2", "d3", "d4")}
    with pytest.raises(UnscorableError, match="5 of 320 documents have no vector"):
        scored_by(tmp_path, few, TASK, benchmark)


def test_a_short_query_with_the_text_and_id_of_a_document_is_another_document(own):
    corpus = [{"_id": "1", "title": "words"}, document(2)]
    own.write_dataset("own", corpus, [{"_id": "1", "text": "words"}], [(1, 2, 1)])
    own.prepare()
    assert own.short_queries() == {"own-query:1"}
    assert set(own.documents()) == {"own-query:1", "own:1", "2"}


@pytest.mark.parametrize(
    ("missing", "judged", "how", "without"),
    [
        ("keep", {"c": {"2": 1, f"{LOST}lost": 1, "0": 0}, "d": {f"{LOST}gone": 2}}, "counts as not found", 1),  # 8
        ("drop", {"c": {"2": 1, "0": 0}}, "left out", 2),  # 8, and d
    ],
)
def test_judged_documents_that_the_corpus_lacks_are_kept_unless_said_otherwise(beir, missing, judged, how, without):
    rows = [("c", 2, 1), ("c", "lost", 1), (8, 2, 1), (8, 3, 1), ("c", 0, 0), ("d", "gone", 2)]
    beir.write_dataset("scifact", map(document, range(3)), [{"_id": each, "text": "a claim"} for each in "cd"], rows)
    assert beir.prepare(missing_documents=missing).judgements == {"beir_scifact": judged}
    lacking = f"task beir_scifact: judgement of a document that is not in the corpus ({how})"
    assert beir.omitted() == {lacking: 2, WITHOUT: without}


def test_judgements_that_are_mostly_of_another_corpus_are_refused(beir):
    beir.write_dataset("scifact", map(document, range(4)), [{"_id": "1", "text": "a claim"}], [(7, 8, 1), (1, 8, 1)])
    beir.refuses("no text for the document '7'; 3 of 4 mentions in the task beir_scifact")
    beir.write_dataset("scifact", map(document, range(4)), [{"_id": "1", "text": "a claim"}], [(7, 8, 1), (1, 2, 1)])
    beir.prepare()


def test_another_table_of_judgements_can_be_named_and_a_query_without_a_relevant_document_is_scored_0(beir):
    beir.write_text("scifact/qrels/dev.tsv", f"{HEADER}1\t2\t0\n9\t0\t1\n")
    assert beir.prepare(split="dev").judgements == {"beir_scifact": {"scifact-query:1": {"2": 0}, "9": {"0": 1}}}
    assert beir.omitted() == {"task beir_scifact: query without a relevant document (scored 0)": 1, NUMBERED_ALIKE: 1}


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("qrels/test.tsv", f"{HEADER}1\t2\n", "test.tsv, line 2: has 2 fields, where 3 are expected"),
        ("qrels/test.tsv", "", "test.tsv: has no rows"),
        ("qrels/test.tsv", f"{HEADER}1\tlost\t1\n", "judges no query of queries.jsonl"),
        ("corpus.jsonl", '{"title": "t"}\n', "corpus.jsonl, line 1: the key '_id' or 'id' is missing"),
        ("corpus.jsonl", "{broken\n", "corpus.jsonl, line 1: not JSON"),
        ("corpus.jsonl", "", "corpus.jsonl: has no rows"),
        ("queries.jsonl", '{"_id": "1", "text": 3}\n', "queries.jsonl, line 1: text must be a text"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(beir, path, text, message):
    beir.refuses("beir_trec_covid is the task of no dataset; there are beir_scifact", "beir_scifact", "beir_trec_covid")
    beir.write_text(f"scifact/{path}", text)
    beir.refuses(message, "beir_scifact")


def test_judgements_may_lie_beside_the_corpus_unless_there_are_those_of_the_split(own):
    own.write_dataset("iclr2022", CORPUS, ASKED, [("q1", "d0", 1)])
    own.write_text("iclr2022/qrels.tsv", f"{HEADER}q1\td1\t2\n")
    folder = own.root / "iclr2022"
    assert own.prepare().judgements["beir_iclr2022"] == {"q1": {"d0": 1}}
    (folder / "qrels/test.tsv").unlink()
    assert own.prepare().judgements["beir_iclr2022"] == {"q1": {"d1": 2}}
    entry = Beir.model_validate({"kind": "beir", "datasets": {"iclr2022": str(folder)}})
    assert [*entry.check_environment("benchmarks.iclr", {})] == []
    (folder / "qrels.tsv").unlink()
    [said] = entry.check_environment("benchmarks.iclr", {})
    assert "the dataset iclr2022 has no file qrels/test.tsv" in said


def test_the_how_to_page_writes_a_dataset_that_its_configuration_scores(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs/how-to/own-search.md").read_text(encoding="utf-8")
    [script], [entry] = (re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) for language in ("python", "yaml"))
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-c", script], check=True)
    asked = Beir.model_validate(yaml.safe_load(entry)["benchmarks"]["searches"])
    assert list(asked.check_environment("benchmarks.searches", None)) == []
    settings, omissions = BeirSettings(datasets=asked.datasets), tmp_path / "omissions.parquet"
    prepare_beir(settings=settings, tables=tmp_path, omissions=omissions)
    assert read_benchmark(tmp_path).judgements == {"beir_library": {"q1": {"d1": 2, "d2": 0}}}


def test_a_kind_of_its_own_can_have_tasks_in_the_layout(beir):
    tasks = [declared("beir_scifact"), declared("beir_arguana")]
    builder = Builder(Texts())
    read_beir(beir.root, tasks, [], builder)
    assert builder.benchmark.judgements.keys() == {"beir_scifact"}
    assert builder.omitted["task beir_arguana absent"] == 1
    with pytest.raises(InputError, match="has no folder arguana for the requested task beir_arguana"):
        read_beir(beir.root, tasks, ["beir_arguana"], Builder(Texts()))


def collection(documents, queries, seed=0):
    """A collection, the judgements of its queries, and a vector for each document and query."""
    draw = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(documents)]
    judged = {f"scifact-query:q{n}": {names[d]: 1 for d in draw.choice(documents, 3, False)} for n in range(queries)}
    benchmark = Benchmark(judgements={TASK.name: judged}, collections={TASK.name: set(names)})
    return benchmark, {name: draw.normal(size=5).astype(np.float32) for name in [*names, *judged]}


def cosine(one, other):
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


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
def test_scores_are_those_of_the_definitions_over_all_documents_whatever_the_blocks(data, documents, queries, seed):
    names = [str(number) for number in range(documents)]  # some are the ids of queries, too
    grades = st.dictionaries(st.sampled_from(names), st.integers(-1, 2), min_size=1, max_size=20)
    judged = {str(2 * number): data.draw(grades) for number in range(queries)}
    hidden, block = data.draw(st.booleans()), data.draw(st.sampled_from([7, 64, 8192]))
    similarity, near_by = data.draw(st.sampled_from([("cosine", cosine), ("distance", lambda *ends: -dist(*ends))]))
    draw = np.random.default_rng(seed)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(scored_module, "ROWS_AT_ONCE", block)
        folder = Datasets(Path(name), "beir")
        rows = [(query, paper, grade) for query, of in judged.items() for paper, grade in of.items()]
        folder.write_dataset("own", map(document, names), [{"_id": q, "text": "words"} for q in judged], rows)
        benchmark = folder.prepare(ignore_identical_ids=hidden)
        vectors = {each: draw.normal(size=4).astype("f4").astype(float) for each in folder.documents()}
        task = replace(declared("beir_own"), similarity=similarity)
        found = scores_of(scored_by(Path(name), vectors, task, benchmark))
    expected = []
    for query, of_query in judged.items():
        own = vectors[f"own-query:{query}" if query in names else query]
        near = {each: near_by(vectors.get(f"own:{each}", vectors.get(each)), own) for each in names}
        if hidden:
            near.pop(query, None)
        expected.append(by_definition(sorted(near, key=near.get, reverse=True), of_query))
    assert found == pytest.approx({metric: np.mean([of_query[metric] for of_query in expected]) for metric in found})


@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=40), depth=st.integers(1, 12), cut=st.integers(1, 40))
def test_equal_documents_are_cut_alike_whatever_the_blocks(values, depth, cut):
    names = [f"d{n}" for n in range(len(values))]
    scores = np.array([values], dtype=float)
    whole = best_hits(["q"], [(names, scores)], {}, depth)
    parts = [(names[:cut], scores[:, :cut]), (names[cut:], scores[:, cut:])]
    assert best_hits(["q"], [part for part in parts if part[0]], {}, depth) == whole
    assert sorted(whole["q"].values()) == sorted(values)[-depth:]


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


def in_four_columns(path):
    """Write judgements as trec_eval takes them."""
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    path.write_text("".join(f"{query} 0 {document} {grade}\n" for query, document, grade in rows))


@pytest.mark.parametrize(
    ("change", "files", "judgements"),
    [
        *((change, ("corpus.jsonl", "queries.jsonl"), "/test.tsv") for change in (pack, as_table, rename)),
        (pack, ["qrels/test.tsv"], "/test.tsv.gz"),
        *((in_four_columns, ["qrels/test.tsv"], name) for name in ("/test.csv", "/test.txt", "/test.qrel", ".tsv")),
    ],
)
def test_queries_documents_and_judgements_are_read_in_other_forms(own, change, files, judgements):
    own.write_dataset("own", CORPUS, ASKED, [(q, d, grade) for q, of in JUDGED.items() for d, grade in of.items()])
    expected, texts, folder = own.prepare(), own.documents(), own.root / "own"
    assert expected.judgements == {"beir_own": JUDGED}
    for file in files:
        change(folder / file)
    if change is in_four_columns:
        (folder / "qrels/test.tsv").rename(folder / f"qrels{judgements}")
    assert (own.prepare(), own.documents()) == (expected, texts)
    found = Beir.model_validate({"kind": "beir", "folder": str(own.root)})
    assert (list(found.datasets), list(found.check_environment("benchmarks.beir", None))) == (["own"], [])
    assert files_of(folder, "test")[2] == folder / f"qrels{judgements}"


@pytest.mark.parametrize(
    ("corpus", "judged", "expected"),
    [
        # Quotation marks around an id are those of the file.
        (['d"2', "d3"], {'d"2': 2, '"d3"': 1}, {'d"2': 2, "d3": 1}),
        # A document that is missing is no other one.
        (["d0", "own:d9", "not in own: d9"], {"d0": 1, "d9": 1}, {"d0": 1, "not not in own: d9": 1}),
    ],
)
def test_an_id_is_that_of_one_document(own, corpus, judged, expected):
    rows = [("q", document, grade) for document, grade in judged.items()]
    own.write_dataset("own", [{"_id": name, "text": "x"} for name in corpus], [{"_id": "q", "text": "words"}], rows)
    assert own.prepare().judgements == {"beir_own": {"q": expected}}


def test_a_query_is_no_document_that_only_has_its_number_unless_said_otherwise(own):
    numbered = [{"_id": str(number), "text": f"where is paper {number}"} for number in range(1, 4)]
    own.write_dataset("own", map(document, range(4)), numbered, [(n, n, 1) for n in range(1, 4)])
    found, hidden = own.prepare(), own.prepare(ignore_identical_ids=True)
    assert found.own == {}
    assert hidden.own == {"beir_own": {f"own-query:{n}": f"own:{n}" for n in range(1, 4)}}


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
def test_whether_ids_are_shared_is_seen_by_the_words_of_most_of_them(own, queries, expected):
    rows = [{"_id": name, "title": title, "text": text} for name, title, text in queries]
    own.write_dataset("own", map(document, range(4)), rows, [(name, 0, 1) for name, *_ in queries])
    assert own.prepare().own.get("beir_own", {}) == expected


def test_judged_documents_that_are_missing_and_copies_of_a_text_stand_beside_each_score(own, tmp_path):
    corpus = [*CORPUS, CORPUS[1] | {"_id": "e"}, CORPUS[1] | {"_id": "f"}]
    own.write_dataset("own", corpus, ASKED, [("q1", "d0", 1), ("q1", "gone", 2), ("q1", "lost", 0), ("q2", "gone", 1)])
    benchmark = own.prepare()
    assert benchmark.copies == {"beir_own": {"e": "d1", "f": "d1"}}
    names = [*(row["_id"] for row in corpus), "q1", "q2"]
    found = scored_by(tmp_path, {name: [1.0, number] for number, name in enumerate(names)}, "beir_own", benchmark)
    assert {row[9:] for row in found.scores} == {(8, 0, 2, 0, 6, 2, 2)}
    # Of q1, d0 is the last of six hits (gain 1) where 2 and 1 would be ideal; of q2, nothing can be found.
    assert scores_of(found)["ndcg_cut_10"] == pytest.approx(100 * (1 / np.log2(7)) / (2 + 1 / np.log2(3)) / 2)
    assert scores_of(found)["recall_100"] == pytest.approx(100 * (1 / 2 + 0) / 2)
    by_words = score_words(declared("beir_own"), benchmark, dict.fromkeys(names, "words"), RUN)
    assert {row[13:] for row in by_words.scores} == {(6, 2, 2)}
    empty = ({"_id": name, "title": "", "text": " "} for name in "xyz")  # no copies of each other
    own.write_dataset("own", [*corpus[:-1], *empty], ASKED, [("q1", "d0", 1)])
    assert own.prepare().copies == {"beir_own": {"e": "d1"}}


MEASURES = ["map", "map_cut_5", "ndcg_cut_20", "recall_1000", "P_7", "success_3", "recip_rank", "recip_rank_3", "Rprec"]


def test_metrics_and_depths_can_be_chosen_and_are_those_of_trec_eval(tmp_path):
    benchmark, vectors = collection(1200, 12)
    asked = Beir.model_validate({"kind": "beir", "datasets": {"scifact": "f"}, "metrics": MEASURES})
    [task] = asked.scored_tasks
    assert task.metrics == ("ndcg_cut_10", *MEASURES)
    found = scores_of(scored_by(tmp_path, vectors, task, benchmark))
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
