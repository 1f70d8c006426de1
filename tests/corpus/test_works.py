"""Works of OpenAlex in each layout give the tables that Semantic Scholar's records of the same corpus give."""

import gzip
import json
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.corpus.made import counts, files_of, merged
from tests.corpus.made import settings as s2_settings
from tests.corpus.made_openalex import FOLDERS, SCHEMA, url_of, work, works_of, write_copy, write_parquet

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.release_shards import ingest_shards
from cocite.corpus.release.manifest import Shard

FAR = 5_000_000_000
"""Ids are above 2³¹."""


def a_corpus():
    """Forty papers, their abstracts and citations, as Semantic Scholar's records."""
    papers = [
        {
            "corpusid": FAR + n,
            "title": f"Title “{n}” \\ \t\U0001d54f",
            "year": 1990 + n,
            "publicationdate": f"{1990 + n}-02-{n % 28 + 1:02}" if n % 4 else None,
            "venue": f"Venue {n % 3}" if n % 2 else None,
            "s2fieldsofstudy": [{"category": name} for name in ("Art", "Biology", "Art")[: n % 4]],
            "externalids": {"DOI": f"10.1/{n}" if n % 3 else None},
            "citationcount": n,
            "referencecount": min(n, 4),
            "authors": [{"name": name} for name in ("Ada Abel", "Mira Okoye", "Ada Abel")[: n % 4]],
        }
        for n in range(40)
    ]
    abstracts = [{"corpusid": FAR + n, "abstract": f"a b a é “{n}” b"} for n in range(0, 40, 2)]
    citations = [
        {"citingcorpusid": FAR + n, "citedcorpusid": FAR + n - m} for n in range(40) for m in range(1, min(n, 4) + 1)
    ]
    return papers, abstracts, citations


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layout", FOLDERS)
def test_a_copy_gives_the_tables_of_the_same_corpus_in_the_layout_of_semantic_scholar(
    tmp_path, read_works, write_shard, layout, threads
):
    given = dict(zip(("papers", "abstracts", "citations"), a_corpus(), strict=True))
    theirs = tmp_path / "s2"
    for dataset, records in given.items():
        path = write_shard(tmp_path / "release" / dataset / "0.gz", *records)
        how = s2_settings(dataset, buckets=2, authors=dataset == "papers")
        shard = Shard(name=path.name, bytes=path.stat().st_size)
        ingest_shards(how, path.parent, [shard], output=theirs / dataset / "0.parquet", report=theirs / "report")
    works = works_of(*given.values())
    for number, each in enumerate(works):
        each["updated_date"] = f"2026-06-{10 + number % 3}"
    write_copy(tmp_path / "bucket", layout, works, per_file=9)
    ours = read_works(*files_of(tmp_path / "bucket", layout), authors=True, threads=threads)
    assert merged(ours) == merged(theirs)
    assert counts(ours) == {
        ("works", "kept"): 40,
        ("abstracts of works", "kept"): 20,
        ("citations of works", "kept"): len(given["citations"]),
    }


@pytest.mark.parametrize("as_date", [False, True])
def test_dates_are_texts_or_days_and_what_is_none_is_null(tmp_path, read_works, as_date):
    days = {1: "2020-02-29", 2: None} if as_date else {1: "2020-02-29", 2: None, 3: "2021-02-29", 4: "2020", 5: ""}
    works = [work(number, publication_date=day) for number, day in days.items()]
    path = tmp_path / "part_0.parquet"
    write_parquet(path, works)
    if as_date:
        table = pq.read_table(path)
        place = table.schema.get_field_index("publication_date")
        pq.write_table(table.set_column(place, "publication_date", table["publication_date"].cast(pa.date32())), path)
    expected = dict.fromkeys(days) | {1: date(2020, 2, 29)}
    assert {row["corpusid"]: row["date"] for row in merged(read_works(path))[0]["papers"]} == expected
    write_copy(tmp_path / "lines", "jsonl", works)
    rows = merged(read_works(*files_of(tmp_path / "lines", "jsonl")))[0]["papers"]
    assert {row["corpusid"]: row["date"] for row in rows} == expected


