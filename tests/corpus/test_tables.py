"""The source table: files of any format with the same rows become the same corpus, and every row is accounted for."""

import gzip
import io
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.configurations import refusals, with_changes
from tests.corpus.made import Made, make_corpus

from cocite.config.configuration import resolve, resolve_or_explain
from cocite.config.release_folder import DATASETS
from cocite.config.table_files import CitationTable
from cocite.core.errors import InputError
from cocite.corpus.ingest import cells, user_files
from cocite.corpus.release.plan import plan_corpus

PAPERS = [
    {"key": "10.1/B", "name": "On, “commas”", "text": "An\nabstract.", "when": 1999, "in": "JCDL", "about": ["A", "B"]},
    {"key": "10.1/a", "name": 'A "quote"', "text": None, "when": None, "in": None, "about": []},
    {"key": "x:é", "name": None, "text": "Tabs\tand ; too", "when": 2004, "in": "CHI", "about": ["B"]},
]
CITATIONS = [("10.1/B", "10.1/a"), ("10.1/a", "x:é"), ("x:é", "no record"), ("10.1/B", "x:é")]
COLUMNS = {
    "papers": {"id": "key", "title": "name", "abstract": "text", "year": "when", "venue": "in", "fields": "about"},
    "citations": {"citing": "from", "cited": "to"},
}

Write = Callable[..., dict[str, Any]]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    """Make a corpus of files of tables; each time in a folder of its own."""
    runs = iter(range(100))

    def make(corpus: dict[str, Any], threads: int = 1, **keys: Any) -> Made:
        return make_corpus(tmp_path / f"results-{next(runs)}", {"source": "table", **corpus, **keys}, threads=threads)

    return make


@pytest.fixture
def table(tmp_path: Path) -> Write:
    """Write the text of a table; return its files and columns as a configuration names them."""

    def table(name: str, text: str | bytes, columns: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
        raw = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return {"files": str(tmp_path / name), "columns": columns or COLUMNS["citations"], **keys}

    return table


@pytest.mark.parametrize("name", ["a*.parquet", "[ab].parquet", "a?.parquet", "[!x].parquet"])
def test_a_file_whose_name_is_a_pattern_is_read_and_no_other(tmp_path, name):
    rows = {name: [1, 2], "a.parquet": [3], "b.parquet": [4], "ab.parquet": [5]}
    for file, ids in rows.items():
        pl.DataFrame({"from": ids, "to": ids}).write_parquet(tmp_path / file)
    given = CitationTable(files=str(tmp_path / name), columns={"citing": "from", "cited": "to"})
    with duckdb.connect() as connection:
        read = 'CREATE TABLE found AS SELECT "from" FROM given'
        user_files.read_rows(connection, given, Path(given.paths()[0]), ["from"], read)
        assert connection.sql("SELECT * FROM found").fetchall() == [(1,), (2,)]


def test_the_name_of_a_folder_is_no_column(tmp_path, table, make):
    (tmp_path / "year=2020").mkdir()
    pl.DataFrame({"id": [1, 2], "year": [1999, 2001]}).write_parquet(tmp_path / "year=2020/papers.parquet")
    papers = table("papers.csv", "", {"id": "id", "year": "year"}) | {
        "files": str(tmp_path / "year=2020/papers.parquet")
    }
    made = make({"papers": papers, "citations": table("citations.csv", "from,to\n1,2\n")})
    assert [row["year"] for row in made.rows("papers")] == [1999, 2001]


def write(folder: Path, form: str) -> dict[str, Any]:
    """The papers and citations above in files of a format; the corpus of a configuration."""
    papers = pl.DataFrame(PAPERS, schema_overrides={"when": pl.Int32}, strict=False)
    citations = pl.DataFrame(CITATIONS, schema=["from", "to"], orient="row")
    columns = COLUMNS["papers"]
    if form in ("csv", "tsv"):
        papers = papers.with_columns(about=pl.col("about").list.join(";"))
        columns = columns | {"fields": {"column": "about", "separator": ";"}}
    for name, rows in (("papers", papers), ("citations", citations)):
        path = folder / f"{name}.{form}"
        if form == "parquet":
            rows.write_parquet(path)
        elif form == "jsonl.gz":
            path.write_bytes(gzip.compress(rows.write_ndjson().encode()))
        else:
            rows.write_csv(path, separator="," if form == "csv" else "\t")
    return {
        "ids": "string",
        "papers": {"files": f"{folder}/papers.{form}", "columns": columns},
        "citations": {"files": f"{folder}/citations.{form}", "columns": COLUMNS["citations"]},
    }


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "jsonl.gz"])
def test_a_table_of_any_format_becomes_the_same_corpus(form, tmp_path, make):
    made = make(write(tmp_path, form))
    assert made.names == {0: "10.1/B", 1: "10.1/a", 2: "no record", 3: "x:é"}  # in the order of their bytes
    assert made.named_pairs == set(CITATIONS)
    found = {made.names[paper]: row for paper, row in made.papers.items()}
    for paper in PAPERS:
        row = found.pop(paper["key"])
        assert [row[name] for name in ("title", "abstract", "year", "venue", "fields")] == [*paper.values()][1:]
    assert not found


