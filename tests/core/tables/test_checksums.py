"""Pages of Parquet files are compared with their checksums by whatever reads them, and the broken file is named."""

import re
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spoiling import spoil_page

from cocite import cli
from cocite.core.errors import InputError
from cocite.core.rows import read_rows
from cocite.core.tables import files
from cocite.core.tables.checksums import verify_pages
from cocite.core.tables.files import read_table, write_table
from cocite.corpus.ingest.accounting import KEPT, Tally, tallies_as_table
from cocite.embeddings.edges import blocks_of_edges
from cocite.triplets.sampled import Block

PACKAGE = Path(cli.__file__).parent
NAMED = r"edges\.parquet: bytes [0-9,]+ to [0-9,]+ \(column target\) do not match their checksum"


@pytest.fixture
def edges(tmp_path):
    """The table of edges, with a spoilt page of targets."""
    source = np.arange(5_000)
    columns = {"source": source, "target": source + 1, "weight": np.ones(5_000, np.float32)}
    files.write_table(tmp_path / "edges.parquet", "edges", pa.table(columns))
    return spoil_page(tmp_path / "edges.parquet", 1)


PYARROW = {
    "read as a whole": lambda path: files.read_table(path, "edges"),
    "scanned": lambda path: list(files.scan_table(path, "edges").to_batches()),
    "by DuckDB from a scan": lambda path: duckdb.from_arrow(files.scan_table(path, "edges")).fetchall(),
    "in batches": lambda path: list(files.open_table(path, "edges").iter_batches()),
    "through a buffer": lambda path: files.open_table(path, "edges", buffer_size=1 << 16).read_row_group(0),
    "with a known footer": lambda path: files.open_parquet(path, footer=pq.read_metadata(path)).read(),
    "by an engine": lambda path: list(blocks_of_edges([path])),
    "by row groups": lambda path: list(
        Block(queries=np.arange(9), splits=pa.chunked_array([["train"]]), papers=None, sources=[path], seed=1)
        .read_by_query("edges", ["source", "target"])
    ),
    "as rows that people bring": lambda path: list(read_rows(path)),
}  # fmt: skip


@pytest.mark.parametrize("way", PYARROW)
def test_a_spoilt_page_is_no_row_for_pyarrow(edges, way):
    with pytest.raises((OSError, InputError, duckdb.Error), match="CRC checksum verification failed"):
        PYARROW[way](edges)


@pytest.mark.parametrize("read", [duckdb.read_parquet, lambda paths: pl.scan_parquet(paths).collect().rows()])
def test_a_spoilt_page_is_named_before_a_reader_that_ignores_checksums_sees_it(edges, read):
    with pytest.raises(InputError, match=NAMED):
        read(files.verified_files(edges, "edges"))
    assert files.verified_files(edges, "edges", ["source", "weight"]) == [str(edges)]


@pytest.mark.parametrize(
    ("written", "broken", "said"),
    [
        (b"\x16\x90\x4e", b"\x16\x90\x4c", "the row groups in its footer do not have as many rows as the file"),
        (b"source", b"so\xf5rce", "'utf-8' codec can't decode byte"),
    ],
)
def test_a_footer_that_is_broken_is_named_by_whoever_opens_the_table(edges, written, broken, said):
    edges.write_bytes(edges.read_bytes().replace(written, broken, 1))
    with pytest.raises(InputError, match=rf"edges\.parquet: not a readable Parquet file \({said}.*`cocite check"):
        files.scan_table(edges, "edges")


LOOKED_AT = {"core/tables/places.py", "tools/nearest.py"}
"""Modules by which people look at tables; they read unverified, as docs/recovery.md says."""


def test_no_module_reads_parquet_without_checksums():
    """DuckDB and Polars ignore them, so that a module that reads through these verifies pages itself."""
    unverified = set()
    for module in PACKAGE.rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        by_others = re.search(r"(?:\w\.|FROM )(?:read|scan)_parquet\(", text)
        if by_others and not re.search(r"\b(?:verified_files|verify_pages)\(", text):
            unverified.add(module.relative_to(PACKAGE).as_posix())
        for opened in re.finditer(r"(?:ParquetFile\(|partial\(pq\.ParquetFile,)[^)]*", text):
            if "page_checksum_verification" not in opened[0]:
                unverified.add(module.relative_to(PACKAGE).as_posix())
    assert unverified == LOOKED_AT


