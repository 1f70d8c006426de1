"""Reading SciRepEval's layout: every shape of row, clashing ids, and bad input."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.evaluation.folders import BenchmarkFolder

from cocite.core.errors import InputError
from cocite.core.tables.files import read_json, read_table


def document(name, **more):
    return {"doc_id": name, "title": f"title {name}", "abstract": f"abstract {name}", **more}


def judgement(query, candidate, score):
    return {"query_id": query, "cand_id": candidate, "score": score}


def labelled(paper, label):
    return {"paper_id": paper, "label": label}


class LayoutFolder(BenchmarkFolder):
    """A folder in SciRepEval's layout."""

    def write(self, path, *rows):
        self.write_lines(f"{path}.jsonl", *rows)

    def add_relish(self):
        self.write("metadata/relish/evaluation", *(document(name) for name in ("a", "b", "c", "unused")))
        self.write("test/relish/test", judgement("a", "b", 2), judgement("a", "c", 0))


@pytest.fixture
def layout(tmp_path):
    return LayoutFolder(tmp_path, "scirepeval")


def test_judgements_and_the_documents_they_name(layout):
    layout.add_relish()
    assert layout.prepare().judgements == {"relish": {"a": {"b": 2, "c": 0}}}
    assert layout.documents() == {name: (f"title {name}", f"abstract {name}") for name in "abc"}
    assert layout.omitted()["document that no task asks for"] == 1


def test_the_number_of_documents_of_each_task_is_reported(layout):
    layout.add_relish()
    layout.write("metadata/drsm/evaluation", document("a"), document("d"))
    layout.write("test/drsm/train", labelled("a", 1))
    layout.write("test/drsm/test", labelled("d", 2))
    layout.prepare()
    assert read_json(layout.tables / "sizes.json") == {"documents": 4, "tasks": {"drsm": 2, "relish": 3}}


def test_absent_tasks_are_counted(layout):
    layout.add_relish()
    layout.prepare()
    omitted = layout.omitted()
    assert omitted["task fos absent"] == 1
    assert "task relish absent" not in omitted


def test_a_query_with_its_candidates_in_one_row(layout):
    row = {"query": document("q"), "candidates": [document("x", score=1), document("y", score=0)]}
    layout.write("metadata/same_author/evaluation", row)
    layout.write("test/same_author/test", judgement("q", "x", 1), judgement("q", "y", 0))
    layout.prepare()
    assert set(layout.documents()) == {"q", "x", "y"}


def test_search_has_a_text_as_query_and_adds_venue_and_year(layout):
    row = {"doc_id": "q0", "query": "graph methods", "candidates": [document("x", venue="ACL", year=2019)]}
    layout.write("metadata/search/evaluation", row)
    layout.write("test/search/test", judgement("q0", "x", 1))
    layout.prepare()
    assert layout.documents() == {"q0": ("graph methods", None), "x": ("title x", "abstract x")}
    rows = read_table(layout.tables / "documents.parquet", "documents").to_pylist()
    assert {row["document"]: row["more"] for row in rows} == {"q0": [], "x": ["ACL", "2019"]}


def test_the_same_text_in_two_tasks_is_one_document(layout):
    layout.add_relish()
    layout.write("metadata/scidocs_view_cite_read/evaluation", document("a"), document("d"))
    layout.write("test/scidocs_cite/test", judgement("a", "d", 1))
    layout.write("test/scidocs_read/test", judgement("d", "a", 1))
    benchmark = layout.prepare()
    assert set(layout.documents()) == {"a", "b", "c", "d"}
    assert benchmark.judgements["scidocs_read"] == {"d": {"a": 1}}