def test_numbers_depend_neither_on_files_nor_on_threads_nor_on_buckets(tmp_path, table, make):
    names = [f"p{number}" for number in range(50)]
    shuffled = [*names[20:], *names[:20]]
    corpora = []
    for at, parts in enumerate([[names[::-1]], [shuffled[:7], shuffled[7:]]]):
        for number, part in enumerate(parts):
            table(f"{at}/papers-{number}.csv", "id\n" + "\n".join(part) + "\n")
            table(f"{at}/citations-{number}.csv", "from,to\n" + "".join(f"{name},p7\n" for name in part))
        papers = {"files": f"{tmp_path}/{at}/papers-*.csv", "columns": {"id": "id", "title": "id"}}
        citations = {"files": f"{tmp_path}/{at}/citations-*.csv", "columns": COLUMNS["citations"]}
        corpora.append({"ids": "string", "papers": papers, "citations": citations})
    first, second = make(corpora[0], buckets=1), make(corpora[1], threads=2, buckets=3)
    assert first.names == second.names == dict(enumerate(sorted(names)))
    assert list(first.papers.values()) == list(second.papers.values())


def test_whole_numbers_stay_as_they_are(table, make):
    papers = table("papers.csv", "id,title\n9223372036854775807,Last\n007,Bond\n", {"id": "id", "title": "title"})
    made = make({"papers": papers, "citations": table("citations.csv", "from,to\n7,9223372036854775807\n")})
    assert {paper: row["title"] for paper, row in made.papers.items()} == {2**63 - 1: "Last", 7: "Bond"}
    assert made.pairs == {(7, 2**63 - 1)}
    assert not (made.results / "corpus/names.parquet").exists()


def test_references_may_be_a_list_in_the_table_of_the_papers(table, make):
    rows = [{"id": 1, "refs": [2, "3", None]}, {"id": 2, "refs": []}, {"id": 3}, {"id": 4, "refs": [4, 2]}]
    papers = table("papers.jsonl", "".join(json.dumps(row) + "\n" for row in rows), {"id": "id"})
    made = make({"papers": papers, "citations": papers | {"columns": {"citing": "id", "cited": "refs"}}})
    assert made.pairs == {(1, 2), (1, 3), (4, 2)}
    assert (made.omitted("without a cited id"), made.omitted("by itself")) == (3, 1)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_what_lies_within_a_column_is_reached_with_dots(form, tmp_path, make):
    who = [{"author": {"name": "Ada"}}, {"author": {"name": "Bo"}}]
    row = {"id": "W2", "place": {"source": {"name": "JCDL"}}, "who": who, "refs": ["W1", "W3"]}
    pl.DataFrame([row]).write_parquet(tmp_path / "works.parquet")
    (tmp_path / "works.jsonl").write_text(json.dumps(row) + "\n")
    works = {"files": f"{tmp_path}/works.{form}", "prefix": "W"}
    papers = works | {"columns": {"id": "id", "venue": "place.source.name", "authors": "who.author.name"}}
    made = make({"papers": papers, "citations": works | {"columns": {"citing": "id", "cited": "refs"}}}, authors=True)
    assert (made.papers[2]["venue"], made.papers[2]["authors"]) == ("JCDL", ["Ada", "Bo"])
    assert made.pairs == {(2, 1), (2, 3)}


def test_copies_self_citations_and_missing_ends_are_counted_as_in_a_release(table, make):
    papers = table("papers.csv", "id,title\na,Short\na,\nb,B\n", {"id": "id", "title": "title"})
    citations = table("citations.csv", "from,to\na,b\na,b\na,\n,b\nb,b\nNA,b\n", nulls=["NA"])
    made = make({"ids": "string", "papers": papers, "citations": citations})
    assert made.named_pairs == {("a", "b")}
    reasons = ("copies of a citation", "without a cited", "without a citing", "by itself", "copies of a paper")
    assert [made.omitted(reason) for reason in reasons] == [1, 1, 2, 1, 1]
    assert {row["title"] for row in made.papers.values()} == {"Short", "B"}


