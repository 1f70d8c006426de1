"""Papers are matched with Semantic Scholar's by MAG id, then by DOI, and documents of benchmarks are found by that."""

import gzip
import json
import shutil
from functools import partial

import pytest
from tests.corpus.made import LIMITS, left_out, write_documents, write_rows
from tests.papers import papers_table
from tests.rows import write_rows as write_tuples

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.corpus import matching
from cocite.corpus.matching import ambiguous_by, find_documents, match_papers, matched_by

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


def write_records(folder, *shards):
    """Records of Semantic Scholar's, a file for each shard."""
    folder.mkdir()
    for number, records in enumerate(shards):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{number}.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


@pytest.fixture
def matched(tmp_path):
    """Match papers; return (corpusid, s2_corpusid, matched_by) of the matches, and the counts above zero."""

    def match(ours, *shards):
        papers = write_papers(tmp_path / "papers", ours)
        records = [
            [{"corpusid": n, "externalids": {"ACL": None, "MAG": mag, "DOI": doi}, "title": ""} for n, mag, doi in rows]
            for rows in shards
        ]
        paths = {"output": tmp_path / "matches.parquet", "omissions": tmp_path / "omissions.parquet"}
        match_papers(write_records(tmp_path / "theirs", *records), papers=papers, **paths, **LIMITS)
        rows = [tuple(row.values()) for row in read_table(paths["output"], "matches").to_pylist()]
        return rows, left_out(paths["omissions"])

    return match


BY_MAG, BY_DOI = matched_by("mag"), matched_by("doi")
TWO_MAG, TWO_DOI = ambiguous_by("mag"), ambiguous_by("doi")
MATCHES = [
    # 3 has the MAG id of W + 2, so that 4, which has its DOI, is left.
    (
        *("11/- -/A 12/b -/- 99/zz", "1:11/- 2:-/a 3:12/-; 4:-/B 5:-/-", "0:1:mag 1:2:doi 2:3:mag"),
        {BY_MAG: 2, BY_DOI: 1, matching.NO_KEY: 1, matching.NOT_FOUND: 1},
    ),
    # An id that two papers have on either side matches none of them, nor does a DOI for an ambiguous MAG id.
    ("1/- 1/- 2/- 3/-", "10:1/- 20:2/- 21:2/- 30:3/-", "3:30:mag", {TWO_MAG: 3, BY_MAG: 1}),
    ("1/a", "10:1/- 11:1/a", "", {TWO_MAG: 1}),
    ("-/a -/A -/b", "10:-/a 20:-/b 21:-/B", "", {TWO_DOI: 3}),
    # One of theirs that is matched by its MAG id is not matched again by its DOI.
    ("1/- -/a", "10:1/a", "0:10:mag", {BY_MAG: 1, matching.NOT_FOUND: 1}),
    # A record that comes twice counts once, and one with two MAG ids is ambiguous.
    ("1/- 2/- 3/-", "10:1/- 20:2/-; 10:1/a 20:3/-", "0:10:mag", {BY_MAG: 1, TWO_MAG: 2}),
    # Matches by MAG id whose DOIs differ are kept and counted.
    ("1/a 2/b 3/-", "10:1/other 20:2/B 30:3/c", "0:10:mag 1:20:mag 2:30:mag", {BY_MAG: 3, matching.OTHER_DOI: 1}),
]
"""Our papers from W on, and theirs by id in shards, each as MAG id/DOI; who is matched with whom by what; counts."""


def ids_in(written):
    """A MAG id and a DOI as MATCHES has them."""
    mag, doi = (None if part == "-" else part for part in written.split("/"))
    return mag, doi and f"10.1/{doi}"


@pytest.mark.parametrize(("ours", "theirs", "expected", "counts"), MATCHES)
def test_papers_are_matched_by_mag_id_first_and_the_others_by_doi(matched, ours, theirs, expected, counts):
    papers = {W + at: (mag and int(mag), doi) for at, (mag, doi) in enumerate(map(ids_in, ours.split()))}
    records = [[each.split(":") for each in shard.split()] for shard in theirs.split(";")]
    found = matched(papers, *([(int(paper), *ids_in(ids)) for paper, ids in shard] for shard in records))
    rows = [(W + int(one), int(other), by) for one, other, by in (each.split(":") for each in expected.split())]
    assert found == (rows, counts)


