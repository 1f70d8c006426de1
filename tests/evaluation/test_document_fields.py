"""Venue, authors and year of a benchmark's documents, from its own files or from the papers of the corpus."""

import json

import pytest
from tests.evaluation.folders import BenchmarkFolder
from tests.evaluation.test_s2and import blocks, write_dataset
from tests.papers import papers_table
from tests.rows import write_rows

from cocite.core.rows import Row
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.benchmark import write_documents
from cocite.evaluation.preparation.builder import fields_of
from cocite.evaluation.preparation.readers import describe_documents


def described(tables, kind, folder, **known):
    documents, output = tables / "documents.parquet", tables / "fields.parquet"
    describe_documents(documents, kind=kind, folder=folder, output=output, **known)
    rows = read_table(output, "document_fields").to_pylist()
    return {row["document"]: (row["venue"], row["authors"], row["year"]) for row in rows}


def described_folder(layout, **known):
    """The fields of the documents of a folder, by its own files and what else is known."""
    layout.prepare()
    return described(layout.tables, layout.kind, layout.root, **known)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"venue": " CHI ", "year": 2004, "author_names": ["Ada Abel", "Mira"]}, ("CHI", ["Ada Abel", "Mira"], 2004)),
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
    assert fields_of(Row(values, "file", 1)) == expected


def test_documents_of_scirepeval_have_the_fields_of_their_metadata(tmp_path):
    layout = BenchmarkFolder(tmp_path, "scirepeval")
    more = {"a": {"venue": "CHI", "year": 2004}, "b": {"venue": None}, "unused": {"venue": "VIS"}}
    texts = ({"doc_id": name, "title": name, "abstract": "x", **fields} for name, fields in more.items())
    layout.write_lines("metadata/relish/evaluation.jsonl", *texts)
    layout.write_lines("test/relish/test.jsonl", {"query_id": "a", "cand_id": "b", "score": 1})
    assert described_folder(layout) == {"a": ("CHI", None, 2004)}


@pytest.fixture
def scidocs(tmp_path):
    """Two clicks of the query q on the papers a and b."""
    layout = BenchmarkFolder(tmp_path, "scidocs")
    papers = {name: {"paper_id": name, "title": name, "year": 2001, "authors": ["3", "4"]} for name in "qab"}
    layout.write_text("paper_metadata_recomm.json", json.dumps(papers))
    layout.write_text("recomm/train.csv", 'pid,clicked_pid,similar_papers\nq,a,"a,b"\n')
    layout.write_text("recomm/test.csv", 'pid,clicked_pid,similar_papers\nq,a,"a,b"\nq,b,"a,b"\n')
    layout.write_text("recomm/propensity_scores.json", json.dumps({"scores": [0.5, 0.25]}))
    return layout


def test_documents_of_s2and_have_journals_authors_and_years(tmp_path):
    layout = BenchmarkFolder(tmp_path, "s2and")
    signatures = blocks(2)
    names = {paper for paper, _, _ in signatures.values()}
    paper = {"title": "t", "journal_name": "Nature", "authors": [{"position": 0, "author_name": "A B"}], "year": 1999}
    write_dataset(layout, signatures, papers=dict.fromkeys(names, paper))
    assert described_folder(layout) == dict.fromkeys(map(str, names), ("Nature", ["A B"], 1999))


def test_documents_of_scidocs_have_their_year_and_venue_and_authors_of_the_papers_that_they_are(scidocs, tmp_path):
    assert described_folder(scidocs) == dict.fromkeys(["again2:q", "a", "b", "q"], (None, None, 2001))
    columns = {"venue": ["CHI", "VIS"], "year": [2004, 1999], "authors": [["Ada Abel"], []]}
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table({7: ("A", "x"), 9: ("B", "y")}, **columns))
    rows = [(name, paper, "sha", True) for name, paper in (("a", 9), ("again2:q", 7), ("q", 7))]
    told = write_rows(tmp_path / "told.parquet", "document_papers", "document corpusid matched_by has_record", rows)
    found = described_folder(scidocs, papers=tmp_path / "papers", document_papers=told)
    of_seven = ("CHI", ["Ada Abel"], 2001)
    assert found == {"q": of_seven, "again2:q": of_seven, "a": ("VIS", [], 2001), "b": (None, None, 2001)}


@pytest.mark.parametrize("authors", [[["Ada Abel"], []], None])
def test_held_out_papers_have_the_fields_of_the_corpus_and_abstracts_to_search_have_none(authors, tmp_path):
    columns = {"venue": ["CHI", None], "year": [2004, 1999]} | ({"authors": authors} if authors else {})
    table = papers_table({7: ("A", "x"), 9: ("B", "y")}, **columns)
    write_table(tmp_path / "papers" / "0.parquet", "papers", table)
    write_documents(tmp_path, dict.fromkeys(("7", "8", "9", "abstract:7", "title:7"), ("t", None, (), None)))
    first, second = authors or (None, None)
    expected = {"7": ("CHI", first, 2004), "9": (None, second, 1999)}
    assert described(tmp_path, "holdout", None, papers=tmp_path / "papers") == expected
    assert described(tmp_path, "beir", None) == {}  # nothing is known of the documents of collections
