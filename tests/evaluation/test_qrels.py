"""Judgements in the forms in which they are passed on: of BEIR, of TREC, with commas, packed, and as tables."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cocite.core.errors import InputError
from cocite.evaluation.preparation.searches import read_judgements

HEADER = "query-id\tcorpus-id\tscore\n"
EXPECTED = [("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d1", -1)]


def read(path, content):
    """The judgements in a file with this content, packed where its name says so."""
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return [judgement[1:] for judgement in read_judgements(path)]


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test.tsv", HEADER + "q1\td1\t2\nq1\td2\t0\nq2\td1\t-1\n"),
        ("test.tsv", HEADER + "q1\td1\t2.0\r\nq1\td2\t0.0\r\n\r\nq2\td1\t-1.0"),
        ("test.tsv", "\ufeff" + HEADER + "q1\td1\t2\nq1\td2\t0\nq2\td1\t-1\n"),
        ("test.tsv", "corpus-id\tquery-id\tscore\nd1\tq1\t2\nd2\tq1\t0\nd1\tq2\t-1\n"),
        ("test.tsv", "q1\t0\td1\t2\nq1\t0\td2\t0\nq2\t0\td1\t-1\n"),
        ("test.tsv", "query\titer\tdoc\trel\nq1\t0\td1\t2\nq1\t0\td2\t0\nq2\t0\td1\t-1\n"),
        ("test.tsv", HEADER + 'q1\td1\t"2"\nq1\td2\t"0"\nq2\td1\t-1\n'),
        ("test.csv", "query-id,corpus-id,score\nq1,d1,2\nq1,d2,0\nq2,d1,-1\n"),
        ("test.csv", 'query_id,doc_id,relevance\n"q1","d1","2"\nq1, d2, 0\nq2,d1,-1\n'),
        ("test.csv", "q1,0,d1,2\nq1,0,d2,0\nq2,0,d1,-1\n"),
        ("test.txt", "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 -1\n"),
        ("test.txt", "\ufeffq1   0\t d1 2\n".replace("\t", " ") + " q1 Q0 d2   0 \nq2 1 d1 -1\n\n"),
        ("test.qrel", "q1 0 d1 2.0\nq1 0 d2 0e0\nq2 0 d1 -1\n"),
        ("test.jsonl", '{"query-id": "q1", "corpus-id": "d1", "score": 2.0}\n'
                       '{"query_id": "q1", "doc_id": "d2", "relevance": 0}\n'
                       '{"qid": "q2", "docid": "d1", "rel": -1}\n'),
    ],
)  # fmt: skip
def test_every_form_has_the_same_judgements(tmp_path, name, content, packed):
    assert read(tmp_path / f"{name}{packed}", content) == EXPECTED


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64(), pa.int8(), pa.string()])
def test_a_table_has_them_as_well(tmp_path, type_):
    queries, documents, grades = zip(*EXPECTED, strict=True)
    written = pa.array([str(grade) for grade in grades] if type_ == pa.string() else grades, type_)
    columns = {"query-id": queries, "corpus-id": documents, "score": written, "more": ["x"] * 3}
    pq.write_table(pa.table(columns), tmp_path / "test.parquet")
    assert [judgement[1:] for judgement in read_judgements(tmp_path / "test.parquet")] == EXPECTED


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("test.tsv", '"a"\tb"\t1', ("a", 'b"', 1)),
        ("test.tsv", 'a b\tc,d\t1', ("a b", "c,d", 1)),
        ("test.tsv", "a\u00a0b\tc\u2028d\t1", ("a\u00a0b", "c\u2028d", 1)),
        ("test.txt", 'q1 0 "d,1,x" 1', ("q1", '"d,1,x"', 1)),
        ("test.csv", '"a,b","c ""d""",1', ("a,b", 'c "d"', 1)),
    ],
)  # fmt: skip
def test_an_id_is_what_is_written_without_the_quotes_of_the_file(tmp_path, name, line, expected):
    header = {"test.tsv": HEADER, "test.csv": "query-id,corpus-id,score\n", "test.txt": ""}[name]
    assert read(tmp_path / name, f"{header}{line}\n") == [expected]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1\td1\t2\n", "line 1: is a judgement in place of the header line"),
        ("q1,d1,2\n", "line 1: is a judgement in place of the header line"),
        ("", "has no rows"),
        ("\n \n", "has no rows"),
        (HEADER, "has no rows"),
        (HEADER + "\td1\t1\n", "line 2: the id of the query or of the document is empty"),
        (HEADER + "q1\t \t1\n", "line 2: the id of the query or of the document is empty"),
        ("one two\n", "line 1: has 2 fields, where 3 are expected (query-id, corpus-id, score) or 4"),
        ("a\tb\tc\td\te\n", "line 1: has 5 fields, where 3 are expected"),
        (HEADER + "q1\td1\n", "line 2: has 2 fields, where 3 are expected"),
        ("q1 0 d1 1\nq1 0 d 2 1\n", "line 2: has 5 fields, where 4 are expected"),
        (HEADER + "q1\td1\thigh\n", "line 2: relevance must be a whole number, not 'high'"),
        (HEADER + "q1\td1\t0.5\n", "line 2: relevance must be a whole number, not '0.5'"),
        (HEADER + "q1\td1\t1_0\n", "line 2: relevance must be a whole number, not '1_0'"),
        (HEADER + "q1\td1\tnan\n", "line 2: relevance must be a whole number, not 'nan'"),
        (HEADER + "q1\td1\tinf\n", "line 2: relevance must be a whole number, not 'inf'"),
        (HEADER + "q1\td1\t\n", "line 2: relevance must be a whole number, not ''"),
        (HEADER + "q1\td1\t99999999999\n", "line 2: relevance must be at most 1000"),
        (HEADER + "q1\td1\t" + "9" * 5000 + "\n", "line 2: relevance must be a whole number"),
        (HEADER.encode() + b"q1\t\xff\t1\n", "line 2: not UTF-8"),
        (HEADER + "q1\td1\t1\n\0\0\0", "line 3: contains a NUL byte"),
        ("q1\t0\td1\t\nq1\t0\td2\t1\n", "line 1: relevance must be a whole number, not ''"),
        ("q1 0 d1 high\nq1 0 d2 1\n", "line 1: relevance must be a whole number, not 'high'"),
        ("query-id,corpus-id,score\nq1,\"" + "d" * 200_000 + '",1\n', "line 2: cannot be split at its commas"),
    ],
)  # fmt: skip
def test_a_line_that_is_wrong_is_named(tmp_path, content, message):
    with pytest.raises(InputError) as error:
        read(tmp_path / "test.tsv", content)
    assert message in str(error.value)
    assert str(tmp_path / "test.tsv") in str(error.value)


@pytest.mark.parametrize("name", ["test.jsonl", "test.jsonl.gz", "test.parquet", "test.tsv.gz"])
def test_a_file_without_judgements_is_refused(tmp_path, name):
    pq.write_table(pa.table({"query-id": pa.array([], pa.string())}), tmp_path / "test.parquet")
    content = (tmp_path / name).read_bytes() if name == "test.parquet" else ""
    with pytest.raises(InputError, match=rf"{name}: has no rows"):
        read(tmp_path / name, content)


@pytest.mark.parametrize(
    ("query", "score", "message"),
    [
        *(("q", value, "relevance must be a whole number") for value in (0.5, True, "high", [1])),
        ("q", None, "the key 'score' or"),
        ("", 1, "the id of the query or of the document is empty"),
    ],
)
def test_a_row_has_ids_and_a_whole_number(tmp_path, query, score, message):
    with pytest.raises(InputError, match=rf"line 1: {message}"):
        read(tmp_path / "test.jsonl", json.dumps({"query-id": query, "corpus-id": "d", "score": score}) + "\n")