def test_dois_are_compared_without_case_address_and_punctuation(matched):
    dois = ["10.1/AB0", "https://doi.org/10.1/ab1", "http://dx.doi.org/10.1/aB2", " doi:10.1/ab3 "]
    dois += ["https://www.doi.org/10.1/ab4", "doi.org/10.1/ab5.", "10.1/ab6,"]
    ours = {n: (None, f"10.1/Ab{n}") for n in range(7)}  # without a column of MAG ids
    assert matched(ours, [(10 + n, "5", doi) for n, doi in enumerate(dois)])[0] == [
        (n, 10 + n, "doi") for n in range(7)
    ]


def test_a_corpus_without_mag_ids_and_dois_is_refused(matched):
    with pytest.raises(InputError, match=r"none of the 2 papers has a MAG id or a DOI.*leave out corpus\.match"):
        matched({1: (None, None), 2: (None, None)}, [(3, "5", None)])


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
        leading = {"papers": tmp_path / "papers", "matches": None, "paper_ids": None}
        if matches:
            leading["matches"] = tmp_path / "matches.parquet"
            rows = [(*pair, "mag") for pair in matches.items()]
            write_tuples(leading["matches"], "matches", "corpusid s2_corpusid matched_by", rows)
        if paper_ids:
            records = ([{"sha": SHA + sha, "corpusid": paper, "primary": True}] for sha, paper in paper_ids)
            leading["paper_ids"] = write_records(tmp_path / "paper-ids", *records)
        documents = write_documents(tmp_path / "documents.parquet", titles, short, abstracts)
        paths = {"output": tmp_path / "bench.parquet", "omissions": tmp_path / "left.parquet"}
        find_documents(documents, **leading, **paths, **LIMITS, **given)
        by_document = {}
        for row in read_table(paths["output"], "document_papers").to_pylist():
            if row["has_record"]:
                by_document.setdefault(row["document"], []).append((row["corpusid"], row["matched_by"]))
        return by_document, left_out(paths["omissions"])

    return find


ONE, TWO = SHA + "1", SHA + "2"


def test_documents_are_found_by_what_their_ids_are_matched_with_and_the_others_by_text(found):
    documents = {"7": None, "search:7": None, "8": MAPS, "10": None, "MED-4": None}
    # And not 8, which is the corpus's paper 8 by number alone.
    expected = {"7": [(W, "mag")], "search:7": [(W, "mag")], "8": [(1, "text")]}, {matching.UNKNOWN: 2}
    assert found(documents, matches={8: 9, W: 7}) == expected


def test_numbers_and_hashes_of_another_origin_lead_to_no_paper_and_texts_do(found):
    documents = {"1": SURVEY, "5": None, "10.1234/a6": None, ONE: None, "MED-4": MAPS}
    expected = {"1": [(2, "text")], "10.1234/a6": [(6, "doi")], "MED-4": [(1, "text")]}, {matching.UNKNOWN: 2}
    assert found(documents, text_only=True, paper_ids=[("1", 5)]) == expected


def test_hashes_lead_to_corpus_ids_by_the_dataset_paper_ids(found, tmp_path):
    documents = {ONE: None, f"again2:{TWO.upper()}": None, SHA + "3": None, "9": None}
    expected = {ONE: [(5, "sha")], f"again2:{TWO.upper()}": [(6, "sha")], "9": [(9, "id")]}, {matching.UNKNOWN: 1}
    assert found(documents, paper_ids=[("1", 5), ("2", "6")]) == expected
    shutil.rmtree(tmp_path / "paper-ids")
    matched = {ONE: [(W, "sha")]}, {matching.UNKNOWN: 1}
    assert found({ONE: None, TWO: None}, paper_ids=[("1", 5), ("2", 6)], matches={W: 5}) == matched
    shutil.rmtree(tmp_path / "paper-ids")
    two_records_differ = {ONE: [(1, "text")]}, {}
    assert found({ONE: MAPS}, paper_ids=[("1", 5), ("1", 6)]) == two_records_differ


