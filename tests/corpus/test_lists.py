"""A file that is one JSON list, as AMiner and DBLP hand them out, is read as if each item stood on a line."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.made import Made, make_corpus

from cocite.config.configuration import resolve
from cocite.core.errors import InputError
from cocite.corpus.ingest import unpacking
from cocite.corpus.release.plan import plan_corpus

RECORDS: list[dict[str, Any]] = [
    {"id": 1, "title": 'On [lists], {objects} "quotes" \\, commas\n', "abstract": "A", "refs": [2, 3], "year": 2009},
    {"id": 2, "title": "[", "abstract": "}],{", "refs": [], "venue": {"raw": "JCDL"}, "year": 2010},
    {"id": 3, "title": 'Ünïcode \\" ]', "abstract": None, "refs": [1], "year": 2011},
]
LAYOUTS: dict[str, Callable[[list[Any]], str]] = {
    "lines": lambda records: "".join(json.dumps(record) + "\n" for record in records),
    "on one line": json.dumps,
    "on one line, without spaces": lambda records: json.dumps(records, separators=(",", ":"), ensure_ascii=False),
    "indented": lambda records: json.dumps(records, indent=2) + "\n",
    "lines that begin with a comma": lambda records: "[\n" + "\n,".join(map(json.dumps, records)) + "\n]\n",
    "lines that end with a comma": lambda records: "[\r\n" + ",\r\n".join(map(json.dumps, records)) + "\r\n]",
    "a comma too much": lambda records: "[" + "".join(json.dumps(record) + "," for record in records) + "]",
    "behind blank lines": lambda records: "\n  \n" + json.dumps(records),
    "behind a mark": lambda records: "\ufeff" + json.dumps(records),
    "several lists": lambda records: "".join(json.dumps([record]) + "\n" for record in records),
    "an export of MongoDB": lambda records: json.dumps(records, indent=2).replace("2009,", "NumberInt(2009),"),
}


def corpus_of(folder: Path, text: str, name: str = "papers.json") -> dict[str, Any]:
    (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    columns = {"id": "id", "title": "title", "abstract": "abstract", "year": "year", "venue": "venue.raw"}
    return {
        "source": "table",
        "papers": {"files": str(folder / name), "columns": columns},
        "citations": {"files": str(folder / name), "columns": {"citing": "id", "cited": "refs"}},
    }


def contents(made: Made) -> Any:
    return made.rows("papers"), made.pairs, made.omitted("without a cited id")


@pytest.fixture(scope="module")
def of_lines(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the records are on lines."""
    folder = tmp_path_factory.mktemp("lines")
    return contents(make_corpus(folder / "made", corpus_of(folder, LAYOUTS["lines"](RECORDS), "lines.jsonl")))


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "lines"])
@pytest.mark.parametrize("bytes_at_once", [3, pytest.param(1 << 20, marks=pytest.mark.long)])
def test_a_list_of_any_layout_is_read_as_lines_are(layout, bytes_at_once, of_lines, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "BYTES_AT_ONCE", bytes_at_once)
    name = "papers.json.gz" if layout == "indented" else "papers.json"
    corpus = corpus_of(tmp_path, LAYOUTS[layout](RECORDS), name)
    config = {"release": "mine", "corpus": corpus, "pathvars": {"results": str(tmp_path / "planned")}}
    assert plan_corpus(resolve(config)).needs["papers"].shards == 1
    made = make_corpus(tmp_path / "made", corpus)
    assert {row["title"] for row in made.papers.values()} == {record["title"] for record in RECORDS}
    assert contents(made) == of_lines


@pytest.mark.parametrize("bytes_at_once", range(1, 12))
def test_where_a_piece_ends_changes_nothing(bytes_at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "BYTES_AT_ONCE", bytes_at_once)
    items = ['{"a": NaN, "b": "(x)"}', '{"a": Infinity, "b": "I"}', '{"a": NumberInt(3), "b": ISODate("N")}', '{"a":1}']
    (tmp_path / "list.json").write_text(f"[{','.join(items)}]")
    with unpacking.open_lines(tmp_path / "list.json") as file:
        lines = [line.decode().split() for line in file if line.strip()]
    items[2] = '{"a":           3 , "b":         "N" }'
    assert lines == [item.split() for item in items]


def test_a_release_in_a_folder_may_be_lists(tmp_path):
    records = {
        "papers": [{"corpusid": n, "title": f"T{n}"} for n in (1, 2)],
        "abstracts": [{"corpusid": n, "abstract": f"A{n}"} for n in (1, 2)],
        "citations": [{"citingcorpusid": n, "citedcorpusid": 3 - n} for n in (1, 2)],
    }
    for dataset, rows in records.items():
        (tmp_path / "release" / dataset).mkdir(parents=True)
        (tmp_path / "release" / dataset / "0.json").write_text(json.dumps(rows, indent=1))
    made = make_corpus(tmp_path / "made", {"source": "directory", "path": str(tmp_path / "release")})
    assert {row["title"]: row["abstract"] for row in made.papers.values()} == {"T1": "A1", "T2": "A2"}
    assert made.pairs == {(1, 2), (2, 1)}


CUT = "is cut short: the JSON list in it does not end"
BROKEN = {
    "cut within an item": ('[{"id": 1, "title": "a"}, {"id": 2, "ti', CUT),
    "cut behind an item": ('[{"id": 1, "title": "a"},', CUT),
    "not closed": ('[\n{"id": 1, "title": "a"}\n', CUT),
    "an empty list": ("[]", "has no column id"),
    "objects over several lines": ('{\n"id": 1\n}\n', "it has none: no line of it, or item of a list, is an object"),
    "an item that is no JSON": ('[{"id": 1}, {"id": 2,, "title": "a"}]', "line or item 2: is not JSON"),
    "an item that is no object": ('[{"id": 1}, [2]]', "line or item 2: is a list, not an object"),
    "an item without an id": ('[{"id": 1},\n {"title": "a"}]', "line or item 2: id has no id"),
    "a missing comma": ('[{"id": 1}, {"id": 2} {"id": 3}]', "line or item 2: is not JSON"),
    "something behind it": ('[{"id": 1}] x', "line or item 2: is not JSON"),
    "a closing bracket too much": ('[{"id": 1}]]', "line or item 2: is not JSON"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_list_that_is_broken_is_named_with_the_item(text, message, tmp_path):
    corpus = corpus_of(tmp_path, text)
    corpus["papers"]["columns"] = {"id": "id"}
    corpus["citations"] = {"files": str(tmp_path / "c.csv"), "columns": {"citing": "a", "cited": "b"}}
    (tmp_path / "c.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=rf"papers\.json.*{message}"):
        make_corpus(tmp_path / "made", corpus)


def test_a_long_list_is_read_in_little_memory(tmp_path):
    item = json.dumps({"id": 1, "title": "x" * 1000})
    (tmp_path / "long.json").write_text("[" + ",".join([item] * 50_000) + "]")  # 51 MB on one line
    tracemalloc.start()
    with unpacking.open_lines(tmp_path / "long.json") as file:
        assert sum(1 for _ in file) == 50_000
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
