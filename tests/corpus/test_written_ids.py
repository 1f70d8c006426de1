"""Ids and lists as other programs write them are read as what they stand for, or refused with file and column."""

import csv
import json
from collections.abc import Callable, Collection
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


def made_of(folder, citations, *, ids, papers=None, malformed=0, column="cited", **cited) -> Made:
    """A corpus of a file of citations, and of the papers 1 and 1000 to 1009, or 10.1/p1000 to 10.1/p1009."""
    if papers is None:
        prefix, papers = "10.1/p" if ids == "string" else "", folder / "papers.csv"
        papers.write_text("id\n" + "".join(f"{prefix}{number}\n" for number in (1, *range(1000, 1010))))
    table = {"files": str(papers), "columns": {"id": "id"}}
    columns = {"citing": "citing", "cited": {"column": column} | cited}
    corpus = {"source": "table", "ids": ids, "papers": table, "malformed": malformed}
    return make_corpus(folder / "results", corpus | {"citations": {"files": str(citations), "columns": columns}})


def write_rows(path: Path, rows: list[tuple[str, str]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("citing", "cited"), *rows])
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows))
    else:  # the second as Hive and Impala write texts
        kind = {".parquet": pl.String, ".pq": pl.Binary}[path.suffix]
        pl.DataFrame(rows, schema=[*NAMES], orient="row").cast(kind).write_parquet(path)
    return path


def parquet(**columns: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(columns), path.with_suffix(".parquet"))


def text(suffix: str, content: str) -> Callable[[Path], object]:
    return lambda path: path.with_suffix(suffix).write_text(content)


ONES, GAP = [1, 1, 1], [1000, None, 1001]
DECIMALS: dict[str, Callable[[Path], Any]] = {
    "a gap in a pandas column": text(".csv", pd.DataFrame({"citing": ONES, "cited": GAP}).to_csv(index=False)),
    "doubles in Parquet": parquet(citing=ONES, cited=[1000.0, float("nan"), 1001.0]),
    "lists of doubles": parquet(citing=[1, 1], cited=[[1000.0, 1001.0], np.array([])]),
    "floats of 32 bits": parquet(citing=ONES, cited=pa.array(GAP, pa.float32())),
    "exact decimals": parquet(citing=ONES, cited=pa.array(GAP, pa.decimal128(18, 0)).cast(pa.decimal128(20, 2))),
    "numbers of JSON": text(".jsonl", '{"citing": 1.0, "cited": [1000.0, NaN, 1.001e3]}\n'),
    "words for nothing": text(
        ".csv", "citing,cited\n1,1000\n1,nan\n1,None\n1,<NA>\n1,NaN\n1,null\n1,NA\n1,\\N\n1,1001.\n"
    ),
}


@pytest.mark.parametrize("write", DECIMALS.values(), ids=DECIMALS)
@pytest.mark.parametrize("ids", [pytest.param("integer", marks=pytest.mark.long), "string"])
def test_whole_numbers_that_became_decimals_are_those_numbers(write, ids, tmp_path):
    write(tmp_path / "citations")
    papers = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"id": [1, 1000, 1001]}), papers)
    made = made_of(tmp_path, next(tmp_path.glob("citations.*")), ids=ids, papers=papers)
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
    **{f"empty: {text}": (text, []) for text in ("[]", "[ ]", "()", "{}")},
    "no list": ("10.1/p1000", ["10.1/p1000"]),
    "brackets within ids": ("[10.1002/(SICI)1097, 10.1/x(y)]", ["10.1002/(SICI)1097", "10.1/x(y)"]),
    "a list of PostgreSQL with one id": ("{10.1/p1000}", ["10.1/p1000"]),
    "a list of PostgreSQL with one number": ("{1000}", ["1000"]),
    "a list of PostgreSQL with nothing": ("{NULL}", []),
    "parentheses within ids of PostgreSQL": ("{10.1/c(d)e,10.1/p1000}", ["10.1/c(d)e", "10.1/p1000"]),
    "one UUID of PostgreSQL": (f"{{{UUID}}}", [UUID]),
    "one in parentheses": ("(10.1/p1000)", ["10.1/p1000"]),
    "with exponents in texts": ('["10.1/4e5", "1e5"]', ["10.1/4e5", "1e5"]),
    "with an accent": ("['10.1/é']", ["10.1/é"]),
    "with a backslash": (r"['10.1/a\\b']", [r"10.1/a\b"]),
    **{
        f"no list: {text}": (text, None)
        for text in (
            *("10.1002/(SICI)1097-4571(1999)50:1<3::AID>3.0.CO;2-A", "10.1016/S0167(97)00036-1"),
            *("10.1002/(SICI)1097-4571(199012)41:6<391::AID-ASI1>3.0.CO;2-9", "{0A1B2C3D-0000-4000-8000-00A0C91E6BF6}"),
            *("10.1890/0012-9658(2003)084[0001:X]2.0.CO;2", "(OCoLC)1234", "S0167(97)00036-1", "arXiv:1234(5)"),
            "'tHooft1974",
        )
    },
}


def test_white_space_around_an_id_is_no_part_of_it_and_by_itself_is_no_id(tmp_path):
    cited = ("10.1/p1000\n", "\t10.1/p1001\u00a0", "10.1/p1002\r", "\t", " \n")
    made = made_of(tmp_path, write_rows(tmp_path / "c.csv", [("10.1/p1", each) for each in cited]), ids="string")
    assert made.named_pairs == {("10.1/p1", f"10.1/p100{n}") for n in "012"}


