"""Papers are matched with Semantic Scholar's by MAG id, then by DOI, and documents of benchmarks are found by that."""

import gzip
import json

import pyarrow as pa
import pytest
from tests.corpus.made import LIMITS, left_out, write_documents, write_rows
from tests.papers import papers_table

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.corpus.matching import (
    COMMON_TITLE,
    NO_KEY,
    NOT_FOUND,
    OTHER_DOI,
    OTHER_TEXT,
    SHARED_BY,
    UNKNOWN,
    ambiguous_by,
    find_documents,
    match_papers,
    matched_by,
)

W = 5_000_000_000


def write_papers(folder, ours):
    """The table papers, in two buckets, of these MAG ids and DOIs by corpus id; no column mag where none is given."""
    mags = {paper: {"mag": mag} for paper, (mag, _) in ours.items() if any(mag for mag, _ in ours.values())}
    for bucket in (0, 1):
        rows = [
            {"corpusid": paper, "doi": doi, "has_text": False, "fields": []} | mags.get(paper, {})
            for paper, (_, doi) in sorted(ours.items())
            if paper % 2 == bucket
        ]
        write_rows(folder / f"{bucket}.parquet", "papers", rows, *(["mag"] if mags else []))
    return folder


def write_theirs(folder, *shards):
    """Semantic Scholar's records, of corpusid, MAG id and DOI."""
    folder.mkdir()
    for number, records in enumerate(shards):
        lines = [
            json.dumps({"corpusid": paper, "externalids": {"ACL": None, "MAG": mag, "DOI": doi}, "title": "A"}) + "\n"
            for paper, mag, doi in records
        ]
        (folder / f"{number}.gz").write_bytes(gzip.compress("".join(lines).encode()))
    return folder


@pytest.fixture
def matched(tmp_path):
    """Match papers; return (corpusid, s2_corpusid, matched_by) of the matches, and the counts above zero."""

    def match(ours, *shards):
        papers, theirs = write_papers(tmp_path / "papers", ours), write_theirs(tmp_path / "theirs", *shards)
        paths = {"output": tmp_path / "matches.parquet", "omissions": tmp_path / "omissions.parquet"}
        match_papers(theirs, papers=papers, **paths, **LIMITS)
        rows = [tuple(row.values()) for row in read_table(paths["output"], "matches").to_pylist()]
        return rows, left_out(paths["omissions"])

    return match


def test_papers_are_matched_by_mag_id_first_and_the_others_by_doi(matched):
    ours = {W: (11, None), W + 1: (None, "10.1/A"), W + 2: (12, "10.1/b"), W + 3: (None, None), W + 4: (99, "10.1/zz")}
    theirs = [(1, "11", None), (2, None, "10.1/a"), (3, "12", None)], [(4, None, "10.1/B"), (5, None, None)]
    rows, counts = matched(ours, *theirs)
    # 3 has the MAG id of W + 2, so that 4, which has its DOI, is left.
    assert rows == [(W, 1, "mag"), (W + 1, 2, "doi"), (W + 2, 3, "mag")]
    assert counts == {matched_by("mag"): 2, matched_by("doi"): 1, NO_KEY: 1, NOT_FOUND: 1}


def test_dois_are_compared_without_case_address_and_punctuation(matched):
    dois = ["10.1/AB0", "https://doi.org/10.1/ab1", "http://dx.doi.org/10.1/aB2", " doi:10.1/ab3 "]
    dois += ["https://www.doi.org/10.1/ab4", "doi.org/10.1/ab5.", "10.1/ab6,"]
    ours = {n: (None, f"10.1/Ab{n}") for n in range(7)}  # without a column of MAG ids
    assert matched(ours, [(10 + n, "5", doi) for n, doi in enumerate(dois)])[0] == [
        (n, 10 + n, "doi") for n in range(7)
    ]


def test_a_mag_id_that_two_papers_have_on_either_side_matches_none_of_them(matched):
    ours = {W: (1, None), W + 1: (1, None), W + 2: (2, None), W + 3: (3, None)}
    rows, counts = matched(ours, [(10, "1", None), (20, "2", None), (21, "2", None), (30, "3", None)])
    assert rows == [(W + 3, 30, "mag")]
    assert counts == {ambiguous_by("mag"): 3, matched_by("mag"): 1}


def test_a_paper_with_an_ambiguous_mag_id_is_not_matched_by_its_doi(matched):
    rows, counts = matched({W: (1, "10.1/a")}, [(10, "1", None), (11, "1", "10.1/a")])
    assert (rows, counts) == ([], {ambiguous_by("mag"): 1})