def test_a_year_may_be_a_date_or_a_number_with_decimals_and_is_null_otherwise(table, make):
    years = {"2003-02-28T10:00": 2003, "2003-02-29": 2003, "2004": 2004, "1999-05": 1999, "1998/12/01": 1998}
    years |= {"2002 Jan-Feb": 2002, "2001.0": 2001, **dict.fromkeys(["soon", "", "99999", "2919", "20199-01-01", "0"])}
    text = "".join(f"{number},{year}\n" for number, year in enumerate(years))
    papers = table("papers.csv", f"id,year\n{text}", {"id": "id", "year": "year"})
    made = make({"papers": papers, "citations": table("citations.csv", "from,to\n1,2\n")})
    assert [row["year"] for row in made.papers.values()] == [*years.values()]
    assert [row["date"] for row in made.papers.values()] == [date(2003, 2, 28), *[None] * (len(years) - 1)]
    assert made.omitted("papers without a year") == [*years.values()].count(None)


def test_ids_lose_their_prefix_and_are_found_among_others(table, make):
    papers = table("papers.csv", "id\nomid:br/1 doi:10.1/X\nDOI:10.1/y pmid:3\n", {"id": "id"})
    citations = table("citations.csv", "from,to\ndoi:10.1/x,pmid:3 DOI:10.1/Y\ndoi:10.1/x,pmid:4\n")
    read = {"prefix": "doi:", "lowercase": True}
    made = make({"ids": "string", "papers": papers | read, "citations": citations | read})
    assert made.named_pairs == {("10.1/x", "10.1/y")}
    assert made.omitted("without a cited id") == 1


def test_files_without_a_header_are_read_by_the_names_that_are_given(table, make):
    form = {"kind": "csv", "delimiter": ";", "header": ["id", "year", "name"], "quotes": False}
    papers = table("papers.txt", '1;1999;"A" title\n2;2000;B\n', {"id": "id", "title": "name"}, format=form)
    made = make({"papers": papers, "citations": table("citations.csv", "from,to\n1,2\n")})
    assert [row["title"] for row in made.papers.values()] == ['"A" title', "B"]


def test_columns_without_a_name_as_spreadsheets_add_them_are_not_read(table, make):
    papers = table("papers.csv", "id,title,,\n1,A,,\n", {"id": "id", "title": "title"})
    made = make({"papers": papers, "citations": table("citations.csv", "from,to\n1,2\n")})
    assert made.papers[1]["title"] == "A"


def test_of_files_with_the_same_name_the_one_with_a_malformed_row_is_named_with_its_folder(table, make, tmp_path):
    for name, row in {"a": "1", "b": "x"}.items():
        papers = table(f"{name}/papers.csv", f"id\n{row}\n", {"id": "id"}, files=str(tmp_path / "*/papers.csv"))
    with pytest.raises(InputError, match=r"the first: .*/b/papers\.csv, line 2"):
        make({"papers": papers, "citations": table("citations.csv", "from,to\n1,2\n")})


def test_malformed_rows_that_are_allowed_are_counted(table, make):
    papers = table("papers.csv", "id\n1\n2,3\nx\n,\n4\n", {"id": "id"})
    citations = table("citations.csv", "from,to\n1,2\nx,2\n1,y\n1\n")
    made = make({"papers": papers, "citations": citations}, malformed=0.8)
    assert [*made.papers] == [1, 4]
    assert made.pairs == {(1, 2)}
    # Papers are counted once more as the abstracts, which this table has none of.
    assert made.omitted("malformed") == 3 + 3 + 3


def test_authors_are_kept_where_one_of_the_files_has_no_row_that_counts(tmp_path, table, make):
    table("papers-1.csv", "id,who\nW1,Ada\n")
    papers = table("papers-2.csv", "id,who\n2,Bo\n", {"id": "id", "authors": "who"})
    papers["files"] = str(tmp_path / "papers-*.csv")
    citations = table("citations.csv", "from,to\n1,2\n")
    made = make({"papers": papers, "citations": citations}, authors=True, malformed=0.5)
    assert {paper: row["authors"] for paper, row in made.papers.items()} == {2: ["Bo"]}


def parquet(columns: dict[str, list[Any]]) -> bytes:
    whole = io.BytesIO()
    pl.DataFrame(columns).write_parquet(whole)
    return whole.getvalue()


PAGES, ALIKE = parquet({"id": [str(number) for number in range(10_000)]}), parquet({"id": [1], "ID": [2]})
DAMAGED = PAGES[:100] + bytes(1900) + PAGES[2000:]

