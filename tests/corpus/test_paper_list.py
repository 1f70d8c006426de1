"""Lists of papers, as programs write them and people edit them, become the ids of their entries, and a corpus."""

import gzip
import json
from pathlib import Path

import pytest
import yaml
from tests.corpus.made_openalex import work
from tests.releases.server import Arrival
from tests.releases.works_server import WorksCatalogue, serve_works
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.release import paper_list, works_query
from cocite.corpus.release.paper_list import NO_ID, read_papers
from cocite.corpus.sources.openalex import OpenAlex

KEY = "a-key-that-must-stay-secret"
SICI = "10.1002/(sici)1097-4571(199009)41:6<391::aid-asi1>3.0.co;2-9"
A, PMID, ARXIV, W = "doi:10.1000/a", "ids.pmid:123", "doi:10.48550/arxiv.1706.03762", "ids.openalex:W77"

ENTRY = """
@comment{jabref-meta: databaseType:bibtex;}
@string{jml = "J. {Mach} Learn"}
An e-mail a@b.org between entries is no entry.
@article{smith2020,
  author = {Smith, {\\'E}mile and M{\\"u}ller, B.},
  title = {A {"}study{"} of 50\\% \\{braces\\} and 10.1000/other},
  journal = jml # " Res",
  FIELD
}
"""
FIELDS = {
    r"doi = {10.1000/ab\_c{\_}D}": ["doi:10.1000/ab_c_d"],
    r"DOI = {{https://doi.org/10.1000/A}},": [A],
    r'doi = "http://dx.doi.org/10.1000/a."': [A],
    r"doi = {doi:10.1000%2Fa}": [A],
    r"doi = {https://doi.org/10.1000%2Fa}": [A],
    r"doi = {doi: 10.1000/a}, pmid = 123": [A, PMID],
    r"doi = {10.1002/(SICI)1097-4571(199009)41:6{\textless}391::AID-ASI1{\textgreater}3.0.CO;2-9}": [f"doi:{SICI}"],
    r"doi = {10.1002/(SICI)1097-4571(199009)41:6{$<$}391::AID-ASI1{$>$}3.0.CO;2-9}": [f"doi:{SICI}"],
    r"howpublished = {\url{https://doi.org/10.1000/a}}": [A],
    r"url = {https://arxiv.org/abs/1706.03762v5}": [ARXIV],
    r"eprint = {1706.03762}, archiveprefix = {arXiv}": [ARXIV],
    r"eprint = {123}, eprinttype = {pubmed}": [PMID],
    r"eprint = {math.GT/0309136}": ["doi:10.48550/arxiv.math/0309136"],
    r"publication = {arXiv preprint arXiv:1706.03762}": [ARXIV],
    r"note = {PMID: 123}": [PMID],
    r"note = {Cites Jones, doi:10.1000/other}": [],
    r"note = {10.1016/0022-1236(73)90051-7).}": ["doi:10.1016/0022-1236(73)90051-7"],
    r"doi = {10.1000/a}, doi = {10.1000/b}": [A],
    r"url = {https://openalex.org/w77}": [W],
    r"year = 2020": [],
}


def listed(tmp_path: Path, name: str, text: str | bytes) -> list[tuple[str, list[str]]]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [(paper.place, [":".join(each) for each in paper.ids]) for paper in read_papers(path)]


@pytest.mark.parametrize("field", FIELDS)
def test_ids_are_found_in_the_fields_of_bibtex_as_programs_write_them(tmp_path, field):
    text = ENTRY.replace("FIELD", field) + "@misc{other, doi = {10.1000/last}}"
    found = listed(tmp_path, "papers.bib", text)
    assert found == [
        ("line 5, smith2020", FIELDS[field]),
        (f"line {text.count(chr(10)) + 1}, other", ["doi:10.1000/last"]),
    ]


def test_entries_of_bibtex_that_share_a_key_or_have_none_count_and_malformed_ones_are_named(tmp_path):
    text = "@misc{k, doi={10.1000/a}}\n@misc{k, pmid={123}}\n@misc{, url={https://openalex.org/W77}}\n"
    text += "@misc{open, title={An {unclosed one}, doi={10.1000/lost}\n}\n@misc(last, doi={10.1000/b})\n"
    found = listed(tmp_path, "papers.bib", text)
    assert found == [
        ("line 1, k", [A]),
        ("line 2, k", [PMID]),
        ("line 3", [W]),
        ("line 4", []),
        ("line 6, last", ["doi:10.1000/b"]),
    ]
    faults = [paper.fault for paper in read_papers(tmp_path / "papers.bib")]
    assert [fault for fault in faults if fault != NO_ID] == ["malformed BibTeX"]