def test_a_key_with_dots_is_one_key_and_dots_also_lead_into_objects(tmp_path):
    papers = [{"a.id": paper, "a.title": f"Paper {paper}"} for paper in (1, 1000, 1001)]
    citations = [{"bib.citing": 1, "to": {"id": cited}} for cited in (1000, 1001)]
    for name, lines in (("papers", papers), ("citations", citations)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = {
        **{"source": "table", "ids": "integer"},
        "papers": {"files": f"{tmp_path}/papers.jsonl", "columns": {"id": "a.id", "title": "a.title"}},
        "citations": {"files": f"{tmp_path}/citations.jsonl", "columns": {"citing": "bib.citing", "cited": "to.id"}},
    }
    made = make_corpus(tmp_path / "results", corpus)
    assert made.pairs == {(1, 1000), (1, 1001)}
    assert {row["title"] for row in made.papers.values()} == {"Paper 1", "Paper 1000", "Paper 1001"}


@pytest.mark.parametrize("form", ["csv", "parquet", "pq", "jsonl"])
@pytest.mark.parametrize("separator", [None, pytest.param(",", marks=pytest.mark.long), ";"])
def test_lists_of_ids_that_were_written_as_text_are_read(form, separator, tmp_path):
    rows = [(name, text) for name, (text, items) in LISTS.items() if items is not None or separator != ";"]
    path = write_rows(tmp_path / f"citations.{form}", rows)
    made = made_of(tmp_path, path, ids="string", **({"separator": separator} if separator else {}))
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


CITING = pytest.mark.parametrize(("ids", "citing"), [("integer", "1"), ("string", "10.1/p1")])


@CITING
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_may_not_be_read_is_malformed(form, ids, citing, tmp_path):
    refused = [*LISTS_REFUSED, *ROUNDED]
    path = write_rows(tmp_path / f"citations.{form}", [(citing, text) for text in (citing, *refused)])
    made = made_of(tmp_path, path, ids=ids, malformed=0.99)
    assert made.omitted("malformed") == len(refused) + 1  # that of np.int64 is two
    assert not made.pairs


@CITING
@pytest.mark.parametrize(
    ("text", "message"),
    [(LISTS_REFUSED[0], "a list that cannot be read here"), (ROUNDED[0], "a decimal, to which ids have been rounded")],
)
def test_what_may_not_be_read_stops_with_file_and_column(text, message, ids, citing, tmp_path):
    path = tmp_path / "citations.jsonl"
    path.write_text("\n\n" + json.dumps({"citing": citing, "cited": text}))
    with pytest.raises(InputError, match=rf"citations\.jsonl, line 3: cited is .*{message}"):
        made_of(tmp_path, path, ids=ids)


def test_a_list_is_the_id_of_no_paper(tmp_path):
    papers = tmp_path / "papers.csv"
    papers.write_text("id\n\"['10.1/p1000']\"\n")
    citations = write_rows(tmp_path / "citations.csv", [("10.1/p1", "10.1/p1000")])
    with pytest.raises(InputError, match=r"papers\.csv, line 2: id is .* a list that cannot be read"):
        made_of(tmp_path, citations, ids="string", papers=papers)


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
        made_of(tmp_path, path, ids=ids, **within)


NAMES_IN_CELLS = {
    "['Physics', 'Computer Science']": ["Physics", "Computer Science"],
    '["Physics", "Andr\\u00e9"]': ["Physics", "André"],
    "['Physics' 'Computer Science']": ["Physics", "Computer Science"],
    **{key: ["Physics"] for key in ("[None, 'Physics']", "[None 'Physics']", '[NaN, "Physics"]', "Physics")},
    **{key: [] for key in ("[]", "{}", "()", "[None]", "[nan]", "[nan nan]")},
    "['a, 1e5 ... b']": ["a, 1e5 ... b"],
    '{"Computer Science"}': ["Computer Science"],
    **{name: [name] for name in ("[Anonymous]", "{NASA}", "Andr{\\'e}", "(Physics)", "Physics (applied)", "'t Hooft")},
    **{name: [name] for name in ("O'Brien", '"Babe" Ruth', "(Applied) Physics")},
}


def make_with_fields(folder: Path, texts: Collection[str], malformed: float = 0, **column: str) -> Made:
    pl.DataFrame({"id": range(len(texts)), "fields": [*texts]}).write_csv(folder / "papers.csv")
    papers = {"files": f"{folder}/papers.csv", "columns": {"id": "id", "fields": {"column": "fields", **column}}}
    citations = {"files": str(write_rows(folder / "citations.csv", [("1", "2")])), "columns": NAMES}
    tables = {"papers": papers, "citations": citations}
    return make_corpus(folder / "results", {"source": "table", "malformed": malformed, **tables})


@pytest.mark.parametrize("separator", [None, ",", ";"])
def test_lists_of_names_that_were_written_as_text_are_read(separator, tmp_path):
    made = make_with_fields(tmp_path, NAMES_IN_CELLS, **({"separator": separator} if separator else {}))
    assert [row["fields"] for row in made.papers.values()] == [*NAMES_IN_CELLS.values()]


def test_names_with_a_comma_are_names(tmp_path):
    names = ["Smith (Jr), John", "Smith, John (Jr)", "'t Hooft, Gerard", "{van der} Berg, Jan", "Lee, J. [orcid:1, x]"]
    made = make_with_fields(tmp_path, names)
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
    with pytest.raises(InputError, match=r"papers\.csv, line 3: fields is a list that cannot be read"):
        make_with_fields(tmp_path, ["Physics", *LISTS_OF_NAMES_REFUSED])
    made = make_with_fields(tmp_path, ["Physics", *LISTS_OF_NAMES_REFUSED], malformed=0.99)
    assert made.omitted("malformed") == len(LISTS_OF_NAMES_REFUSED)
