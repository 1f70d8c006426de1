"""Works of OpenAlex in each layout give the tables that Semantic Scholar's records of the same corpus give."""

import json
import re
import shutil
from datetime import date

import pyarrow as pa
import pytest
from tests.corpus.made import counts, files_of, merged
from tests.corpus.made import settings as s2_settings
from tests.corpus.made_openalex import FOLDERS, SCHEMA, url_of, work, write_copy, write_parquet

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.release_shards import ingest_shards
from cocite.corpus.release.manifest import Shard

FAR = 5_000_000_000
"""Ids are above 2³¹."""


def a_corpus():
    """Forty papers, their abstracts and citations: as Semantic Scholar's records, and as works."""
    given, works = {"papers": [], "abstracts": [], "citations": []}, []
    for n in range(40):
        number, cited = FAR + n, [FAR + n - m for m in range(1, min(n, 4) + 1)]
        both = {"title": f"Title “{n}” \\ \t\U0001d54f", "year": 1990 + n, "venue": f"Venue {n % 3}" if n % 2 else None}
        names, fields = ("Ada Abel", "Mira Okoye", "Ada Abel")[: n % 4], ("Art", "Biology", "Art")[: n % 4]
        day, doi = f"{1990 + n}-02-{n % 28 + 1:02}" if n % 4 else None, f"10.1/{n}" if n % 3 else None
        text = None if n % 2 else f"a b a é “{n}” b"
        record = {"publicationdate": day, "externalids": {"DOI": doi}, "citationcount": n, "referencecount": len(cited)}
        record |= {"s2fieldsofstudy": [{"category": name} for name in fields]}
        given["papers"].append({"corpusid": number, **both, **record, "authors": [{"name": name} for name in names]})
        given["abstracts"] += [{"corpusid": number, "abstract": text}] if text else []
        given["citations"] += [{"citingcorpusid": number, "citedcorpusid": other} for other in cited]
        more = {"publication_date": day, "doi": doi, "citation_count": n, "fields": fields, "authors": names}
        changed = f"2026-06-{10 + n % 3}"
        works.append(work(number, **both, **more, abstract=text, references=cited, updated_date=changed))
    return given, works


@pytest.fixture
def read_copy(tmp_path, read_works):
    """Ingest a copy with these works."""

    def read_copy(layout, works, **options):
        shutil.rmtree(tmp_path / "bucket", ignore_errors=True)
        write_copy(tmp_path / "bucket", layout, works, per_file=9)
        return read_works(*files_of(tmp_path / "bucket", layout), **options)

    return read_copy


@pytest.fixture
def parquet(tmp_path):
    """A file of works with other columns than the usual ones, by name."""

    def parquet(*works, leave_out=(), **types):
        schema = [field.with_type(types.get(field.name, field.type)) for field in SCHEMA if field.name not in leave_out]
        write_parquet(tmp_path / "part_0000.parquet", works, schema=pa.schema(schema))
        return tmp_path / "part_0000.parquet"

    return parquet


def papers_of(folder, column):
    return {row["corpusid"]: row[column] for row in merged(folder)[0]["papers"]}


def pairs(tables):
    return [(row["citing"], row["cited"]) for row in tables["citations"]]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layout", FOLDERS)
def test_a_copy_gives_the_tables_of_the_same_corpus_in_the_layout_of_semantic_scholar(
    tmp_path, read_copy, write_shard, layout, threads
):
    given, works = a_corpus()
    theirs = tmp_path / "s2"
    for dataset, records in given.items():
        path = write_shard(tmp_path / "release" / dataset / "0.gz", *records)
        how = s2_settings(dataset, buckets=2, authors=dataset == "papers")
        shard = Shard(name=path.name, bytes=path.stat().st_size)
        ingest_shards(how, path.parent, [shard], output=theirs / dataset / "0.parquet", report=theirs / "report")
    ours = read_copy(layout, works, authors=True, threads=threads)
    assert merged(ours) == merged(theirs)
    assert counts(ours) == {
        ("works", "kept"): 40,
        ("abstracts of works", "kept"): 20,
        ("citations of works", "kept"): len(given["citations"]),
    }


TEXTS = {1: "2020-02-29", 2: None, 3: "2021-02-29", 4: "2020", 5: ""}
DAYS = {1: date(2020, 2, 29), 2: None}