@pytest.mark.parametrize("compression", ["none", "zstd", "snappy", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_spoilt_byte_of_a_page_is_found(tmp_path, compression, version):
    """Of lists, texts with a dictionary, structs and nulls; bytes of headers, which have no checksum, aside."""
    count = 3_000
    columns = {
        "text": [f"title {number % 50}" for number in range(count)],
        "list": [list(range(number % 4)) for number in range(count)],
        "struct": [{"x": number, "y": str(number)} for number in range(count)],
        "null": pa.nulls(count, pa.int32()),
        "number": np.random.default_rng(1).random(count),
    }
    path = tmp_path / "t.parquet"
    options = {"compression": compression, "data_page_version": version, "write_page_index": version == "2.0"}
    pq.write_table(pa.table(columns), path, row_group_size=1_000, write_page_checksum=True, **options)
    verify_pages(path)
    for column in (0, 1, 2, 3, 5):
        for group in range(3):
            whole = path.read_bytes()
            spoil_page(path, column, group)
            with pytest.raises(InputError, match=r"t\.parquet: bytes .* do not match their checksum"):
                verify_pages(path)
            path.write_bytes(whole)


def test_only_row_groups_that_may_hold_a_bucket_are_verified(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"bucket": pa.array([0] * 10 + [1] * 10, pa.uint16()), "value": list(range(20))}
    pq.write_table(pa.table(columns), path, row_group_size=10, write_page_checksum=True)
    spoil_page(path, 1, group=1)
    verify_pages(path, bucket=0)
    with pytest.raises(InputError, match="do not match their checksum"):
        verify_pages(path, bucket=1)


def flipped(content, places):
    """The content of a file with each bit of some bytes changed, one at a time."""
    for place, bit in product(places, range(8)):
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << bit
        yield spoilt


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_page_whose_header_is_spoilt_gives_duckdb_no_other_rows(tmp_path, version):
    path, columns = tmp_path / "t.parquet", {"id": [3 * number for number in range(60)], "name": ["x", "y", "z"] * 20}
    pq.write_table(pa.table(columns), path, write_page_checksum=True, data_page_version=version)
    whole, rows, refused = path.read_bytes(), duckdb.read_parquet(str(path)).fetchall(), 0
    chunk = pq.read_metadata(path).row_group(0).column(0)
    for spoilt in flipped(whole, range(chunk.dictionary_page_offset, chunk.data_page_offset + 24)):
        path.write_bytes(spoilt)
        try:
            verify_pages(path)
            assert duckdb.read_parquet(str(path)).fetchall() == rows
        except (InputError, duckdb.Error) as error:
            refused += isinstance(error, InputError)
    assert refused > 1_000


def test_a_column_whose_header_is_spoilt_is_not_read_as_other_rows(tmp_path):
    path, ids = tmp_path / "edges.parquet", [*range(200)]
    write_table(path, "edges", pa.table({"source": ids, "target": [paper + 1 for paper in ids], "weight": [1.0] * 200}))
    chunk = pq.read_metadata(path).row_group(0).column(0)
    start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    for spoilt in flipped(path.read_bytes(), range(start, start + 40)):
        path.write_bytes(spoilt)
        with suppress(InputError, OSError):  # which the command line explains
            assert read_table(path, "edges", ["source"])["source"].to_pylist() == ids


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (b"\x15\x00", b"\x15\x02"),  # a page of an index
        (b"\x15\x00", b"\x15\x06"),  # a page of the second version, whose header is not there
        (b"\x15\x78", b"\x15\x7a"),  # other values
        *((b"\x15\x10", value) for value in (b"\x15\x0a", b"\x15\x50")),  # other encodings
    ],
)
def test_a_page_must_be_of_the_kind_and_the_values_that_the_footer_knows(tmp_path, written, value):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3] * 20}), path, write_page_checksum=True)
    start, content = pq.read_metadata(path).row_group(0).column(0).data_page_offset, path.read_bytes()
    path.write_bytes(content[:start] + content[start:].replace(written, value, 1))
    with pytest.raises(InputError, match=r"the header of a page of column id is broken"):
        verify_pages(path)


def test_a_file_without_checksums_is_taken_as_it_is_and_a_row_group_without_rows_has_no_pages(tmp_path):
    pq.write_table(pa.table({"value": [1, 2]}), tmp_path / "t.parquet")
    verify_pages(tmp_path / "t.parquet")
    with pq.ParquetWriter(tmp_path / "t.parquet", pa.schema({"a": pa.int64()}), write_page_checksum=True) as writer:
        for values in ([1, 2], [], [3]):
            writer.write_table(pa.table({"a": pa.array(values, pa.int64())}))
    assert pq.read_metadata(tmp_path / "t.parquet").num_row_groups == 3
    verify_pages(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "size is 0"), (b"PAR1 but not really", "magic bytes"), (b"PAR1\xff\xff\xff\x7fPAR1", "footer")],
)
def test_what_is_no_parquet_file_is_named(tmp_path, content, said):
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(InputError, match=rf"t\.parquet: not a readable Parquet file \(.*{said}"):
        verify_pages(tmp_path / "t.parquet")


def test_a_step_that_cannot_read_a_table_names_the_file(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(files, "OPENED", {})  # as at the start of a process
    tally = Tally(dataset="papers", shard="0.gz")
    tally.outcomes[KEPT] = 3
    for name in ("first", "second"):
        files.write_table(tmp_path / f"{name}.parquet", "ingest_report", tallies_as_table([tally]))
    spoil_page(tmp_path / "second.parquet", 3)
    command = ["cocite", "corpus", "account", str(tmp_path), "--malformed", "0", "--omissions", str(tmp_path / "o")]
    monkeypatch.setattr(sys, "argv", command)
    assert cli._run() == 1
    assert re.search(r"Error: .*/second\.parquet: not a readable Parquet file \(.*CRC", capfd.readouterr().err)


def test_an_error_that_no_table_causes_stays_an_error(tmp_path, monkeypatch):
    def fail():
        raise pa.ArrowInvalid("of another cause")

    monkeypatch.setattr(files, "OPENED", {})  # as at the start of a process
    files.write_omissions(tmp_path / "o.parquet", {"reason": 1})
    files.read_table(tmp_path / "o.parquet", "omissions")
    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(pa.ArrowInvalid, match="of another cause") as raised:
        cli._run()
    assert raised.value.__notes__ == [f"Tables that were opened: {tmp_path / 'o.parquet'}."]