@pytest.mark.parametrize("layout", ["jsonl", "parquet"])
def test_a_word_may_be_several_keys_of_an_abstract_and_an_empty_title_or_a_slip_of_a_year_is_none(
    tmp_path, read_works, layout
):
    index = '{"a": [0], "b": [1], "a": [3, 2]}'
    write_copy(
        tmp_path / "bucket",
        layout,
        [work(1, abstract_inverted_index=index, title=" ", display_name="Named", publication_year=20199)],
    )
    [paper] = merged(read_works(*files_of(tmp_path / "bucket", layout)))[0]["papers"]
    assert (paper["title"], paper["year"], paper["abstract"]) == ("Named", None, "a b a a")


def names_of(folder, table, column):
    return {row[column] for row in merged(folder)[0][table]}


@pytest.mark.parametrize("layout", ["jsonl", "parquet"])
def test_of_a_work_in_two_files_the_later_one_counts_with_all_that_is_in_it(tmp_path, read_works, layout):
    old = work(1, title="Old", abstract="an old text", references=[2, 3], updated_date="2026-06-01", citation_count=9)
    new = work(1, title="New", references=[3, 4], updated_date="2026-06-02", citation_count=1)
    write_copy(tmp_path / "bucket", layout, [new, old, work(2, updated_date="2026-06-01")])
    (tables, omissions) = merged(read_works(*files_of(tmp_path / "bucket", layout)))
    assert {row["corpusid"]: (row["title"], row["abstract"]) for row in tables["papers"]} == {
        1: ("New", None),
        2: ("A title", None),
    }
    assert [(row["citing"], row["cited"]) for row in tables["citations"]] == [(1, 3), (1, 4)]
    assert omissions["older copies of a paper, which is in a newer file as well"] == 1
    assert omissions["abstracts of older copies of a paper"] == 1
    assert omissions["citations of older copies of the paper that cites"] == 2


def test_the_newest_copy_of_a_work_has_the_year_that_counts_against_the_last_year_of_the_corpus(tmp_path, read_works):
    earlier, later = {"updated_date": "2026-06-01"}, {"updated_date": "2026-06-02"}
    works = [
        *(work(1, year=2001, references=[3], **earlier), work(1, year=1999, references=[4], **later)),
        *(work(2, year=1999, references=[3], **earlier), work(2, year=2001, references=[4], **later)),
    ]
    write_copy(tmp_path, "jsonl", works)
    tables, omissions = merged(read_works(*files_of(tmp_path, "jsonl")), until=2000)
    assert [row["corpusid"] for row in tables["papers"]] == [1]
    assert [(row["citing"], row["cited"]) for row in tables["citations"]] == [(1, 4)]
    assert omissions["copies of papers from after corpus.until"] == 1
    assert omissions["copies of citations from after corpus.until"] == 1


def test_a_work_whose_newest_copy_is_left_out_does_not_come_back_by_an_older_one(tmp_path, read_works):
    old = work(1, references=[2], abstract="text", updated_date="2026-06-01")
    write_copy(tmp_path, "jsonl", [old, work(1, is_retracted=True, updated_date="2026-06-02"), work(3)])
    folder = read_works(*files_of(tmp_path, "jsonl"))
    assert names_of(folder, "papers", "corpusid") == {3}
    assert merged(folder)[0]["citations"] == []
    assert counts(folder)["works", "retracted works"] == 1


@pytest.mark.parametrize("layout", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, {1, 2, 3, 4, 5}),
        ({"retracted": True, "paratext": True}, {1, 2, 3, 4, 5, 6, 7}),
        ({"from_year": 2001}, {2, 3}),
        ({"from_year": 2001, "to_year": 2001}, {2}),
        ({"to_year": 2000}, {1, 4}),
        ({"fields": ("Art",)}, {1, 2}),
        ({"fields": ("Biology", "Physics")}, {2, 3}),
        ({"languages": ("de",)}, {4}),
        ({"types": ("review", "book")}, {5}),
    ],
)
def test_filters_leave_out_works_and_count_them(tmp_path, read_works, layout, filters, left):
    works = [
        work(1, year=2000, fields=["Art"]),
        work(2, year=2001, fields=["Biology", "Art"]),
        work(3, year=2002, fields=["Physics"]),
        work(4, year=1990, language="de"),
        work(5, year=None, type="review", language=None),
        work(6, year=None, type="erratum", language="fr", is_retracted=True),
        work(7, year=None, type="paratext", language="fr", is_paratext=True),
    ]
    write_copy(tmp_path / "bucket", layout, works)
    folder = read_works(*files_of(tmp_path / "bucket", layout), **filters)
    assert names_of(folder, "papers", "corpusid") == left
    counted = counts(folder)
    assert counted["works", "kept"] == len(left)
    assert sum(count for (dataset, _), count in counted.items() if dataset == "works") == len(works)


