"""The ids that works have in the Microsoft Academic Graph: kept where they are asked for, in each layout of a copy."""

import gzip
import json

import pyarrow as pa
import pytest
from tests.corpus.ingested_works import files_of, merged
from tests.corpus.made_openalex import FOLDERS, SCHEMA, work, write_copy, write_parquet

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.works.records import mag_of

FAR = 5_000_000_000


def mags(folder):
    return {row["corpusid"]: row["mag"] for row in merged(folder)[0]["papers"]}


@pytest.mark.parametrize("layout", FOLDERS)
def test_papers_have_the_mag_ids_of_their_works_in_each_layout(tmp_path, read_works, layout):
    works = [work(FAR, mag="2741809807"), work(FAR + 1), work(FAR + 2, mag="007"), work(FAR + 3, mag="no number")]
    write_copy(tmp_path / "bucket", layout, works)
    folder = read_works(*files_of(tmp_path / "bucket", layout), mag=True)
    assert mags(folder) == {FAR: 2741809807, FAR + 1: None, FAR + 2: 7, FAR + 3: None}


def test_mag_ids_are_not_there_unless_they_are_asked_for(tmp_path, read_works):
    write_copy(tmp_path / "bucket", "parquet", [work(FAR, mag="5")])
    folder = read_works(*files_of(tmp_path / "bucket", "parquet"))
    assert "mag" not in read_table(folder / "papers", "ingested_papers").column_names


def test_a_work_that_is_left_out_has_no_mag_id(tmp_path, read_works):
    write_copy(tmp_path / "bucket", "jsonl", [work(FAR, mag="5", year=1900), work(FAR + 1, mag="6")])
    folder = read_works(*files_of(tmp_path / "bucket", "jsonl"), mag=True, from_year=2000)
    assert mags(folder) == {FAR + 1: 6}


ODD = {
    '{"mag": 12}': 12,
    '{ "mag" : "12" }': 12,
    '{"openalex":"https://openalex.org/W1","mag":"12","pmid":null}': 12,
    '{"mag": 12.5}': None,
    '{"mag": -12}': None,
    '{"mag": true}': None,
    '{"mag": null}': None,
    '{"mag": "1", "mag": "12"}': 12,
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
def test_lines_are_read_as_python_reads_them_whatever_stands_under_ids(tmp_path, read_works, ids):
    assert mag_of(json.loads(ids)) == ODD[ids]
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