FAULTS = {
    "mixed kinds of ids": ("papers.csv", "id,title\n1,a\nW7,b\n", 'line 3: id is "W7", not a whole number'),
    "no id": ("papers.csv", "id,title\n1,a\n,b\n", "line 3: id has no id"),
    "a cell too few": ("papers.csv", "id,title\n1,a\n2\n3\nx,b\n", "line 3: has 1 cells, not 2"),
    "a wrong id behind a short row": ("papers.csv", "id,title\nx,a\n2\n", 'line 2: id is "x"'),
    "a line that is cut": ("papers.jsonl", '{"id": 1, "title": "a"}\n{"id": 2, "ti', "line 2: is not JSON"),
    "a list in place of a text": ("papers.jsonl", '{"id": 1, "title": ["a"]}\n', "line 1: title is a list or an obj"),
    "no object": ("papers.jsonl", '{"id": 1, "title": "a"}\n[1]\n', "line 2: is a list, not an object"),
    "a line that is not UTF-8": (
        "papers.jsonl",
        b'{"id": 1, "title": "a"}\n{"id": 2, "title": "\xff"}\n',
        "2: is not UTF-8",
    ),
    "a gzip file that is cut": ("papers.csv.gz", gzip.compress(b"id\n" + b"1\n" * 50_000)[:-20], "cut short or not a"),
    "a Parquet file that is cut": ("papers.parquet", b"PAR1\0\0\0\0", "is cut short or not a Parquet file"),
    "a damaged page": ("papers.parquet", DAMAGED, "is cut short or not a Parquet file"),
    "a key with a quotation mark": (
        *("papers.jsonl", '{"i\\"d": 1}'),
        'the key i"d has a quotation mark and cannot be read; rename it',
    ),
    "an empty file": ("papers.csv", b"", "cannot be read as csv (Empty CSV file)"),
    "nothing but a header": ("papers.csv", b"id\n", "is empty; a shard has at least one record"),
    "a column that is not there": ("papers.csv", b"key,n\n1,a\n", "has no column id, which corpus.papers.columns.id"),
    "a column that is there twice": ("papers.csv", b"id,id\n1,2\n", "has two columns id"),
    "columns alike but for case": ("papers.parquet", ALIKE, "has id and ID, alike but for case"),
    "a key that is not there": ("papers.jsonl", b'{"key": 1, "name": "a"}\n', "names; it has key, name."),
    "bytes of no text": ("papers.csv", b"id\n\xff\n", "invalid UTF8 data); save it as UTF-8."),
    "UTF-16": ("papers.csv", "id\n1\n".encode("utf-16"), "cannot be read as csv ('utf-8' codec"),
    "a quote that is not closed": ("papers.csv", b'id\n1\n"2\n3\n', "line 3: a cell begins with a double quote that"),
    "a quote that is closed in a later row": ("papers.csv", b'id,n\n1,"a\n2,b\n3,"c" d\n', "line 2: a cell begins"),
    "a quote behind a backslash": ("papers.csv", b'id,n\r\n1,"a \\"b\\" c"\r\n', "line 2: a cell begins"),
}