@pytest.mark.parametrize(("form", "given"), [("lines", TEXTS), ("parquet", TEXTS), ("parquet", DAYS)])
def test_dates_are_texts_or_days_and_what_is_none_is_null(read_copy, read_works, parquet, form, given):
    works = [work(number, publication_date=day) for number, day in given.items()]
    types = {"publication_date": pa.date32()} if given is DAYS else {}
    folder = read_copy("jsonl", works) if form == "lines" else read_works(parquet(*works, **types))
    assert papers_of(folder, "date") == {number: DAYS.get(number) for number in given}


@pytest.mark.parametrize("layout", ["jsonl", "parquet"])
def test_a_word_may_be_several_keys_of_an_abstract_and_an_empty_title_or_a_slip_of_a_year_is_none(read_copy, layout):
    odd = {"abstract_inverted_index": '{"a": [0], "b": [1], "a": [3, 2]}', "publication_year": 20199}
    [paper] = merged(read_copy(layout, [work(1, title=" ", display_name="Named", **odd)]))[0]["papers"]
    assert (paper["title"], paper["year"], paper["abstract"]) == ("Named", None, "a b a a")


@pytest.mark.parametrize("layout", ["jsonl", "parquet"])
def test_of_a_work_in_two_files_the_later_one_counts_with_all_that_is_in_it(read_copy, layout):
    old = work(1, title="Old", abstract="an old text", references=[2, 3], updated_date="2026-06-01", citation_count=9)
    new = work(1, title="New", references=[3, 4], updated_date="2026-06-02", citation_count=1)
    tables, omissions = merged(read_copy(layout, [new, old, work(2, updated_date="2026-06-01")]))
    texts = {row["corpusid"]: (row["title"], row["abstract"]) for row in tables["papers"]}
    assert texts == {1: ("New", None), 2: ("A title", None)}
    assert pairs(tables) == [(1, 3), (1, 4)]
    assert omissions["older copies of a paper, which is in a newer file as well"] == 1
    assert omissions["abstracts of older copies of a paper"] == 1
    assert omissions["citations of older copies of the paper that cites"] == 2


def test_the_newest_copy_of_a_work_has_the_year_that_counts_against_the_last_year_of_the_corpus(read_copy):
    earlier, later = {"updated_date": "2026-06-01"}, {"updated_date": "2026-06-02"}
    works = [
        *(work(1, year=2001, references=[3], **earlier), work(1, year=1999, references=[4], **later)),
        *(work(2, year=1999, references=[3], **earlier), work(2, year=2001, references=[4], **later)),
    ]
    tables, omissions = merged(read_copy("jsonl", works), until=2000)
    assert [row["corpusid"] for row in tables["papers"]] == [1]
    assert pairs(tables) == [(1, 4)]
    assert omissions["copies of papers from after corpus.until"] == 1
    assert omissions["copies of citations from after corpus.until"] == 1


def test_a_work_whose_newest_copy_is_left_out_does_not_come_back_by_an_older_one(read_copy):
    old = work(1, references=[2], abstract="text", updated_date="2026-06-01")
    folder = read_copy("jsonl", [old, work(1, is_retracted=True, updated_date="2026-06-02"), work(3)])
    tables, _ = merged(folder)
    assert [row["corpusid"] for row in tables["papers"]] == [3]
    assert pairs(tables) == []
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
def test_filters_leave_out_works_and_count_them(read_copy, layout, filters, left):
    works = [
        work(1, year=2000, fields=["Art"]),
        work(2, year=2001, fields=["Biology", "Art"]),
        work(3, year=2002, fields=["Physics"]),
        work(4, year=1990, language="de"),
        work(5, year=None, type="review", language=None),
        work(6, year=None, type="erratum", language="fr", is_retracted=True),
        work(7, year=None, type="paratext", language="fr", is_paratext=True),
    ]
    folder = read_copy(layout, works, **filters)
    assert papers_of(folder, "title").keys() == left
    counted = counts(folder)
    assert counted["works", "kept"] == len(left)
    assert sum(count for (dataset, _), count in counted.items() if dataset == "works") == len(works)


AUTHOR, NO_WORK = "https://openalex.org/A1", ", not the id of a work"
BAD = [
    ({"id": AUTHOR}, f'id is "{AUTHOR}"{NO_WORK}'),
    ({"id": None}, f"id is null{NO_WORK}"),
    ({"id": url_of(2**63)}, NO_WORK),
    ({"referenced_works": [AUTHOR]}, f'referenced_works has "{AUTHOR}", not the id'),
    *(
        ({"abstract_inverted_index": index}, ", not an object of words and their positions")
        for index in ('{"a": [0', "[1]", '{"a": 1}', '{"a": [-1]}', '{"a\\ud800": [1]}')
    ),
]