def test_a_doi_that_two_papers_have_on_either_side_matches_none_of_them(matched):
    ours = {W: (None, "10.1/a"), W + 1: (None, "10.1/A"), W + 2: (None, "10.1/b")}
    rows, counts = matched(ours, [(10, None, "10.1/a"), (20, None, "10.1/b"), (21, None, "10.1/B")])
    assert (rows, counts) == ([], {ambiguous_by("doi"): 3})


def test_a_paper_of_theirs_that_is_matched_by_mag_id_is_not_matched_again_by_doi(matched):
    rows, counts = matched({W: (1, None), W + 1: (None, "10.1/a")}, [(10, "1", "10.1/a")])
    assert rows == [(W, 10, "mag")]
    assert counts == {matched_by("mag"): 1, NOT_FOUND: 1}


def test_a_record_that_comes_twice_counts_once_and_one_with_two_mag_ids_is_ambiguous(matched):
    ours = {W: (1, None), W + 1: (2, None), W + 2: (3, None)}
    rows, counts = matched(ours, [(10, "1", None), (20, "2", None)], [(10, "1", "10.1/a"), (20, "3", None)])
    assert rows == [(W, 10, "mag")]
    assert counts == {matched_by("mag"): 1, ambiguous_by("mag"): 2}


def test_matches_by_mag_id_whose_dois_differ_are_kept_and_counted(matched):
    ours = {W: (1, "10.1/a"), W + 1: (2, "10.1/b"), W + 2: (3, None)}
    rows, counts = matched(ours, [(10, "1", "10.1/other"), (20, "2", "10.1/B"), (30, "3", "10.1/c")])
    assert len(rows) == 3
    assert counts == {matched_by("mag"): 3, OTHER_DOI: 1}


def test_a_corpus_without_mag_ids_and_dois_is_refused(matched):
    with pytest.raises(InputError, match=r"none of the 2 papers has a MAG id or a DOI.*leave out corpus\.match"):
        matched({1: (None, None), 2: (None, None)}, [(3, "5", None)])


NO_IDS, NO_PAPERS = (
    "no record has a corpusid and externalids with a MAG id or a DOI",
    "cannot be read as Semantic Scholar's",
)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"corpusid": 1, "externalids": {"MAG": null}}', NO_IDS),
        ('{"id": 5}', NO_IDS),
        ("not JSON", NO_PAPERS),
        ('{"corpusid": 1, "externalids": [1]}', NO_PAPERS),
    ],
)
def test_a_folder_of_something_else_than_papers_is_refused(tmp_path, line, said):
    papers = write_papers(tmp_path / "papers", {W: (1, None)})
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/0.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=f"theirs: {said}"):
        match_papers(tmp_path / "theirs", papers=papers, output=tmp_path / "o", omissions=tmp_path / "left", **LIMITS)
    assert not (tmp_path / "o").exists()


def write_matches(path, pairs):
    columns = {"corpusid": list(pairs), "s2_corpusid": list(pairs.values()), "matched_by": ["mag"] * len(pairs)}
    write_table(path, "matches", pa.table(columns))
    return path


def write_paper_ids(folder, *records):
    """Semantic Scholar's dataset paper-ids, a file for each record."""
    folder.mkdir()
    for number, record in enumerate(records):
        (folder / f"{number}.gz").write_bytes(gzip.compress((json.dumps(record) + "\n").encode()))
    return folder


MAPS, SURVEY = "Maps of deep sea currents", "On maps of unknown oceans: a Survey"
TITLES = {
    1: MAPS,
    2: "On  maps of unknown oceans: a Survey",
    3: "Café maps of Parisian streets",
    4: None,
    5: "Twins in very large corpora",
    6: "TWINS in very large corpora!",
    9: "Zeros of random polynomial equations",
}
"""Titles of the papers of a corpus; the DOI of each is 10.1234/a and its id."""
SHA = "0123456789abcdef0123456789ABCDEF0123456"
ABSTRACT = "we draw maps of the deep sea from the paths of a thousand floats and compare them with those of ships"