RIS = """Provider: a database

TY  - JOUR
TI  - Without the end of a record
DO  - https://doi.org/10.1000/A
N2  - Abstract, see 10.1000/other
TY  - JOUR
ID  - two
N1  - A note
PMID: 123
ER  -
TY - JOUR
JO - arXiv preprint arXiv:1706.03762
ER -
TY  - JOUR
AN  - 123
DB\x20\x20-\x20PubMed
ER\x20\x20-
TY\x20\x20-\x20BOOK
ER\x20\x20-\x20
"""
CSV = """Key,Title,"Publication, Year",DOI,PubMed ID,openalex_id,Extra
a,"A ""quoted"", title
of two lines",2020,10.1000/A,123.0,,
b,Plain,2021,,,https://openalex.org/W77,arXiv:1706.03762
c,Short
"""
CSL = [
    {"id": "http://zotero.org/1", "DOI": "10.1000/A", "PMID": 123, "issued": {"date-parts": [[2020]]}},
    {"id": "two", "note": "PMCID: PMC9\nOpenAlex: W77\nPMID: 123", "container-title": "arXiv"},
    {"id": 3, "title": "10.1000/other", "number": "arXiv:1706.03762"},
]
TEXT = """10.1000/A,
see Smith 2020 (https://doi.org/10.1000/a).

https://openalex.org/W77\t10.1000/a
123
PMID: 123
1706.03762v2
10.1000/a; 10.1000/b,10.1000/c
no id, not even W2 here
"""
OTHERS = {
    "papers.ris": (
        RIS,
        [("line 3", [A]), ("line 7, two", [PMID]), ("line 12", [ARXIV]), ("line 15", [PMID]), ("line 19", [])],
    ),
    "papers.csv": (CSV, [("line 2", [A, PMID]), ("line 4", [W, ARXIV]), ("line 5", [])]),
    "papers.tsv": ("doi\tid\n10.1000/a\t5\n", [("line 2", [A])]),
    "headless.csv": ("10.1000/a,W77\n123\n", [("line 1", [A, W]), ("line 2", [PMID])]),
    "papers.json": (
        json.dumps(CSL, indent=1),
        [("item 1, http://zotero.org/1", [A, PMID]), ("item 2, two", [W, PMID]), ("item 3, 3", [ARXIV])],
    ),
    "papers.txt": (
        TEXT,
        [
            *(("line 1", [A]), ("line 2", [A]), ("line 4", [W, A]), ("line 5", [PMID]), ("line 6", [PMID])),
            *(("line 7", [ARXIV]), ("line 8", [A]), ("line 8", ["doi:10.1000/b"]), ("line 8", ["doi:10.1000/c"])),
            ("line 9", []),
        ],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_ids_are_found_in_other_formats_whatever_the_line_ends_the_mark_and_the_suffix(tmp_path, name):
    text, expected = OTHERS[name]
    assert listed(tmp_path, name, text) == expected
    assert listed(tmp_path, name, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()) == expected
    assert name.endswith(("csv", "tsv")) or listed(tmp_path, "export.txt", text) == expected


def test_a_file_that_is_not_in_utf_8_has_the_same_ids(tmp_path):
    found = listed(tmp_path, "latin.bib", "@misc{é, author={Müller}, doi={10.1000/a}}".encode("latin-1"))
    assert found == [("line 1, \ufffd", [A])]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.bib", b"\xef\xbb\xbf \n", "is empty; it must be a list of papers: text with one id per line, CSV"),
        ("paper.docx", b"PK\x03\x04\x00\x00", "is not a text; it must be a list of papers"),
        ("page.html", b"<html><body>Papers</body></html>", r"none of its entries \(1\) has an id"),
        ("scholar.csv", b"Authors,Title,Year\nSmith,On it,2020\n", r"no column has ids \(Authors, Title, Year\); name"),
        ("broken.json", b'[{"DOI": "10.1000/a"', "not a readable CSL JSON"),
        ("comments.bib", b"@comment{nothing else}", r"none of its entries \(0\) has an id"),
    ],
)
def test_files_without_ids_are_refused_in_a_sentence(tmp_path, name, content, said):
    with pytest.raises(InputError, match=said):
        listed(tmp_path, name, content)


def made(number: int, doi: str | None = None, pmid: str | None = None, **more) -> dict:
    record = work(number, doi=doi, **more)
    record["ids"]["pmid"] = pmid and f"https://pubmed.ncbi.nlm.nih.gov/{pmid}"
    return record


