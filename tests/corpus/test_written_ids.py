"""Ids and lists as other programs write them are read as what they stand for, or refused with file and column."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.corpus.made import Made, make_corpus

from cocite.core.errors import InputError

NAMES = {"citing": "citing", "cited": "cited"}


def made_of(
    folder: Path,
    citations: str,
    *,
    ids: str,
    papers: str = "",
    malformed: float = 0,
    column: str = "cited",
    **cited: Any,
) -> Made:
    """A corpus of a file of citations, and of the papers 1 and 1000 to 1009, or 10.1/p1000 to 10.1/p1009."""
    if not papers:
        prefix, papers = "10.1/p" if ids == "string" else "", str(folder / "papers.csv")
        Path(papers).write_text("id\n" + "".join(f"{prefix}{number}\n" for number in (1, *range(1000, 1010))))
    corpus = {
        **{"source": "table", "ids": ids, "papers": {"files": papers, "columns": {"id": "id"}}, "malformed": malformed},
        "citations": {"files": citations, "columns": {"citing": "citing", "cited": {"column": column} | cited}},
    }
    return make_corpus(folder / "results", corpus)


def write_rows(path: Path, rows: list[tuple[str, str]]) -> str:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("citing", "cited"), *rows])
    return str(path)


def parquet(**columns: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(columns), path.with_suffix(".parquet"))


ONES, GAP = [1, 1, 1], [1000, None, 1001]
DECIMALS: dict[str, Callable[[Path], Any]] = {
    "a gap in a pandas column": lambda path: pd.DataFrame({"citing": ONES, "cited": GAP}).to_csv(
        path.with_suffix(".csv"), index=False
    ),
    "doubles in Parquet": parquet(citing=ONES, cited=[1000.0, float("nan"), 1001.0]),
    "lists of doubles": parquet(citing=[1, 1], cited=[[1000.0, 1001.0], np.array([])]),
    "floats of 32 bits": parquet(citing=ONES, cited=pa.array(GAP, pa.float32())),
    "exact decimals": parquet(citing=ONES, cited=pa.array(GAP, pa.decimal128(18, 0)).cast(pa.decimal128(20, 2))),
    "numbers of JSON": lambda path: path.with_suffix(".jsonl").write_text(
        '{"citing": 1.0, "cited": [1000.0, NaN, 1.001e3]}\n'
    ),
    "words for nothing": lambda path: path.with_suffix(".csv").write_text(
        "citing,cited\n1,1000\n1,nan\n1,None\n1,<NA>\n1,NaN\n1,null\n1,NA\n1,\\N\n1,1001.\n"
    ),
}


@pytest.mark.parametrize("write", DECIMALS.values(), ids=DECIMALS)
@pytest.mark.parametrize("ids", [pytest.param("integer", marks=pytest.mark.long), "string"])
def test_whole_numbers_that_became_decimals_are_those_numbers(write, ids, tmp_path):
    write(tmp_path / "citations")
    papers = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"id": [1, 1000, 1001]}), papers)
    made = made_of(tmp_path, str(next(tmp_path.glob("citations.*"))), ids=ids, papers=str(papers))
    pairs = made.pairs if ids == "integer" else {(int(one), int(other)) for one, other in made.named_pairs}
    assert pairs == {(1, 1000), (1, 1001)}
    assert made.omitted("without a cited id") >= 1


UUID = "0a1b2c3d-0000-4000-8000-00a0c91e6bf6"
LISTS = {
    "by pandas": ("['10.1/p1000', '10.1/p1004']", ["10.1/p1000", "10.1/p1004"]),
    "as JSON": ('["10.1/p1000", "10.1/p1004", null]', ["10.1/p1000", "10.1/p1004"]),
    "by NumPy": ("['10.1/p1000' '10.1/p1004'\n '10.1/p1005']", ["10.1/p1000", "10.1/p1004", "10.1/p1005"]),
    "by DuckDB": ("[10.1/p1000, 10.1/p1004, NULL]", ["10.1/p1000", "10.1/p1004"]),
    "a tuple": ("('10.1/p1000',)", ["10.1/p1000"]),
    "a set": ("{'10.1/p1000', '10.1/p1004'}", ["10.1/p1000", "10.1/p1004"]),
    "by PostgreSQL": ("{10.1/p1000,10.1/p1004}", ["10.1/p1000", "10.1/p1004"]),
    "with gaps": ("['10.1/p1000', None, nan]", ["10.1/p1000"]),
    "with both quotes": ("""['10.1/it\\'s', "10.1/p1004"]""", ["10.1/it's", "10.1/p1004"]),
    "with escapes": ('["10.1\\/p1000", "10.1/\\u00e9"]', ["10.1/p1000", "10.1/é"]),
    "with spaces around": ("  [ '10.1/p1000' , '10.1/p1004' ] ", ["10.1/p1000", "10.1/p1004"]),
    "empty": ("[]", []),
    "empty, with a space": ("[ ]", []),
    "an empty tuple": ("()", []),
    "an empty set of PostgreSQL": ("{}", []),
    "no list": ("10.1/p1000", ["10.1/p1000"]),
    "an id with brackets": ("10.1002/(SICI)1097-4571(199012)41:6<391::AID-ASI1>3.0.CO;2-9", None),
    "brackets within ids": ("[10.1002/(SICI)1097, 10.1/x(y)]", ["10.1002/(SICI)1097", "10.1/x(y)"]),
    "a list of PostgreSQL with one id": ("{10.1/p1000}", ["10.1/p1000"]),
    "a list of PostgreSQL with one number": ("{1000}", ["1000"]),
    "a list of PostgreSQL with nothing": ("{NULL}", []),
    "parentheses within ids of PostgreSQL": ("{10.1/c(d)e,10.1/p1000}", ["10.1/c(d)e", "10.1/p1000"]),
    "one UUID of PostgreSQL": (f"{{{UUID}}}", [UUID]),
    "a GUID in braces": ("{0A1B2C3D-0000-4000-8000-00A0C91E6BF6}", None),
    "one in parentheses": ("(10.1/p1000)", ["10.1/p1000"]),
    "with exponents in texts": ('["10.1/4e5", "1e5"]', ["10.1/4e5", "1e5"]),
    "with an accent": ("['10.1/é']", ["10.1/é"]),
    "with a backslash": (r"['10.1/a\\b']", [r"10.1/a\b"]),
    "an id with all signs": ("10.1002/(SICI)1097-4571(1999)50:1<3::AID>3.0.CO;2-A", None),
    "an id of Elsevier": ("10.1016/S0167(97)00036-1", None),
    "an id with square brackets": ("10.1890/0012-9658(2003)084[0001:X]2.0.CO;2", None),
    "an id that begins with parentheses": ("(OCoLC)1234", None),
    "an id that begins with letters": ("S0167(97)00036-1", None),
    "an id with parentheses at its end": ("arXiv:1234(5)", None),
    "an id that begins with a quote": ("'tHooft1974", None),
}