BAD_IDS = [
    (work(2, id="https://openalex.org/A5023888391"), 'id is "https://openalex.org/A5023888391", not the id of a work'),
    (work(2, id=None), "id is null, not the id of a work"),
    (work(2, id=url_of(2**63)), "not the id of a work"),
    (
        work(2, referenced_works=["https://openalex.org/A1"]),
        'referenced_works has "https://openalex.org/A1", not the id',
    ),
]
BAD_INDEXES = ['{"a": [0', "[1]", '{"a": 1}', '{"a": [-1]}', '{"a\\ud800": [1]}']
NO_INDEX = ", not an object of words and their positions"


@pytest.mark.parametrize("layout", ["jsonl", pytest.param("parquet", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("bad", "fault"), [*BAD_IDS, *((work(2, abstract_inverted_index=index), NO_INDEX) for index in BAD_INDEXES)]
)
def test_a_malformed_work_is_named_by_file_and_place(tmp_path, read_works, layout, bad, fault):
    write_copy(tmp_path / "bucket", layout, [work(1), bad, work(3)])
    (path,) = files_of(tmp_path / "bucket", layout)
    with pytest.raises(InputError, match=f"{path.name}, (line|row) 2: ") as raised:
        read_works(path)
    assert fault in str(raised.value)
    folder = read_works(path, malformed=0.5)
    assert names_of(folder, "papers", "corpusid") == {1, 3}


@pytest.mark.parametrize("line", [b"{broken", b'{"id": "https://openalex.org/W1"', b"[]", b'{"title": "T"}', b"\xff"])
def test_a_line_that_is_no_record_is_named(tmp_path, read_works, write_shard, line):
    path = write_shard(tmp_path / "updated_date=2026-06-24" / "part_0000.gz", work(1), b"", line)
    with pytest.raises(InputError, match=r"part_0000\.gz, line 3: "):
        read_works(path)


@pytest.mark.parametrize(
    "column", ["id", "referenced_works", "abstract_inverted_index", "primary_topic", "is_retracted"]
)
def test_a_parquet_file_without_a_column_that_is_needed_is_named(tmp_path, read_works, column):
    path = tmp_path / "updated_date=2026-06-24" / "part_0000.parquet"
    path.parent.mkdir()
    write_parquet(path, [work(1)], schema=SCHEMA.remove(SCHEMA.get_field_index(column)))
    with pytest.raises(InputError, match=f"part_0000.parquet: lacks the column {column}"):
        read_works(path)


def test_columns_that_no_filter_asks_for_may_be_missing(tmp_path, read_works):
    path = tmp_path / "updated_date=2026-06-24" / "part_0000.parquet"
    path.parent.mkdir()
    unneeded = ("type", "language", "is_retracted", "is_paratext", "ids", "locations", "authorships", "display_name")
    write_parquet(path, [work(1)], schema=pa.schema([field for field in SCHEMA if field.name not in unneeded]))
    assert names_of(read_works(path, retracted=True, paratext=True), "papers", "title") == {"A title"}


@pytest.mark.parametrize("name", ["part_0000.gz", "part_0000.parquet"])
def test_a_file_that_is_cut_short_is_named(tmp_path, read_works, name):
    layout = "parquet" if name.endswith("parquet") else "jsonl"
    write_copy(tmp_path / "bucket", layout, [work(1, abstract="some text")])
    (path,) = files_of(tmp_path / "bucket", layout)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=name):
        read_works(path)


def test_references_without_a_work_and_to_itself_are_counted(tmp_path, read_works, write_shard):
    record = work(1, referenced_works=[None, url_of(1), url_of(2), url_of(2)])
    folder = read_works(write_shard(tmp_path / "updated_date=2026-06-24" / "part_0000.gz", record))
    assert [(row["citing"], row["cited"]) for row in merged(folder)[0]["citations"]] == [(1, 2)]
    counted = counts(folder)
    assert counted["citations of works", "citations without a cited id"] == 1
    assert counted["citations of works", "citations of a paper by itself"] == 1
    assert counted["citations of works", "kept"] == 2


def mags(folder):
    return {row["corpusid"]: row["mag"] for row in merged(folder)[0]["papers"]}


@pytest.mark.parametrize("layout", FOLDERS)
def test_papers_have_the_mag_ids_of_their_works_in_each_layout(tmp_path, read_works, layout):
    works = [
        work(FAR, mag="2741809807"),
        work(FAR + 1, year=1900),
        work(FAR + 2, mag="007"),
        work(FAR + 3, mag="no number"),
    ]
    write_copy(tmp_path / "bucket", layout, works)
    files = files_of(tmp_path / "bucket", layout)
    assert mags(read_works(*files, mag=True)) == {FAR: 2741809807, FAR + 1: None, FAR + 2: 7, FAR + 3: None}
    assert mags(read_works(*files, mag=True, from_year=2000)) == {FAR: 2741809807, FAR + 2: 7, FAR + 3: None}
    assert "mag" not in read_table(read_works(*files) / "papers", "ingested_papers").column_names


ODD = {
    '{"mag": 12}': 12,
    '{ "mag" : "12" }': 12,
    '{"openalex":"https://openalex.org/W1","mag":"12","pmid":null}': 12,
    '{"mag": 12.5}': None,
    '{"mag": -12}': None,
    '{"mag": true}': None,
    '{"mag": null}': None,
    '{"mag": {"mag": "12"}}': None,
    '{"doi": "a,\\"mag\\": \\"12\\","}': None,
    '{"doi": "10.1/[{a}]", "mag": "12"}': 12,
    '{"doi": ["a"], "mag": "12"}': 12,
    '{"other": {"mag": "12"}}': None,
    '[{"mag": "12"}]': None,
    '"mag"': None,
    "{}": None,
    "null": None,
    '{"mag": "99999999999999999999"}': None,
    '{"mag": "9999999999999999999"}': None,
}
"""What may stand under `ids` → the MAG id."""


@pytest.mark.parametrize("ids", ODD)
def test_lines_have_the_mag_id_or_none_whatever_is_under_ids(tmp_path, read_works, ids):
    line = json.dumps(work(FAR) | {"ids": "HERE"}).replace('"HERE"', ids)
    (tmp_path / "part_000.gz").write_bytes(gzip.compress(f"{line}\n".encode()))
    assert mags(read_works(tmp_path / "part_000.gz", mag=True)) == {FAR: ODD[ids]}


def test_mag_ids_may_be_numbers_in_parquet(tmp_path, read_works):
    ids = pa.struct({"openalex": pa.string(), "mag": pa.int64()})
    schema = pa.schema([field.with_type(ids) if field.name == "ids" else field for field in SCHEMA])
    works = [work(FAR) | {"ids": {"openalex": "W", "mag": 12}}, work(FAR + 1) | {"ids": None}]
    write_parquet(tmp_path / "part_0000.parquet", works, schema=schema)
    assert mags(read_works(tmp_path / "part_0000.parquet", mag=True)) == {FAR: 12, FAR + 1: None}


def test_parquet_without_mag_ids_is_refused_where_they_are_asked_for(tmp_path, read_works):
    schema = pa.schema([field for field in SCHEMA if field.name != "ids"])
    write_parquet(tmp_path / "part_0000.parquet", [work(FAR)], schema=schema)
    with pytest.raises(InputError, match=r"lacks the column ids\.mag \(whole numbers or text\)"):
        read_works(tmp_path / "part_0000.parquet", mag=True)