def test_one_id_with_two_texts_is_two_documents(layout):
    layout.add_relish()
    layout.write("metadata/high_influence_cite/evaluation", document("a", abstract="another"), document("d"))
    layout.write("test/high_influence_cite/test", judgement("a", "d", 1))
    benchmark = layout.prepare()
    assert layout.documents()["relish:a"] == ("title a", "abstract a")
    assert layout.documents()["high_influence_cite:a"] == ("title a", "another")
    assert benchmark.judgements["relish"].keys() == {"relish:a"}
    assert benchmark.judgements["high_influence_cite"] == {"high_influence_cite:a": {"d": 1}}


def test_a_query_numbered_like_a_document_is_not_that_document(layout):
    row = {"doc_id": "1", "query": "masks", "candidates": [document("1"), document("2")]}
    layout.write("metadata/trec_covid/evaluation", row)
    layout.write("test/trec_covid/test", judgement("1", "1", 2), judgement("1", "2", 0))
    assert layout.prepare().judgements == {"trec_covid": {"trec_covid-query:1": {"trec_covid:1": 2, "2": 0}}}


def test_queries_of_words_are_short_and_papers_are_not(layout):
    row = {"doc_id": "q", "query": "masks", "candidates": [document("1"), document("2")]}
    layout.write("metadata/trec_covid/evaluation", row)
    layout.write("test/trec_covid/test", judgement("q", "1", 2))
    layout.add_relish()
    layout.prepare()
    rows = read_table(layout.tables / "documents.parquet", "documents").to_pylist()
    assert {row["document"] for row in rows if row["is_query"]} == {"q"}


def test_a_benchmark_without_short_queries_does_not_speak_of_them(layout):
    layout.add_relish()
    layout.prepare()
    assert "is_query" not in read_table(layout.tables / "documents.parquet", "documents").column_names


def test_labels_of_every_kind(layout):
    for task in ("biomimicry", "fos", "pub_year", "mesh_descriptors"):
        layout.write(f"metadata/{task}/evaluation", document("1"), document("2"))
    layout.write("test/biomimicry/train", labelled(1, True))
    layout.write("test/biomimicry/test", labelled("2", 0))
    layout.write("test/fos/train", labelled("1", [1, 0, 1]))
    layout.write("test/fos/test", labelled("2", ["Physics", "Art"]))
    layout.write("test/pub_year/train", labelled("1", 2015))
    layout.write("test/pub_year/test", labelled("2", 2016.5))
    layout.write("test/mesh_descriptors/train", labelled("1", "Humans"))
    layout.write("test/mesh_descriptors/test", labelled("2", 4.0))
    labels = layout.prepare().labels
    assert labels["biomimicry", "train"] == {"1": ["1"]}
    assert labels["biomimicry", "test"] == {"2": ["0"]}
    assert labels["fos", "train"] == {"1": ["0", "2"]}
    assert labels["fos", "test"] == {"2": ["Art", "Physics"]}
    assert [float(labels["pub_year", split][d][0]) for split, d in (("train", "1"), ("test", "2"))] == [2015, 2016.5]
    assert labels["mesh_descriptors", "train"] == {"1": ["Humans"]}
    assert labels["mesh_descriptors", "test"] == {"2": ["4"]}


def test_reviewers_bring_their_papers(layout):
    layout.write("metadata/paper_reviewer_matching/evaluation", *(document(name) for name in "pabc"))
    layout.write("metadata/reviewers/metadata", {"r_id": "r1", "papers": ["a", "b"]}, {"r_id": "r2", "papers": ["c"]})
    layout.write("test/paper_reviewer_matching/test_hard", judgement("p", "r1", 1))
    layout.write("test/paper_reviewer_matching/test_soft", judgement("p", "r1", 0))
    benchmark = layout.prepare()
    assert benchmark.judgements["paper_reviewer_matching_hard"] == {"p": {"r1": 1}}
    assert benchmark.judgements["paper_reviewer_matching_soft"] == {"p": {"r1": 0}}
    assert benchmark.reviewers == {"r1": {"a", "b"}}
    assert set(layout.documents()) == {"p", "a", "b"}