def test_white_space_around_an_id_is_no_part_of_it_and_by_itself_is_no_id(tmp_path):
    cited = ("10.1/p1000\n", "\t10.1/p1001\u00a0", "10.1/p1002\r", "\t", " \n")
    citations = write_rows(tmp_path / "citations.csv", [("10.1/p1", each) for each in cited])
    made = made_of(tmp_path, citations, ids="string")
    assert {made.names[paper] for pair in made.pairs for paper in pair} == {
        "10.1/p1",
        *(f"10.1/p100{n}" for n in "012"),
    }


def test_a_key_with_dots_is_one_key_and_dots_also_lead_into_objects(tmp_path):
    lines = [{"bib.citing": 1, "to": {"id": cited}} for cited in (1000, 1001)]
    path = tmp_path / "citations.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = {
        **{"source": "table", "ids": "integer"},
        "papers": {"files": write_papers(tmp_path), "columns": {"id": "a.id", "title": "a.title"}},
        "citations": {"files": str(path), "columns": {"citing": "bib.citing", "cited": "to.id"}},
    }
    made = make_corpus(tmp_path / "results", corpus)
    assert {*made.pairs} == {(1, 1000), (1, 1001)}
    assert {row["title"] for row in made.papers.values()} == {"Paper 1", "Paper 1000", "Paper 1001"}


def write_papers(folder: Path) -> str:
    """Papers as JSON Lines with keys that have dots."""
    lines = [json.dumps({"a.id": paper, "a.title": f"Paper {paper}"}) for paper in (1, 1000, 1001)]
    (folder / "papers.jsonl").write_text("\n".join(lines))
    return str(folder / "papers.jsonl")


@pytest.mark.parametrize("form", ["csv", "parquet", "pq", "jsonl"])
@pytest.mark.parametrize("separator", [None, pytest.param(",", marks=pytest.mark.long), ";"])
def test_lists_of_ids_that_were_written_as_text_are_read(form, separator, tmp_path):
    path = tmp_path / f"citations.{form}"
    rows = [(name, text) for name, (text, items) in LISTS.items() if items is not None or separator != ";"]
    if form == "csv":
        write_rows(path, rows)
    elif form in ("parquet", "pq"):  # the latter as Hive and Impala write texts
        kind = pl.String if form == "parquet" else pl.Binary
        pl.DataFrame(rows, schema=["citing", "cited"], orient="row").cast(kind).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows))
    made = made_of(tmp_path, str(path), ids="string", **({"separator": separator} if separator else {}))
    expected = {name: [text] if LISTS[name][1] is None else LISTS[name][1] for name, text in rows}
    assert made.named_pairs == {(name, item) for name, items in expected.items() for item in items}