@pytest.fixture
def found(tmp_path):
    """Find documents by their titles and abstracts; return by document the papers and how they are known, and the
    counts above 0."""

    def find(titles, *, short=(), matches=None, paper_ids=(), papers=TITLES, abstracts=None, **given):
        texts = {paper: (title, (abstracts or {}).get(paper)) for paper, title in papers.items()}
        dois = [f"https://doi.org/10.1234/A{paper}" for paper in sorted(papers)]
        write_table(tmp_path / "papers/0.parquet", "papers", papers_table(texts, doi=dois))
        leading = {
            "papers": tmp_path / "papers",
            "matches": write_matches(tmp_path / "matches.parquet", matches) if matches else None,
            "paper_ids": write_paper_ids(tmp_path / "paper-ids", *paper_ids) if paper_ids else None,
        }
        documents = write_documents(tmp_path / "documents.parquet", titles, short, abstracts)
        paths = {"output": tmp_path / "bench.parquet", "omissions": tmp_path / "left.parquet"}
        find_documents(documents, **leading, **paths, **LIMITS, **given)
        rows = read_table(paths["output"], "document_papers").to_pylist()
        by_document = {}
        for row in filter(lambda row: row["has_record"], rows):
            by_document.setdefault(row["document"], []).append((row["corpusid"], row["matched_by"]))
        return by_document, left_out(paths["omissions"])

    return find


def test_documents_are_found_by_what_their_ids_are_matched_with_and_the_others_by_text(found):
    documents = {"7": None, "search:7": None, "8": MAPS, "10": None, "MED-4": None}
    papers, counts = found(documents, matches={8: 9, W: 7})
    # And not 8, which is the corpus's paper 8 by number alone.
    assert papers == {"7": [(W, "mag")], "search:7": [(W, "mag")], "8": [(1, "text")]}
    assert counts == {UNKNOWN: 2}


def test_numbers_and_hashes_of_another_origin_lead_to_no_paper_and_texts_do(found):
    documents = {"1": SURVEY, "5": None, "10.1234/a6": None, SHA + "1": None, "MED-4": MAPS}
    papers, counts = found(documents, text_only=True, paper_ids=[{"sha": SHA + "1", "corpusid": 5}])
    assert papers == {"1": [(2, "text")], "10.1234/a6": [(6, "doi")], "MED-4": [(1, "text")]}
    assert counts == {UNKNOWN: 2}


def test_hashes_lead_to_corpus_ids_by_the_dataset_paper_ids(found):
    records = [{"sha": SHA.lower() + "1", "corpusid": 5, "primary": True}, {"sha": SHA + "2", "corpusid": "6"}]
    papers, counts = found({SHA + "1": None, f"again2:{SHA}2": None, SHA + "3": None, "9": None}, paper_ids=records)
    assert papers == {SHA + "1": [(5, "sha")], f"again2:{SHA}2": [(6, "sha")], "9": [(9, "id")]}
    assert counts == {UNKNOWN: 1}


def test_ids_without_a_record_are_no_papers_of_the_corpus_and_stand_apart(found, tmp_path):
    records = [{"sha": SHA + "1", "corpusid": 70}, {"sha": SHA + "2", "corpusid": 80}]
    papers, counts = found({"7": "Map", "9": None, SHA + "1": MAPS, SHA + "2": None}, paper_ids=records)
    assert papers == {"9": [(9, "id")], SHA + "1": [(1, "text")]}
    assert counts == {UNKNOWN: 2}
    rows = read_table(tmp_path / "bench.parquet", "document_papers").to_pylist()
    without = {(row["document"], row["corpusid"], row["matched_by"]) for row in rows if not row["has_record"]}
    assert without == {("7", 7, "id"), (SHA + "1", 70, "sha"), (SHA + "2", 80, "sha")}


def test_hashes_lead_to_papers_of_other_ids_through_the_matches(found):
    records = [{"sha": SHA + "1", "corpusid": 5}, {"sha": SHA + "2", "corpusid": 6}]
    papers, counts = found({SHA + "1": None, SHA + "2": None}, paper_ids=records, matches={W: 5})
    assert papers == {SHA + "1": [(W, "sha")]}
    assert counts == {UNKNOWN: 1}


