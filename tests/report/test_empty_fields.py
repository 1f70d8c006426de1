"""Fields of texts that no document of a benchmark has are named with what reads them."""

import pyarrow as pa
import pytest

from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_table
from cocite.evaluation.preparation.fields import write_fields
from cocite.report.empty_fields import empty_fields

ALL = "everything that reads texts"
SPECTER = {"text": ["title", "abstract", "venue", "authors"]}
CONFIGURATION = {
    "encoders": {"plain": {}, "specter": SPECTER, "years": {"text": ["title", "year"]}},
    "models": {"m": {"encoder": "specter"}, "further": {"from": "m"}, "p": {"encoder": "plain"}},
    "benchmarks": {"b": {"kind": "scidocs"}},
}


def write_documents(results, rows):
    folder = results / "evaluation/b"
    documents = [{"document": str(n), "more": [], **row} for n, row in enumerate(rows)]
    schema = empty_schema(TABLES["documents"])
    if not any("is_query" in row for row in documents):
        schema = pa.schema([field for field in schema if field.name != "is_query"])
    folder.mkdir(parents=True)
    write_table(folder / "documents.parquet", "documents", pa.Table.from_pylist(documents, schema=schema))


PAPER = {"title": "A title", "abstract": "An abstract", "is_query": False}
QUERY = {"title": "some words", "abstract": None, "is_query": True}


@pytest.mark.parametrize(
    ("documents", "fields", "expected"),
    [
        ([PAPER], [("0", ("Venue", ["A"], 1999))], []),
        ([PAPER], [("0", (None, ["A"], 1999))], [("b", "venue", 1, "untrained_specter, m, further")]),
        ([PAPER, PAPER], [("1", ("Venue", [], None)), ("0", (None, None, None))], ["authors", "year"]),
        ([PAPER], [], ["venue", "authors", "year"]),
        ([PAPER | {"abstract": None}, PAPER | {"abstract": ""}], [("0", ("V", ["A"], 1))], [("b", "abstract", 2, ALL)]),
        ([PAPER | {"abstract": None}, PAPER], [("0", ("V", ["A"], 1))], []),
        ([PAPER | {"abstract": None}, QUERY | {"abstract": "of a query"}], [("0", ("V", ["A"], 1))], ["abstract"]),
        ([QUERY], [("0", ("V", ["A"], 1))], []),
        ([PAPER | {"title": None}], [("0", ("V", ["A"], 1))], ["title"]),
    ],
)
def test_a_field_that_is_empty_for_every_document_is_named_with_what_reads_it(tmp_path, documents, fields, expected):
    write_documents(tmp_path, documents)
    write_fields(tmp_path / "evaluation/b/document_fields.parquet", fields)
    found = empty_fields(tmp_path, CONFIGURATION).rows()
    assert [row if isinstance(expected[at], tuple) else row[1] for at, row in enumerate(found)] == expected


def test_without_an_encoder_that_reads_more_no_further_field_is_looked_at(tmp_path):
    write_documents(tmp_path, [{"title": "A title", "abstract": None}])
    plain = {"encoders": {"plain": {}}, "models": {}, "benchmarks": {"b": {"kind": "beir"}}}
    assert empty_fields(tmp_path, plain).rows() == [("b", "abstract", 1, ALL)]
    assert empty_fields(tmp_path, plain | {"benchmarks": {}}).is_empty()