def test_a_judged_reviewer_without_papers_is_refused(layout):
    layout.write("metadata/paper_reviewer_matching/evaluation", document("p"))
    layout.write("metadata/reviewers/metadata", {"r_id": "r1", "papers": []})
    for split in ("hard", "soft"):
        layout.write(f"test/paper_reviewer_matching/test_{split}", judgement("p", "r1", 1))
    with pytest.raises(InputError, match="reviewers: no papers of the reviewer 'r1'"):
        layout.prepare()


def test_parquet_is_read_like_json_lines(layout):
    layout.add_relish()
    expected = layout.prepare()
    for file in layout.root.rglob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        pq.write_table(pa.Table.from_pylist(rows), file.with_suffix(".parquet"))
        file.unlink()
    assert layout.prepare() == expected


def test_a_few_documents_without_text_are_counted(layout):
    layout.write("metadata/relish/evaluation", document("q"), *(document(str(number)) for number in range(100)))
    layout.write("test/relish/test", *(judgement("q", str(number), 1) for number in range(101)))
    assert len(layout.prepare().judgements["relish"]["q"]) == 100
    assert layout.omitted()["task relish: document without text"] == 1


def test_a_repeated_judgement_counts_once(layout):
    layout.add_relish()
    layout.write("test/relish/test", judgement("a", "b", 2), judgement("a", "b", 0))
    assert layout.prepare().judgements == {"relish": {"a": {"b": 2}}}
    assert layout.omitted()["task relish: repeated row (the first counts)"] == 1


def test_a_query_whose_candidates_all_lack_a_text_is_counted(layout):
    layout.write("metadata/relish/evaluation", *(document(str(number)) for number in range(300)))
    rows = [judgement("0", str(number), 1) for number in range(1, 300)]
    layout.write("test/relish/test", *rows, judgement("1", "lost", 1), judgement("gone", "2", 1))
    assert layout.prepare().judgements["relish"].keys() == {"0"}
    omitted = layout.omitted()
    assert omitted["task relish: query without text, or without a candidate with text"] == 2
    assert omitted["task relish: document without text"] == 2


def test_a_query_without_a_relevant_candidate_is_counted_and_kept(layout):
    layout.add_relish()
    layout.write("test/relish/test", judgement("a", "b", 1), judgement("b", "c", 0))
    assert layout.prepare().judgements == {"relish": {"a": {"b": 1}, "b": {"c": 0}}}
    assert layout.omitted()["task relish: query without a relevant candidate (scored 0)"] == 1


def test_a_document_to_train_on_and_to_test_is_counted_and_kept_in_both(layout):
    layout.write("metadata/drsm/evaluation", document("a"), document("b"))
    layout.write("test/drsm/train", labelled("a", 1), labelled("b", 2), labelled("b", 3))
    layout.write("test/drsm/test", labelled("a", 1))
    assert layout.prepare().labels == {("drsm", "train"): {"a": ["1"], "b": ["2"]}, ("drsm", "test"): {"a": ["1"]}}
    omitted = layout.omitted()
    assert omitted["task drsm: document to train on and to test (kept in both)"] == 1
    assert omitted["task drsm: repeated row (the first counts)"] == 1


def test_a_document_with_two_texts_in_one_config_keeps_the_first(layout):
    layout.add_relish()
    names = ("a", "b", "c")
    layout.write("metadata/relish/evaluation", *map(document, names), document("b", abstract="another"))
    layout.prepare()
    assert layout.documents()["b"] == ("title b", "abstract b")
    assert layout.omitted()["document repeated with another text (the first counts)"] == 1


def test_only_the_tasks_that_are_asked_for_are_read(layout):
    layout.add_relish()
    layout.write("metadata/drsm/evaluation", "broken")
    layout.write("test/drsm/train", "broken")
    assert layout.prepare("relish").judgements == {"relish": {"a": {"b": 2, "c": 0}}}
    assert "task fos absent" not in layout.omitted()