def test_lists_of_whole_numbers_that_were_written_as_text_are_read(tmp_path):
    texts = ["[1000, 1001]", "[1002.0, nan]", "[1003 1004]", "[1005. 1006.]", "(1007, 1008)", '["1009"]']
    made = made_of(tmp_path, write_rows(tmp_path / "citations.csv", [("1", text) for text in texts]), ids="integer")
    assert made.pairs == {(1, number) for number in range(1000, 1010)}


LISTS_REFUSED = [
    *("['10.1/p1000', '10.1/p10", "[['10.1/p1000']]", "[{'id': '10.1/p1000'}]", '[{"id": "10.1/p1000"}]'),
    *("{'id': '10.1/p1000'}", "array(['10.1/p1000'], dtype=object)", "['10.1/p1000' ... '10.1/p1004']"),
    *("[u'10.1/p1000']", "[np.str_('10.1/p1000')]", "Index(['10.1/p1000'], dtype='object')", "set()"),
    *("[4.31234568e+09]", '["1000", 4.3E9]', "[1.e+16 2.e+00]", "[np.int64(1000), np.int64(1001)]"),
    *(r"['10.1/p1000\n']", r'["10.1/p1000\ud83d"]', r'"[\"10.1/p1000\", \"10.1/p1001\"]"'),
    *("[10.1/p1000; 10.1/p1001]", "[10.1/p1000|10.1/p1001]", "[10.1/p1000 10.1/p1001]"),
    *("ARRAY['10.1/p1000','10.1/p1001']", "WrappedArray(10.1/p1000, 10.1/p(1)001)", "WrappedArray(10.1/p1000)"),
    *("'10.1/p1000', '10.1/p1001'", "{10.1/p1000,10.1/p10", "(10.1/p1000, 10.1/p10", "[1 2 ... 8 9]"),
]
ROUNDED = ["1.e+16", "4.31234568E9", "1.2345678901234568e+16", "9007199254740994.0", "1.23E+15"]


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_may_not_be_read_is_malformed(form, ids, tmp_path):
    citing = "1" if ids == "integer" else "10.1/p1"
    refused, path = [*LISTS_REFUSED, *ROUNDED], tmp_path / f"citations.{form}"
    rows = [(citing, text) for text in (citing, *refused)]
    if form == "csv":
        write_rows(path, rows)
    else:
        path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows))
    made = made_of(tmp_path, str(path), ids=ids, malformed=0.99)
    assert made.omitted("malformed") == len(refused) + 1  # that of np.int64 is two
    assert not made.pairs


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize(
    ("text", "message"),
    [(LISTS_REFUSED[0], "a list that cannot be read here"), (ROUNDED[0], "a decimal, to which ids have been rounded")],
)
def test_what_may_not_be_read_stops_with_file_and_column(text, message, ids, tmp_path):
    citing = "1" if ids == "integer" else "10.1/p1"
    path = tmp_path / "citations.jsonl"
    path.write_text("\n\n" + json.dumps({"citing": citing, "cited": text}))
    with pytest.raises(InputError, match=rf"citations\.jsonl, line 3: cited is .*{message}"):
        made_of(tmp_path, str(path), ids=ids)


def test_a_list_is_the_id_of_no_paper(tmp_path):
    (tmp_path / "papers.csv").write_text("id\n\"['10.1/p1000']\"\n")
    citations = write_rows(tmp_path / "citations.csv", [("10.1/p1", "10.1/p1000")])
    with pytest.raises(InputError, match=r"papers\.csv, line 2: id is .* a list that cannot be read"):
        made_of(tmp_path, citations, ids="string", papers=str(tmp_path / "papers.csv"))


FLOATS = {
    "of 64 bits": pa.array([float(1 << 53)]),
    "of 32 bits": pa.array([1 << 24], pa.float32()),
    "of 16 bits": pa.array(np.array([2048], np.float16)),
    "infinite": pa.array([float("inf")]),
    "a fraction": pa.array([1000.5]),
    "in a list": pa.array([[1 << 24]], pa.list_(pa.float32())),
    "in a list of fixed length": pa.array([[1 << 24]], pa.list_(pa.float32(), 1)),
    "in an object": pa.array([{"id": 1 << 24}], pa.struct([("id", pa.float32())])),
    "in a list of objects": pa.array([[{"id": 1 << 24}]], pa.list_(pa.struct([("id", pa.float32())]))),
}


