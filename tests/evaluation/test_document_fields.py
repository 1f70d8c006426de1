"""Venue, authors and year of a benchmark's documents, from its own files or from the papers of the corpus."""

import json

import pyarrow as pa
import pytest
from tests.evaluation.folders import BenchmarkFolder
from tests.evaluation.test_s2and import blocks, write_dataset
from tests.papers import papers_table

from cocite.core.rows import Row
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.preparation.fields import fields_of
from cocite.evaluation.preparation.readers import describe_documents


def described(documents, kind, folder, output, **known):
    describe_documents(documents, kind=kind, folder=folder, output=output, **known)
    rows = read_table(output, "document_fields").to_pylist()
    return {row["document"]: (row["venue"], row["authors"], row["year"]) for row in rows}


def row_of(**values):
    return Row(values, "file", 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"venue": " CHI ", "year": 2004, "author_names": ["Ada Abel", "Mira Okoye"]},
            ("CHI", ["Ada Abel", "Mira Okoye"], 2004),
        ),
        ({"venue": "", "journal_name": "Nature", "year": "1999"}, ("Nature", None, 1999)),
        ({"authors": [{"position": 0, "author_name": "ada abel"}, {"position": 1}]}, (None, ["ada abel"], None)),
        ({"authors": [{"authorId": "1", "name": "Ada Abel"}]}, (None, ["Ada Abel"], None)),
        ({"authors": ["145757665", "2652889"]}, (None, None, None)),
        ({"venue": 3, "year": 0, "authors": "Ada"}, (None, None, None)),
        ({"venue": "CHI \ud83d", "authors": ["\ud83d", "Ada Abel"]}, (None, ["Ada Abel"], None)),
        ({"year": "n.d."}, (None, None, None)),
        ({"year": 2004.0}, (None, None, None)),
        ({}, (None, None, None)),
    ],
)
def test_fields_are_found_under_the_keys_that_benchmarks_have_for_them(values, expected):
    assert fields_of(row_of(**values)) == expected


def test_documents_of_scirepeval_have_the_fields_of_their_metadata(tmp_path):
    layout = BenchmarkFolder(tmp_path, "scirepeval")
    texts = [
        {"doc_id": "a", "title": "A", "abstract": "x", "venue": "CHI", "year": 2004},
        {"doc_id": "b", "title": "B", "abstract": "y", "venue": None},
        {"doc_id": "unused", "title": "C", "abstract": "z", "venue": "VIS"},
    ]
    layout.write_lines("metadata/relish/evaluation.jsonl", *texts)
    layout.write_lines("test/relish/test.jsonl", {"query_id": "a", "cand_id": "b", "score": 1})
    layout.prepare()
    found = described(layout.tables / "documents.parquet", "scirepeval", layout.root, tmp_path / "fields.parquet")
    assert found == {"a": ("CHI", None, 2004)}


def test_a_click_that_repeats_a_query_has_the_fields_of_the_query(tmp_path):
    layout = BenchmarkFolder(tmp_path, "scidocs")
    papers = {name: {"paper_id": name, "title": name, "abstract": name, "year": 2000} for name in "qab"}
    layout.write_text("paper_metadata_recomm.json", json.dumps(papers))
    layout.write_text("recomm/train.csv", 'pid,clicked_pid,similar_papers\nq,a,"a,b"\n')
    layout.write_text("recomm/test.csv", 'pid,clicked_pid,similar_papers\nq,a,"a,b"\nq,b,"a,b"\n')
    layout.write_text("recomm/propensity_scores.json", json.dumps({"scores": [0.5, 0.25]}))
    layout.prepare()
    found = described(layout.tables / "documents.parquet", "scidocs", layout.root, tmp_path / "fields.parquet")
    assert found == dict.fromkeys(["again2:q", "a", "b", "q"], (None, None, 2000))


def test_documents_of_s2and_have_journals_authors_and_years(tmp_path):
    layout = BenchmarkFolder(tmp_path, "s2and")
    signatures = blocks(2)
    names = {paper for paper, _, _ in signatures.values()}
    paper = {"title": "t", "journal_name": "Nature", "authors": [{"position": 0, "author_name": "A B"}], "year": 1999}
    write_dataset(layout, signatures, papers=dict.fromkeys(names, paper))
    layout.prepare()
    found = described(layout.tables / "documents.parquet", "s2and", layout.root, tmp_path / "fields.parquet")
    assert found == dict.fromkeys(map(str, names), ("Nature", ["A B"], 1999))


def test_documents_of_scidocs_have_venue_and_authors_of_the_papers_that_they_are(tmp_path):
    columns = {"venue": ["CHI", "VIS"], "year": [2004, 1999], "authors": [["Ada Abel"], []]}
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table({7: ("A", "x"), 9: ("B", "y")}, **columns))
    layout = BenchmarkFolder(tmp_path, "scidocs")
    papers = {name: {"paper_id": name, "title": name, "year": 2001, "authors": ["3", "4"]} for name in "qab"}
    layout.write_text("paper_metadata_recomm.json", json.dumps(papers))
    layout.write_text("recomm/train.csv", 'pid,clicked_pid,similar_papers\nq,a,"a,b"\n')
    layout.write_text("recomm/test.csv", 'pid,clicked_pid,similar_papers\nq,a,"a,b"\nq,b,"a,b"\n')
    layout.write_text("recomm/propensity_scores.json", json.dumps({"scores": [0.5, 0.25]}))
    layout.prepare()
    told = {
        "document": ["a", "again2:q", "q"],
        "corpusid": [9, 7, 7],
        "matched_by": ["sha"] * 3,
        "has_record": [True] * 3,
    }
    write_table(tmp_path / "told.parquet", "document_papers", pa.table(told))
    documents, known = layout.tables / "documents.parquet", {"document_papers": tmp_path / "told.parquet"}
    found = described(
        documents, "scidocs", layout.root, tmp_path / "fields.parquet", papers=tmp_path / "papers", **known
    )
    of_seven = ("CHI", ["Ada Abel"], 2001)
    assert found == {"q": of_seven, "again2:q": of_seven, "a": ("VIS", [], 2001), "b": (None, None, 2001)}


def write_documents(path, *names):
    nothing = [None] * len(names)
    columns = {"document": names, "title": names, "abstract": nothing, "more": [[]] * len(names), "field": nothing}
    types = {"more": pa.list_(pa.string())}
    arrays = {name: pa.array(values, types.get(name, pa.string())) for name, values in columns.items()}
    write_table(path, "documents", pa.table(arrays))


@pytest.mark.parametrize("authors", [[["Ada Abel"], []], None])
def test_held_out_papers_have_the_fields_of_the_corpus_and_abstracts_to_search_have_none(authors, tmp_path):
    columns = {"venue": ["CHI", None], "year": [2004, 1999]} | ({"authors": authors} if authors else {})
    table = papers_table({7: ("A", "x"), 9: ("B", "y")}, **columns)
    write_table(tmp_path / "papers" / "0.parquet", "papers", table)
    write_documents(tmp_path / "documents.parquet", "7", "8", "9", "abstract:7", "title:7")
    documents, papers = tmp_path / "documents.parquet", tmp_path / "papers"
    found = described(documents, "holdout", None, tmp_path / "fields.parquet", papers=papers)
    first, second = authors or (None, None)
    assert found == {"7": ("CHI", first, 2004), "9": (None, second, 1999)}


def test_nothing_is_known_of_the_documents_of_collections(tmp_path):
    write_documents(tmp_path / "documents.parquet", "7")
    assert described(tmp_path / "documents.parquet", "beir", None, tmp_path / "fields.parquet") == {}