WORKS = [
    made(77, references=[90]),
    made(78, doi="10.1000/A", pmid="123", citation_count=5),
    made(79, doi="10.1000/a"),  # a second work of the DOI, less cited
    made(80, doi="10.48550/arXiv.1706.03762", references=[77, 90, 91]),
    made(81, pmid="5"),
    made(90, doi="10.1000/cited"),
]
LIST = """doi,pmid,openalex,arxiv
10.1000/A,,,
10.1000/unknown,5,,
,,W77,
,,,1706.03762
10.1000/not,6,,
,123,,
,,,
"10.1000/x,y",,,
,,W1,
"""
NOT = "OpenAlex has no work with this "
UNRESOLVED = [
    (5, "line 6", ["doi:10.1000/not", "ids.pmid:6"], f"{NOT}DOI or PubMed id", None),
    (6, "line 7", ["ids.pmid:123"], paper_list.SAME_WORK, "line 2"),
    (7, "line 8", [], NO_ID, None),
    (8, "line 9", ["doi:10.1000/x,y"], works_query.NOT_IN_FILTERS, None),
    (9, "line 10", ["ids.openalex:W1"], f"{NOT}OpenAlex id", None),
]


def fetch(folder: Path, api: str, **corpus) -> set[int]:
    """Fetch the works of the list; return their numbers."""
    (folder / "papers.csv").write_text(LIST)
    source = OpenAlex(source="openalex", list=str(folder / "papers.csv"), api=api, **corpus)
    manifest = source.list_release("2026-11-20", folder)
    places = {"results": folder, "state": folder / "state", "output": folder / "raw"}
    source.fetch(manifest, "works", manifest.datasets["works"].shards, **places)
    lines = gzip.decompress((folder / "raw/works.gz").read_bytes()).splitlines()
    numbers = [int(json.loads(line)["id"].rpartition("W")[2]) for line in lines]
    assert len(numbers) == len({*numbers})
    return {*numbers}


def test_a_list_gives_each_work_once_and_names_the_entries_without_one(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENALEX_API_KEY", KEY)
    requests: list[Arrival] = []
    with serve_works(WorksCatalogue(WORKS), key=KEY, requests=requests) as api:
        assert fetch(tmp_path, api) == {77, 78, 80, 81}
    # The DOIs, OpenAlex ids and PubMed id; then the PubMed ids of those whose DOI is unknown.
    assert len(requests) == 4
    rows = read_table(tmp_path / "corpus/unresolved/works/0.parquet", "unresolved").to_pylist()
    assert [tuple(row.values()) for row in rows] == UNRESOLVED
    counted = read_table(tmp_path / "corpus/omissions/download-works-0.parquet", "omissions").to_pylist()
    assert {row["reason"]: row["count"] for row in counted} == {reason: 1 for _, _, _, reason, _ in UNRESOLVED}
    said = capfd.readouterr().err
    assert f"4 of 9 entries gave a work; the table unresolved lists the others: {tmp_path}/corpus/unresolved" in said


def test_a_list_is_expanded_and_a_used_up_allowance_resumes_without_a_repeated_call(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENALEX_API_KEY", KEY)
    monkeypatch.setattr(works_query, "PER_CALL", 2)
    requests: list[Arrival] = []
    for allowance in (2, 2, 2, 2):
        with serve_works(WorksCatalogue(WORKS), key=KEY, allowance=allowance, requests=requests) as api:
            try:
                found = fetch(tmp_path, api, expand={})
                break
            except InputError as error:
                assert "The day's allowance" in str(error)  # noqa: PT017
    assert found == {77, 78, 80, 81, 90}
    answered = [request.target for request in requests if request.status == 200]
    assert len(answered) == len({*answered})


def test_a_list_of_which_openalex_has_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENALEX_API_KEY", KEY)
    with (
        serve_works(WorksCatalogue([made(1000)]), key=KEY) as api,
        pytest.raises(InputError, match=r"OpenAlex has no paper with any id in .*papers.csv; check the ids"),
    ):
        fetch(tmp_path, api)


def test_the_plan_tells_the_cost_of_a_list_without_a_call_or_a_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("papers.txt").write_text("no id\n" + "".join(f"10.1000/{number}\n" for number in range(120)))
    corpus = {"source": "openalex", "list": "papers.txt", "expand": {}, "api": "http://127.0.0.1:9"}
    Path("run.yaml").write_text(yaml.safe_dump({"release": "latest", "corpus": corpus}))
    said = CliRunner().invoke(app, ["corpus", "plan", "--configfile", "run.yaml"], catch_exceptions=False).output
    assert "120 entries of papers.txt have an id: about 3 calls of the API, $0.00 by its price list" in said
    assert "expand.references adds perhaps 2,400 works" in said