def test_a_hash_of_which_two_records_differ_is_looked_for_by_its_text(found):
    records = [{"sha": SHA + "1", "corpusid": 5}, {"sha": SHA + "1", "corpusid": 6}]
    assert found({SHA + "1": MAPS}, paper_ids=records)[0] == {SHA + "1": [(1, "text")]}


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        (SHA + "1", MAPS.upper(), [(1, "text")]),
        (SHA + "1", "  On maps of unknown — oceans a survey. ", [(2, "text")]),
        (SHA + "1", "Cafe\u0301 Maps of Parisian streets", [(3, "text")]),
        (SHA + "1", "twins in very large corpora", [(5, "text"), (6, "text")]),
        ("doc-1", "Ｍａｐｓ of deep sea currents", [(1, "text")]),
        ("doc-1", "<i>Ma\u00adp\u200bs</i> of deep sea currents", [(1, "text")]),
        ("1234567890" * 4, MAPS, [(1, "text")]),
        ("10.1234/A5", MAPS, [(5, "doi")]),
        ("cite:10.1234/a6", None, [(6, "doi")]),
        ("https://doi.org/10.1234/a1", None, [(1, "doi")]),
        ("10.1234/unknown", TITLES[9], [(9, "text")]),
        (SHA + "1", "Map of deep sea currents", None),
        (SHA + "1", "", None),
        (SHA + "1", "…", None),
        (SHA + "1", None, None),
        ("09", MAPS, [(9, "id")]),
    ],
)
def test_documents_without_a_number_are_found_by_doi_or_by_the_words_of_their_title(found, name, title, expected):
    papers, counts = found({name: title})
    assert papers.get(name) == expected
    assert counts == ({} if expected else {UNKNOWN: 1})


@pytest.mark.parametrize(
    ("title", "abstract", "of_paper", "is_one"),
    [
        ("Maps", ABSTRACT, ABSTRACT, True),
        ("Maps", ABSTRACT[:60], ABSTRACT, True),
        ("Maps", ABSTRACT, " ".join(reversed(ABSTRACT.split())), False),
        ("Maps", None, ABSTRACT, False),
        (MAPS, None, ABSTRACT, True),
        (MAPS, ABSTRACT, " ".join(reversed(ABSTRACT.split())), False),
    ],
)
def test_abstracts_agree_or_one_is_missing_and_the_title_is_telling(found, title, abstract, of_paper, is_one):
    papers, counts = found({"a": title}, papers={1: title}, abstracts={"a": abstract, 1: of_paper})
    assert (papers, counts) == (({"a": [(1, "text")]}, {}) if is_one else ({}, {OTHER_TEXT: 1}))


def test_a_title_that_many_papers_have_tells_none_of_them_and_short_queries_are_no_papers(found):
    few, many = (dict.fromkeys(range(count), MAPS) for count in (SHARED_BY, SHARED_BY + 1))
    assert len(found({"a": MAPS}, papers=few)[0]["a"]) == SHARED_BY
    assert found({"a": MAPS}, papers=many) == ({}, {COMMON_TITLE: 1})
    assert found({"7": None, "q": MAPS, "d": MAPS}, short=("7", "q")) == ({"d": [(1, "text")]}, {})


def test_a_folder_of_hashes_is_no_pattern(tmp_path):
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table({5: ("A", None), 6: ("B", None)}))
    write_paper_ids(tmp_path / "ids1", {"sha": SHA + "1", "corpusid": 5})
    write_paper_ids(tmp_path / "ids[1]", {"sha": SHA + "1", "corpusid": 6})
    leading = {"papers": tmp_path / "papers", "paper_ids": tmp_path / "ids[1]"}
    documents = write_documents(tmp_path / "documents.parquet", {SHA + "1": None})
    find_documents(documents, **leading, output=tmp_path / "o", omissions=tmp_path / "left", **LIMITS)
    assert read_table(tmp_path / "o", "document_papers")["corpusid"].to_pylist() == [6]


UNREADABLE = "cannot be read as Semantic Scholar's dataset paper-ids"
WITHOUT_HASHES = "no record has a sha and a corpusid"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not JSON", UNREADABLE),
        ('{"sha": ', UNREADABLE),
        ("\\x00", UNREADABLE),
        ("[1, 2]", UNREADABLE),
        (f'{{"sha": "{SHA}1", "corpusid": {2**63}}}', UNREADABLE),
        ('{"corpusid": 1, "externalids": {}}', WITHOUT_HASHES),
        (f'{{"sha": "{SHA}1", "corpusid": null}}', WITHOUT_HASHES),
        ('{"sha": null, "corpusid": 5}', WITHOUT_HASHES),
        ("", WITHOUT_HASHES),
    ],
)
def test_a_folder_of_something_else_than_paper_ids_is_refused(tmp_path, line, said):
    documents = write_documents(tmp_path / "documents.parquet", {SHA + "1": None})
    (tmp_path / "paper-ids").mkdir()
    (tmp_path / "paper-ids/0.jsonl").write_text(line + "\n")
    papers = write_papers(tmp_path / "papers", {W: (1, None)})
    leading = {"papers": papers, "paper_ids": tmp_path / "paper-ids"}
    with pytest.raises(InputError, match=rf"paper-ids: {said}"):
        find_documents(documents, **leading, output=tmp_path / "o", omissions=tmp_path / "left", **LIMITS)