@pytest.mark.parametrize("cited", FLOATS.values(), ids=FLOATS)
@pytest.mark.parametrize("ids", [pytest.param("integer", marks=pytest.mark.long), "string"])
def test_a_float_that_several_ids_can_have_become_is_refused(cited, ids, tmp_path):
    path = tmp_path / "citations.parquet"
    pq.write_table(pa.table({"citing": [1], "cited": cited}), path)
    within = {"column": "cited.id"} if "struct" in str(cited.type) else {}
    with pytest.raises(InputError, match=r"citations\.parquet, row 1: cited\S* is .* a decimal, to which ids"):
        made_of(tmp_path, str(path), ids=ids, **within)


NAMES_IN_CELLS = {
    "['Physics', 'Computer Science']": ["Physics", "Computer Science"],
    '["Physics", "Andr\\u00e9"]': ["Physics", "André"],
    "['Physics' 'Computer Science']": ["Physics", "Computer Science"],
    "[None, 'Physics']": ["Physics"],
    "[None 'Physics']": ["Physics"],
    "[]": [],
    "{}": [],
    "()": [],
    "[None]": [],
    "[nan]": [],
    "[nan nan]": [],
    '[NaN, "Physics"]': ["Physics"],
    "['a, 1e5 ... b']": ["a, 1e5 ... b"],
    '{"Computer Science"}': ["Computer Science"],
    "[Anonymous]": ["[Anonymous]"],
    "{NASA}": ["{NASA}"],
    "Andr{\\'e}": ["Andr{\\'e}"],
    "(Physics)": ["(Physics)"],
    "Physics (applied)": ["Physics (applied)"],
    "'t Hooft": ["'t Hooft"],
    "O'Brien": ["O'Brien"],
    '"Babe" Ruth': ['"Babe" Ruth'],
    "Physics": ["Physics"],
    "(Applied) Physics": ["(Applied) Physics"],
}


@pytest.mark.parametrize("separator", [None, ",", ";"])
def test_lists_of_names_that_were_written_as_text_are_read(separator, tmp_path):
    write_fields(tmp_path, [*NAMES_IN_CELLS])
    column = {"column": "fields", **({"separator": separator} if separator else {})}
    made = make_with_fields(tmp_path, column)
    assert [row["fields"] for row in made.papers.values()] == [*NAMES_IN_CELLS.values()]


def test_names_with_a_comma_are_names(tmp_path):
    names = ["Smith (Jr), John", "Smith, John (Jr)", "'t Hooft, Gerard", "{van der} Berg, Jan", "Lee, J. [orcid:1, x]"]
    write_fields(tmp_path, names)
    made = make_with_fields(tmp_path, "fields")
    assert [row["fields"] for row in made.papers.values()] == [[name] for name in names]


LISTS_OF_NAMES_REFUSED = [
    *("['Physics', 'Comp", "[{'name': 'Physics'}]", '[{"name": "Physics"}]', "[Physics, Biology]"),
    *("[Physics; Biology]", "[Physics, Biol", "[['a']]", "(Physics, Biology)", '{Physics,"Computer Science"}'),
    *("{Physics,Biology}", "set()", "array([], dtype=object)", 'c("a", "b")', "ARRAY['Physics']"),
    *("['Physics' 1]", "WrappedArray(Physics, Biology)", "'Physics', 'Biology'"),
    *(r'"[\"Physics\", \"Biology\"]"', "[np.str_('Physics')]", "[u'Physics']", "[b'Physics' b'Biology']"),
    *("character(0)", r"['A.\xa0Smith']", r"['Comp\nSci']", r'["A\ud83d"]'),
]


def test_a_list_of_names_that_cannot_be_read_stops_with_file_and_column(tmp_path):
    write_fields(tmp_path, ["Physics", *LISTS_OF_NAMES_REFUSED])
    with pytest.raises(InputError, match=r"papers\.csv, line 3: fields is a list that cannot be read"):
        make_with_fields(tmp_path, "fields")
    made = make_with_fields(tmp_path, "fields", malformed=0.99)
    assert made.omitted("malformed") == len(LISTS_OF_NAMES_REFUSED)


def write_fields(folder: Path, texts: list[str]) -> None:
    pl.DataFrame({"id": range(len(texts)), "fields": texts}).write_csv(folder / "papers.csv")


def make_with_fields(folder: Path, column: Any, **keys: Any) -> Made:
    papers = {"files": f"{folder}/papers.csv", "columns": {"id": "id", "fields": column}}
    citations = {"files": write_rows(folder / "citations.csv", [("1", "2")]), "columns": NAMES}
    return make_corpus(folder / "results", {"source": "table", "papers": papers, "citations": citations, **keys})