def test_ids_without_a_record_are_no_papers_of_the_corpus_and_stand_apart(found, tmp_path):
    papers, counts = found({"7": "Map", "9": None, ONE: MAPS, TWO: None}, paper_ids=[("1", 70), ("2", 80)])
    assert papers == {"9": [(9, "id")], ONE: [(1, "text")]}
    assert counts == {matching.UNKNOWN: 2}
    rows = read_table(tmp_path / "bench.parquet", "document_papers").to_pylist()
    without = {(row["document"], row["corpusid"], row["matched_by"]) for row in rows if not row["has_record"]}
    assert without == {("7", 7, "id"), (ONE, 70, "sha"), (TWO, 80, "sha")}


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
    assert counts == ({} if expected else {matching.UNKNOWN: 1})


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
    assert (papers, counts) == (({"a": [(1, "text")]}, {}) if is_one else ({}, {matching.OTHER_TEXT: 1}))


def test_a_title_that_many_papers_have_tells_none_of_them_and_short_queries_are_no_papers(found):
    few, many = (dict.fromkeys(range(count), MAPS) for count in (matching.SHARED_BY, matching.SHARED_BY + 1))
    assert len(found({"a": MAPS}, papers=few)[0]["a"]) == matching.SHARED_BY
    assert found({"a": MAPS}, papers=many) == ({}, {matching.COMMON_TITLE: 1})
    assert found({"7": None, "q": MAPS, "d": MAPS}, short=("7", "q")) == ({"d": [(1, "text")]}, {})


def test_a_folder_of_hashes_is_no_pattern(tmp_path):
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table({5: ("A", None), 6: ("B", None)}))
    for name, paper in {"ids1": 5, "ids[1]": 6}.items():
        write_records(tmp_path / name, [{"sha": ONE, "corpusid": paper}])
    leading = {"papers": tmp_path / "papers", "paper_ids": tmp_path / "ids[1]"}
    documents = write_documents(tmp_path / "documents.parquet", {ONE: None})
    find_documents(documents, **leading, output=tmp_path / "o", omissions=tmp_path / "left", **LIMITS)
    assert read_table(tmp_path / "o", "document_papers")["corpusid"].to_pylist() == [6]


NO_IDS = "papers: no record has a corpusid and externalids with a MAG id or a DOI"
NO_PAPERS = "papers: cannot be read as Semantic Scholar's"
NO_PAPER_IDS = "paper-ids: cannot be read as Semantic Scholar's dataset paper-ids"
WITHOUT_HASHES = "paper-ids: no record has a sha and a corpusid"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"corpusid": 1, "externalids": {"MAG": null}}', NO_IDS),
        ('{"id": 5}', NO_IDS),
        ("not JSON", NO_PAPERS),
        ('{"corpusid": 1, "externalids": [1]}', NO_PAPERS),
        ("not JSON", NO_PAPER_IDS),
        ('{"sha": ', NO_PAPER_IDS),
        ("\\x00", NO_PAPER_IDS),
        ("[1, 2]", NO_PAPER_IDS),
        (f'{{"sha": "{SHA}1", "corpusid": {2**63}}}', NO_PAPER_IDS),
        ('{"corpusid": 1, "externalids": {}}', WITHOUT_HASHES),
        (f'{{"sha": "{SHA}1", "corpusid": null}}', WITHOUT_HASHES),
        ('{"sha": null, "corpusid": 5}', WITHOUT_HASHES),
        ("", WITHOUT_HASHES),
    ],
)
def test_a_folder_of_something_else_than_papers_or_their_ids_is_refused(tmp_path, line, said):
    papers, folder = write_papers(tmp_path / "ours", {W: (1, None)}), tmp_path / said.partition(":")[0]
    folder.mkdir()
    (folder / "0.jsonl").write_text(line + "\n")
    documents = write_documents(tmp_path / "documents.parquet", {ONE: None})
    read = {"papers": partial(match_papers, folder), "paper-ids": partial(find_documents, documents, paper_ids=folder)}
    with pytest.raises(InputError, match=said):
        read[folder.name](papers=papers, output=tmp_path / "o", omissions=tmp_path / "left", **LIMITS)
    assert not (tmp_path / "o").exists()