@pytest.mark.parametrize("layout", ["jsonl", pytest.param("parquet", marks=pytest.mark.long)])
@pytest.mark.parametrize(("bad", "fault"), BAD)
def test_a_malformed_work_is_named_by_file_and_place(read_copy, layout, bad, fault):
    works = [work(1), work(2) | bad, work(3)]
    with pytest.raises(InputError, match=rf"part_000\S*, (line|row) 2: .*{re.escape(fault)}"):
        read_copy(layout, works)
    assert papers_of(read_copy(layout, works, malformed=0.5), "title").keys() == {1, 3}


@pytest.mark.parametrize("line", [b"{broken", b'{"id": "https://openalex.org/W1"', b"[]", b'{"title": "T"}', b"\xff"])
def test_a_line_that_is_no_record_is_named(tmp_path, read_works, write_shard, line):
    path = write_shard(tmp_path / "updated_date=2026-06-24" / "part_0000.gz", work(1), b"", line)
    with pytest.raises(InputError, match=r"part_0000\.gz, line 3: "):
        read_works(path)


@pytest.mark.parametrize(
    ("column", "lacking"),
    [
        *((name, name) for name in ("id", "referenced_works", "abstract_inverted_index", "primary_topic")),
        ("is_retracted", "is_retracted"),
        ("ids", r"ids\.mag \(whole numbers or text\)"),
    ],
)
def test_a_parquet_file_without_a_column_that_is_needed_is_named(read_works, parquet, column, lacking):
    with pytest.raises(InputError, match=f"part_0000.parquet: lacks the column {lacking}"):
        read_works(parquet(work(1), leave_out=[column]), mag=column == "ids")


def test_columns_that_no_filter_asks_for_may_be_missing(read_works, parquet):
    unneeded = ("type", "language", "is_retracted", "is_paratext", "ids", "locations", "authorships", "display_name")
    folder = read_works(parquet(work(1), leave_out=unneeded), retracted=True, paratext=True)
    assert papers_of(folder, "title") == {1: "A title"}


@pytest.mark.parametrize(("layout", "name"), [("jsonl", "part_0000.gz"), ("parquet", "part_0000.parquet")])
def test_a_file_that_is_cut_short_is_named(tmp_path, read_works, layout, name):
    write_copy(tmp_path, layout, [work(1, abstract="some text")])
    (path,) = files_of(tmp_path, layout)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=name):
        read_works(path)


def test_references_without_a_work_and_to_itself_are_counted(tmp_path, read_works, write_shard):
    record = work(1, referenced_works=[None, url_of(1), url_of(2), url_of(2)])
    folder = read_works(write_shard(tmp_path / "part_0000.gz", record))
    assert pairs(merged(folder)[0]) == [(1, 2)]
    counted = counts(folder)
    assert counted["citations of works", "citations without a cited id"] == 1
    assert counted["citations of works", "citations of a paper by itself"] == 1
    assert counted["citations of works", "kept"] == 2


@pytest.mark.parametrize("layout", FOLDERS)
def test_papers_have_the_mag_ids_of_their_works_in_each_layout(read_copy, layout):
    works = [work(1, mag="2741809807"), work(2, year=1900), work(3, mag="007"), work(4, mag="no number")]
    assert papers_of(read_copy(layout, works, mag=True), "mag") == {1: 2741809807, 2: None, 3: 7, 4: None}
    assert papers_of(read_copy(layout, works, mag=True, from_year=2000), "mag") == {1: 2741809807, 3: 7, 4: None}
    assert "mag" not in read_table(read_copy(layout, works) / "papers", "ingested_papers").column_names


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
def test_lines_have_the_mag_id_or_none_whatever_is_under_ids(tmp_path, read_works, write_shard, ids):
    line = json.dumps(work(FAR) | {"ids": "HERE"}).replace('"HERE"', ids).encode()
    assert papers_of(read_works(write_shard(tmp_path / "part_000.gz", line), mag=True), "mag") == {FAR: ODD[ids]}


def test_mag_ids_may_be_numbers_in_parquet(read_works, parquet):
    works = [work(FAR) | {"ids": {"openalex": "W", "mag": 12}}, work(FAR + 1) | {"ids": None}]
    path = parquet(*works, ids=pa.struct({"openalex": pa.string(), "mag": pa.int64()}))
    assert papers_of(read_works(path, mag=True), "mag") == {FAR: 12, FAR + 1: None}