@pytest.mark.parametrize(("name", "raw", "message"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_read_is_named_in_a_sentence_and_a_malformed_row_with_its_place(
    name, raw, message, table, make, tmp_path
):
    raw = raw if isinstance(raw, bytes) else raw.encode()
    key = 'i"d' if "quotation mark" in message else "id"
    papers = table(name, b"", {"id": key, **({"title": "title"} if b"title" in raw else {})})
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(InputError) as raised:
        make({"papers": papers, "citations": table("citations.csv", "from,to\n1,2\n")})
    said = str(raised.value)
    assert message in said
    assert (f"{name}, line " if "malformed allows" in said else str(tmp_path / name)) in said
    assert said.count("\n") == 0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    refusals(
        """
        papers.files: nowhere/*.csv | corpus.papers.files: there is no file nowhere/*.csv.
        papers.files: papers.txt | corpus.papers.format is missing: the name of papers.txt says nothing
        papers.columns: {id: id, titel: t} | corpus.papers.columns.titel is not known; did you mean title?
        papers.columns: {title: t} | corpus.papers.columns.id is missing.
        papers.columns: {} | corpus.papers.columns.id is missing.
        papers.columns: {id: ''} | corpus.papers.columns.id is '', which should be non-empty.
        citations.columns: {} | corpus.citations.columns.cited is missing.
        citations.columns.cited: {column: ''} | corpus.citations.columns.cited.column is '', which should be non-empty.
        papers.columns: {id: id, authors: a} | has an effect only with corpus.authors: true.
        authors: true | corpus.authors needs corpus.papers.columns.authors
        contexts: {} | corpus.contexts does not go together with source: table
        papers.files: results/papers.csv | is inside results, from which a run removes files
        """
    ),
)
def test_a_configuration_that_cannot_work_is_refused_before_any_job(path, value, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    for name in ("papers.csv", "papers.txt", "citations.csv", "results/papers.csv"):
        Path(name).touch()
    tables = {
        "papers": {"files": "papers.csv", "columns": {"id": "id"}},
        "citations": {"files": "citations.csv", "columns": COLUMNS["citations"]},
    }
    changed = with_changes({"source": "table", **tables}, **{path.replace(".", "__"): value})
    _, faults = resolve_or_explain({"release": "mine", "corpus": changed})
    assert [fault for fault in faults if message in fault], faults


def test_a_plan_says_what_the_files_need_and_which_columns_are_missing(tmp_path):
    corpus = {"source": "table", **write(tmp_path, "csv")}
    config = {"release": "mine", "corpus": corpus, "pathvars": {"results": str(tmp_path / "results")}}
    plan = plan_corpus(resolve(config))
    assert [need.shards for need in plan.needs.values()] == [1, 1, 1]
    assert plan.needs["citations"].to_download == 0
    assert plan.needs["citations"].packed == (tmp_path / "citations.csv").stat().st_size
    assert plan.needs["papers"].parquet == round(0.15 * (plan.needs["papers"].packed // 3))  # as if it were packed
    corpus["papers"]["columns"]["venue"] = "journal"
    said = r"no column journal, which corpus\.papers\.columns\.venue names; it has key, "
    with pytest.raises(InputError, match=said):
        plan_corpus(resolve(config))


@pytest.mark.long
def test_hci_in_tables_of_text_with_named_papers_is_the_corpus_of_the_release(shared, tmp_path, make, read_rows):
    release = tmp_path / "one shard of each dataset"
    for dataset in DATASETS:
        (release / dataset).mkdir(parents=True)
        (release / dataset / "0.gz").symlink_to(min((shared / "data/releases/hci" / dataset).glob("*.gz")))
    records = {dataset: read_rows(release / dataset) for dataset in DATASETS}
    known = {row["corpusid"]: row["abstract"] for row in records["abstracts"]}
    texts = [(str(row["corpusid"])[::-1], row["title"], known.get(row["corpusid"])) for row in records["papers"]]
    ends = [(row["citingcorpusid"], row["citedcorpusid"]) for row in records["citations"]]
    named = [[None if paper is None else f"paper:{str(paper)[::-1]}" for paper in pair] for pair in ends]
    pl.DataFrame(texts, schema=["key", "name", "text"], orient="row").write_csv(tmp_path / "papers.csv")
    pl.DataFrame(named, schema=["from", "to"], orient="row").write_csv(tmp_path / "citations.csv")
    papers = {"files": f"{tmp_path}/papers.csv", "columns": {"id": "key", "title": "name", "abstract": "text"}}
    citations = {"files": f"{tmp_path}/citations.csv", "columns": COLUMNS["citations"], "prefix": "paper:"}
    tabled = make({"ids": "string", "papers": papers, "citations": citations})
    original = make({"source": "directory", "path": str(release)})
    back = {number: int(name[::-1]) for number, name in tabled.names.items()}
    found = {back[paper]: (row["title"], row["abstract"]) for paper, row in tabled.papers.items()}
    assert found == {paper: (row["title"], row["abstract"]) for paper, row in original.papers.items()}
    assert {(back[citing], back[cited]) for citing, cited in tabled.pairs} == original.pairs


def test_numbers_in_a_parquet_struct_that_are_no_ids_are_refused(tmp_path):
    cited = pa.array([{"id": number} for number in (12.0, 1234567.5, 2.0**53)], pa.struct([("id", pa.float64())]))
    path = tmp_path / "citations.parquet"
    pq.write_table(pa.table({"citing": pa.array([1, 2, 3], pa.int64()), "cited": cited}), path)
    columns = {"citing": "citing", "cited": "cited.id"}
    asked = CitationTable.model_validate({"files": str(path), "columns": columns})
    with duckdb.connect() as db:
        db.read_parquet(str(path)).create_view("given")
        ids = cells.cited_in(asked, cells.cells_of(asked, path))
        refused = db.sql(
            f"SELECT list_transform({ids}, lambda id: {cells.is_refused('id')}) FROM given ORDER BY citing"
        )
        assert refused.fetchall() == [([False],), ([True],), ([True],)]
