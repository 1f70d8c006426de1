"""Which files of a release in a folder are read, and what is said of those that are not."""

import gzip
import json
import os

import pytest

from cocite.config.release_folder import find_shards, readme_of, stated_by, unpacked
from cocite.core.errors import InputError

RECORD = b'{"corpusid": 1}\n'


@pytest.fixture
def papers(tmp_path):
    """The folder of a dataset with one shard."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "0.gz").write_bytes(gzip.compress(RECORD))
    return folder


def names(folder):
    return [path.name for path in find_shards(folder)]


@pytest.mark.parametrize("name", ["1.gz", "1.GZ", "1.jsonl.Gz", "1.jsonl", "1.ndjson", "1.JSON", "licensed.jsonl"])
def test_gzipped_and_plain_files_are_shards_in_small_letters_and_capitals(papers, name):
    (papers / name).write_bytes(RECORD)
    assert names(papers) == ["0.gz", name]


@pytest.mark.parametrize(
    "name",
    [
        *("README", "README.txt", "readme.md", "LICENSE", "LICENCE.txt", "CITATION.cff", "ATTRIBUTION.md", "notes.md"),
        *("release.json", "manifest.json", "0.gz.md5", "0.gz.sha256", "SHA256SUMS", "checksums.txt", "_SUCCESS"),
        *(".DS_Store", "._0.gz", ".0.gz.Xy12", "Thumbs.db"),
    ],
)
def test_what_is_known_to_hold_no_records_may_lie_beside_them(papers, name):
    (papers / name).write_bytes(b"\xff\xfe")
    assert names(papers) == ["0.gz"]


LEADS_NOWHERE = r"papers/1\.gz is a link that leads nowhere"
MISREAD = "has a brace in its name, or a character that cannot be printed"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda papers: (papers / "more.gz").mkdir(), r"papers/more\.gz is a folder, which is not searched"),
        (lambda papers: (papers / "1.gz").symlink_to("nowhere.gz"), LEADS_NOWHERE),
        (lambda papers: (papers / "1.gz").symlink_to("1.gz"), LEADS_NOWHERE),
        (lambda papers: os.mkfifo(papers / "1.gz"), r"papers/1\.gz is a pipe or a device"),
        (lambda papers: (papers / "a\nb.gz").touch(), MISREAD),
        (lambda papers: (papers / "{part}.gz").touch(), MISREAD),
    ],
)
def test_what_is_no_file_that_can_be_read_is_named_and_not_waited_for(papers, make, said):
    make(papers)
    with pytest.raises(InputError, match=said):
        find_shards(papers)


@pytest.mark.parametrize("name", ["1.jsonl.zst", "1.bz2", "1.txt", "1.csv", "1.gz.part", "1", "1.parquet"])
def test_a_file_that_would_not_be_read_is_named_with_what_would_be(papers, name):
    (papers / name).write_bytes(RECORD)
    with pytest.raises(
        InputError, match=rf"papers/{name} would not be read: a shard ends in \.gz, \.jsonl, \.ndjson or"
    ):
        find_shards(papers)


def test_a_link_to_a_shard_is_one(papers, tmp_path):
    (papers / "0.gz").rename(tmp_path / "elsewhere")
    (papers / "0.gz").symlink_to(tmp_path / "elsewhere")
    assert names(papers) == ["0.gz"]


def test_a_shard_that_may_not_be_read_is_named(papers, monkeypatch):
    # Rights do not bind the user root, as whom tests may run.
    monkeypatch.setattr(os, "access", lambda path, mode: path == papers)
    with pytest.raises(InputError, match=r"papers/0\.gz may not be read by this user"):
        find_shards(papers)


@pytest.mark.parametrize(
    ("name", "content"), [("1.GZ", gzip.compress(RECORD)), ("1.jsonl", RECORD), ("1.jsonl", gzip.compress(RECORD))]
)
def test_a_shard_is_unpacked_by_its_name_or_its_first_bytes(papers, name, content):
    (papers / name).write_bytes(content)
    with unpacked(papers / name) as file:
        assert file.read() == RECORD


def test_a_release_may_state_itself_behind_a_byte_order_mark(tmp_path):
    assert stated_by(tmp_path) == {}
    (tmp_path / "release.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"release_id": "mine"}).encode())
    assert stated_by(tmp_path) == {"release_id": "mine"}


def test_a_statement_that_is_no_file_is_named_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "release.json")
    with pytest.raises(InputError, match=r"release\.json is no file that can be read"):
        stated_by(tmp_path)


def test_a_readme_that_is_not_utf8_is_kept_as_far_as_it_can_be_read(tmp_path):
    (tmp_path / "README.txt").write_bytes("Café, cite us".encode("latin-1"))
    assert readme_of(tmp_path) == "Caf\ufffd, cite us"