def test_a_task_that_is_asked_for_must_be_there(layout):
    layout.add_relish()
    with pytest.raises(InputError, match="no folder test/fos, but the task fos is asked for; it holds relish"):
        layout.prepare("relish", "fos")


@pytest.mark.parametrize(
    ("path", "rows", "message"),
    [
        ("test/relish/test", [judgement("a", "b", 1), {"query_id": "a", "score": 1}], "line 2: the key 'cand_id' is"),
        ("test/relish/test", [judgement("a", "lost", 1)], "line 1: no text for the document 'lost'"),
        ("test/relish/test", [judgement("a", "b", 0.5)], "score must be a whole number from 0, not 0.5"),
        ("test/relish/test", [["a", "b"]], "line 1: must be an object"),
        ("metadata/relish/evaluation", [{"title": "no id"}], "line 1: the key 'doc_id' is missing or null"),
        ("metadata/relish/evaluation", [document(None)], "line 1: the key 'doc_id' is missing or null"),
        ("metadata/relish/evaluation", [document(["a"])], "doc_id must be a string or an integer"),
        ("test/fos/train", [labelled("a", "Physics")], "label must be a list of class names or of 0 and 1"),
        ("test/pub_year/train", [labelled("a", "unknown")], "label must be a finite number in the task pub_year"),
        ("test/drsm/train", [labelled("a", [1, 2])], "label must be one value in the task drsm"),
        ("test/biomimicry/train", [labelled("a", "yes")], "label must be 0 or 1 in the task biomimicry, not 'yes'"),
        ("test/relish/test", [judgement("a", "b", float("nan"))], "score must be a whole number from 0, not nan"),
        ("test/relish/test", [judgement("a", "b", float("inf"))], "score must be a whole number from 0, not inf"),
        ("test/relish/test", [], "has no rows"),
        ("metadata/relish/evaluation", [{"doc_id": "a", "title": 5}], "line 1: title must be a text, not 5"),
        ("metadata/relish/evaluation", [{"query": document("a"), "candidates": 3}], "candidates must be a list, not 3"),
        (
            "metadata/relish/evaluation",
            [{"query": document("a"), "candidates": ["b"]}],
            "candidates[0]: must be an obj",
        ),
    ],
)
def test_bad_rows_are_reported_with_file_and_line(layout, path, rows, message):
    layout.add_relish()
    for task in ("fos", "pub_year", "drsm", "biomimicry"):
        if f"/{task}/" in path:
            layout.write(f"metadata/{task}/evaluation", document("a"))
    layout.write(path, *rows)
    with pytest.raises(InputError) as error:
        layout.prepare()
    assert f"{layout.root / path}.jsonl" in str(error.value)
    assert message in str(error.value)
    assert not layout.tables.exists()


def test_broken_json_is_reported_with_its_line(layout):
    layout.add_relish()
    file = layout.root / "test/relish/test.jsonl"
    file.write_text(file.read_text() + "{broken\n")
    with pytest.raises(InputError, match=r"test\.jsonl, line 3: not JSON"):
        layout.prepare()


def test_what_is_not_utf8_is_reported_with_its_line(layout):
    layout.add_relish()
    file = layout.root / "test/relish/test.jsonl"
    file.write_bytes(file.read_bytes() + b"\xff\n")
    with pytest.raises(InputError, match=r"test\.jsonl, line 3: not UTF-8"):
        layout.prepare()


def test_a_missing_file_is_named(layout):
    layout.add_relish()
    (layout.root / "metadata/relish/evaluation.jsonl").unlink()
    with pytest.raises(InputError, match=r"metadata/relish: holds neither evaluation\.jsonl nor evaluation\.parquet"):
        layout.prepare()


def test_a_folder_without_tasks_is_refused(layout):
    with pytest.raises(InputError, match=r"holds none of the tasks biomimicry, .* such as test/biomimicry\."):
        layout.prepare()
