"""The recipes of docs/how-to/own-tables.md, each tried on small files in the form of those that it is for."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from tests.corpus.made import LIMITS, Made, left_out, make_corpus
from tests.workflow.conftest import ROOT

from cocite.corpus.selection import UNKNOWN_NAMES, number_ids

PAGE = (ROOT / "docs/how-to/own-tables.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^##+ (.+)\n((?:(?!^##).*\n)*)", PAGE, flags=re.MULTILINE))


def corpora(heading: str) -> list[dict[str, Any]]:
    blocks = re.findall(r"```yaml\n(.*?)```", SECTIONS[heading], flags=re.DOTALL)
    return [yaml.safe_load(block)["corpus"] for block in blocks]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, in which the files of a recipe lie."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *lines: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_records(name: str, records: Iterable[dict[str, Any]]) -> None:
    write(name, *map(json.dumps, records))


def titles(made: Made) -> dict[str, str | None]:
    return {made.names[paper]: row["title"] for paper, row in made.papers.items()}


def test_the_files_at_the_beginning_of_the_page_are_a_corpus(folder):
    papers, citations = re.findall(r"```\n(\w.*?)```", PAGE.partition("\n## ")[0], flags=re.DOTALL)
    write("my-papers.csv", papers.rstrip())
    write("my-citations.csv", citations.rstrip())
    entry = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[0])
    made = make_corpus(folder / "made", entry["corpus"], release=entry["release"])
    assert [(row["title"], row["year"]) for row in made.papers.values()] == [
        ("Co-citation", 1973),
        ("Bibliographic coupling", 1963),
        ("A map of a field", None),
    ]
    assert made.named_pairs == {("10.1/c", "10.1/a"), ("10.1/c", "10.1/b"), ("10.1/a", "10.1/b")}


def test_opencitations(folder):
    write(
        "meta/0.csv",
        '"id","title","author","pub_date","venue","volume","issue","page","type","publisher","editor"',
        '"doi:10.1/a omid:br/0601","A Work, Cited","Doe, Jo [orcid:0000-0001 omid:ra/0601]","2015-03",'
        '"A Journal [issn:1234-5678 omid:br/0609]","12","3","1-9","journal article","P [crossref:1 omid:ra/0602]",""',
        '"omid:br/06101 pmid:77","Another","","2017","","","","","journal article","",""',
    )
    header = "oci,citing,cited,creation,timespan,journal_sc,author_sc"
    write("index/0.csv", header, "oci:06101-0601,omid:br/06101,omid:br/0601,2017,P2Y,no,no")
    write("index/1.csv", header, "oci:06101-0602,omid:br/06101,omid:br/0602,,,no,no")
    (corpus,) = corpora("OpenCitations")
    made = make_corpus(folder / "made", corpus)
    assert {paper: (row["title"], row["year"]) for paper, row in made.papers.items()} == {
        601: ("A Work, Cited", 2015),
        6101: ("Another", 2017),
    }
    assert made.pairs == {(6101, 601), (6101, 602)}


def test_lists_of_dois(folder):
    dois = ["https://doi.org/10.1234/ABC", "https://doi.org/10.1234/def"]
    pl.DataFrame({"doi": dois, "title": ["A", "B"], "abstract": ["Text", None], "year": [2001, 2002]}).write_parquet(
        "papers.parquet"
    )
    row = "02001-02002,10.1234/def,10.1234/Abc,2002-01,P1Y,no,no"
    write("coci/2020.csv", "oci,citing,cited,creation,timespan,journal_sc,author_sc", row)
    corpus = {
        **{"source": "table", "ids": "string"},
        "papers": {
            **{"files": "papers.parquet", "prefix": "https://doi.org/", "lowercase": True},
            "columns": {name: name for name in ("title", "abstract", "year", "doi")} | {"id": "doi"},
        },
        "citations": {**{"files": "coci/*.csv", "lowercase": True}, "columns": {"citing": "citing", "cited": "cited"}},
    }
    made = make_corpus(folder / "made", corpus)
    assert titles(made) == {"10.1234/abc": "A", "10.1234/def": "B"}
    assert made.named_pairs == {("10.1234/def", "10.1234/abc")}


def test_pubmed(folder):
    write(
        "icite_metadata.csv",
        "pmid,doi,title,authors,year,journal,is_research_article,citation_count,cited_by,references",
        '11,10.1/x,"First, of two","A Doe, B Roe",1999,J Biol,True,1,12,',
        "12,,Second,C Poe,2003,J Biol,True,0,,11 13",
    )
    write("open_citation_collection.csv", "citing,referenced", "12,11", "12,13")
    (corpus,) = corpora("PubMed")
    made = make_corpus(folder / "made", corpus)
    assert made.papers[11]["authors"] == ["A Doe", "B Roe"]
    (files, columns) = re.findall(r"`(files: icite_metadata\.csv)` with\n`(columns: {.*})`", SECTIONS["PubMed"])[0]
    corpus["citations"] = yaml.safe_load(f"{files}\n{columns}")
    again = make_corpus(folder / "again", corpus)
    assert made.pairs == again.pairs == {(12, 11), (12, 13)}


def test_dblp(folder):
    write(
        "output_article.csv",
        '1;Jo Doe|Kim Roe;...|journals/x/B99|...;https://doi.org/10.1/a;X;journals/x/A01;2020;1-9;"One; two";u;1;2001',
        "2;Kim Roe;;;X;journals/x/B99;2020;10-19;Two;u;1;1999",
    )
    names = ["id", "author", "cite", "ee", "journal", "key", "mdate", "pages", "title", "url", "volume", "year"]
    form = {"kind": "csv", "delimiter": ";", "header": names}
    columns = {"id": "key", "title": "title", "year": "year", "venue": "journal"}
    corpus = {
        **{"source": "table", "ids": "string", "authors": True},
        "papers": {
            **{"files": "output_article.csv", "format": form},
            "columns": {**columns, "authors": {"column": "author", "separator": "|"}},
        },
        "citations": {
            **{"files": "output_article.csv", "format": form, "nulls": ["..."]},  # of papers that DBLP does not know
            "columns": {"citing": "key", "cited": {"column": "cite", "separator": "|"}},
        },
    }
    made = make_corpus(folder / "made", corpus)
    assert titles(made) == {"journals/x/A01": "One; two", "journals/x/B99": "Two"}
    assert made.papers[0]["authors"] == ["Jo Doe", "Kim Roe"]
    assert made.named_pairs == {("journals/x/A01", "journals/x/B99")}
    assert made.omitted("without a cited id") == 3


def test_aminer(folder):
    records = [
        {
            **{"id": "5390-a", "title": "A", "abstract": "Text.", "authors": ["Jo Doe"], "n_citation": 5},
            **{"references": ["5390-b", "5390-c"], "venue": "SIGIR", "year": 2005},
        },
        {"id": "5390-b", "title": "B", "authors": [], "n_citation": 0, "venue": "", "year": 1999},
    ]
    write_records("dblp-ref/dblp-ref-0.json", records[:1])
    write_records("dblp-ref/dblp-ref-1.json", records[1:])
    nested = [
        {
            **{"id": "1a", "title": "A", "year": 2005, "doi": "10.1/a", "references": ["1b"]},
            **{"authors": [{"name": "Jo Doe", "id": "7"}], "venue": {"raw": "SIGIR", "id": "8"}},
            "fos": [{"name": "Search", "w": 0.5}, {"name": "Maps", "w": 0.4}],
        },
        {"id": "1b", "title": "B", "authors": [], "venue": {"raw": "VIS"}},
    ]
    write_records("oag/mag_papers_0.txt", nested)
    (corpus,) = corpora("AMiner")
    lines = make_corpus(folder / "lines", corpus)
    pattern = r"`(files: oag/\*\.txt)` with `(format: jsonl)` in both.*\n`(columns: {.*})`"
    (files, form, columns) = re.findall(pattern, SECTIONS["AMiner"])[0]
    corpus["papers"] = yaml.safe_load(f"{files}\n{form}\n{columns}")
    corpus["citations"] |= yaml.safe_load(f"{files}\n{form}")
    graph = make_corpus(folder / "graph", corpus)
    assert titles(lines) == {"5390-a": "A", "5390-b": "B"}
    assert lines.named_pairs == {("5390-a", "5390-b"), ("5390-a", "5390-c")}
    assert lines.papers[0]["authors"] == graph.papers[0]["authors"] == ["Jo Doe"]
    assert graph.named_pairs == {("1a", "1b")}
    assert [(row["venue"], row["fields"]) for row in graph.papers.values()] == [
        ("SIGIR", ["Search", "Maps"]),
        ("VIS", []),
    ]


def test_files_of_ids_hold_names_as_well(folder):
    write("papers.csv", "id", "b", "a", "c", "7")
    write("citations.csv", "from,to", "a,b")
    papers = {"files": "papers.csv", "columns": {"id": "id"}}
    citations = {"files": "citations.csv", "columns": {"citing": "from", "cited": "to"}}
    corpus = {"source": "table", "ids": "string", "papers": papers, "citations": citations}
    made = make_corpus(folder / "made", corpus)
    write("wanted.txt", "c", "", " a ", "nobody", "c", "7.0")
    written = {"output": Path("ids.txt"), "omissions": Path("omissions.parquet")}
    number_ids(Path("wanted.txt"), names=made.results / "corpus/names.parquet", **written, **LIMITS)
    assert Path("ids.txt").read_text() == "0\n1\n3\n"
    assert left_out(Path("omissions.parquet")) == {UNKNOWN_NAMES: 1}
