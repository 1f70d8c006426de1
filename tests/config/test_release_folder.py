"""Which files of a release in a folder are read, and which releases and earlier runs are refused before any job."""

import gzip
import json
import os

import pytest
import yaml
from tests.configurations import refused

from cocite.config.configuration import resolve
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


NO_FILE = r"papers/1\.gz is no file"
MISREAD = "has a brace in its name, or a character that cannot be printed"
UNREAD = r"papers/{} would not be read: a shard ends in \.gz, \.jsonl, \.ndjson or"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda papers: (papers / "1.gz").mkdir(), NO_FILE),
        (lambda papers: (papers / "1.gz").symlink_to("nowhere.gz"), NO_FILE),
        (lambda papers: (papers / "1.gz").symlink_to("1.gz"), NO_FILE),
        (lambda papers: os.mkfifo(papers / "1.gz"), NO_FILE),
        (lambda papers: (papers / "a\nb.gz").touch(), MISREAD),
        (lambda papers: (papers / "{part}.gz").touch(), MISREAD),
        *(
            (lambda papers, name=name: (papers / name).write_bytes(RECORD), UNREAD.format(name))
            for name in ("1.jsonl.zst", "1.bz2", "1.txt", "1.csv", "1.gz.part", "1", "1.parquet")
        ),
    ],
)
def test_what_is_no_file_that_would_be_read_is_named_and_not_waited_for(papers, make, said):
    make(papers)
    with pytest.raises(InputError, match=said):
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


def test_a_release_may_state_itself_behind_a_byte_order_mark_in_a_file_that_is_not_waited_for(tmp_path):
    assert stated_by(tmp_path) == {}
    (tmp_path / "release.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"release_id": "mine"}).encode())
    assert stated_by(tmp_path) == {"release_id": "mine"}
    (tmp_path / "release.json").unlink()
    os.mkfifo(tmp_path / "release.json")
    with pytest.raises(InputError, match=r"release\.json is no file that can be read"):
        stated_by(tmp_path)


def test_a_readme_that_is_not_utf8_is_kept_as_far_as_it_can_be_read(tmp_path):
    (tmp_path / "README.txt").write_bytes("Café, cite us".encode("latin-1"))
    assert readme_of(tmp_path) == "Caf\ufffd, cite us"


@pytest.mark.parametrize("name", ["mine-v1", "2024", "v1.0_final", "2026-02-30"])
def test_a_release_in_a_folder_has_any_name(of_release, release, name):
    (release / "release.json").unlink()
    assert resolve(of_release | {"release": name})["release"] == name


@pytest.mark.parametrize("name", ["my release", "../x", "", "-v1", "a" * 101, "mine\n"])
def test_a_name_that_no_release_can_have_is_refused_with_the_rule(of_release, release, name):
    (release / "release.json").unlink()
    message = refused(of_release, "release", name)
    assert "; a name of a release has up to 100 letters from a to z" in message
    assert "\n" not in message
    assert not set("[]{}*+") & set(message)


def test_a_release_in_the_results_folder_is_refused_because_a_run_removes_files_there(of_release, release):
    message = refused(of_release, "pathvars", {"results": str(release.parent)})
    assert "contains the release in" in message
    assert "a run removes files from its results" in message


def test_links_do_not_hide_that_results_and_release_are_one_folder(written, release, tmp_path_factory):
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(release)
    written["corpus"] = {"source": "directory", "path": str(link)}
    assert "is inside the release" in refused(written, "pathvars", {"results": str(release)})


def test_a_release_that_this_user_may_not_look_into_is_told_in_a_sentence(of_release, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    # Rights do not bind the user root, as whom tests may run.
    monkeypatch.setattr("cocite.corpus.sources.directory.find_shards", refuse)
    message = refused(of_release, "corpus.path", "release")
    assert message == "release/papers: Permission denied; grant this user the right to it."


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda release: (release / "papers/1.csv").touch(), "corpus.path: release/papers/1.csv would not be read"),
        (lambda release: (release / "abstracts/x_00000_abstracts.gz").unlink(), "lacks the dataset abstracts"),
        (lambda release: (release / "release.json").write_bytes(b"[]"), "release.json"),
        (lambda release: (release / "release.json").write_bytes(b"{"), "release.json"),
        (lambda release: (release / "release.json").write_bytes(b'{"release_id": "\xff"}'), "release.json"),
    ],
)
def test_a_release_with_a_file_that_nobody_would_read_or_without_what_it_needs_is_refused(
    of_release, release, make, said
):
    make(release)
    assert said in refused(of_release, "corpus.path", "release")


@pytest.mark.parametrize(
    "counts", [{"papers": -5}, {"papers": True, "citations": 9}, {"papers": None, "citations": "x"}]
)
def test_counts_that_are_none_say_nothing_about_k(of_release, release, counts):
    (release / "release.json").write_text(json.dumps(counts))
    assert resolve(of_release)["embeddings"]["citation-dot"]["neighbours"]["k"] == 400


@pytest.fixture
def base(tmp_path, monkeypatch):
    """What a run with two buckets leaves that kept its ingested rows."""
    corpus = tmp_path / "base" / "corpus"
    for table in ("papers", "citations", "ingested/papers", "ingested/abstracts", "ingested/citations"):
        (corpus / table).mkdir(parents=True, exist_ok=True)
        for bucket in range(2):
            (corpus / table / f"{bucket}.parquet").touch()
    (corpus / "manifest.json").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "base"


def test_a_base_is_an_earlier_run_that_kept_its_rows_in_as_many_buckets(written, base):
    del written["benchmarks"]["scirepeval"]
    s2 = {"source": "s2", "base": "base", "buckets": 2}
    assert resolve(written | {"corpus": s2})["corpus"]["base"] == "base"
    assert "base has 2 buckets, but corpus.buckets is 3" in refused(written, "corpus", s2 | {"buckets": 3})
    for file in (base / "corpus" / "ingested" / "abstracts").iterdir():
        file.unlink()
    assert "the run in base did not keep its ingested rows (no corpus/ingested/abstracts/" in refused(
        written, "corpus", s2
    )
    (base / "corpus" / "manifest.json").unlink()
    assert "base is not the results folder of an earlier run" in refused(written, "corpus", s2)


def test_a_base_is_another_folder_and_goes_with_the_source_that_has_diffs(written, base):
    assert "key corpus.base does not go with source: demo" in refused(written, "corpus.base", "base")
    written["corpus"] = {"source": "s2", "buckets": 2, "base": "base"}
    assert "corpus.base: base is this run's own results folder" in refused(written, "pathvars", {"results": str(base)})


def test_a_base_that_has_served_may_be_gone(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    del written["benchmarks"]["scirepeval"]
    written["corpus"] = {"source": "s2", "buckets": 2, "base": "base"}
    assert "base is not the results folder" in refused(written, "release", "2026-01-13")
    (tmp_path / "results" / "corpus").mkdir(parents=True)
    (tmp_path / "results" / "corpus" / "manifest.json").touch()
    assert resolve(written)["corpus"]["base"] == "base"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"contexts": {}}, "corpus.contexts does not go with source: openalex"),
        ({"path": "nowhere"}, "corpus.path: the folder nowhere does not exist"),
        ({"path": ".", "url": "http://host"}, "corpus.url and corpus.path do not go together"),
        ({"filters": {"from_year": 2020, "to_year": 2010}}, "from_year (2020) must not be after to_year (2010)"),
        ({"filters": {"field": ["Medicine"]}}, "corpus.filters.field"),
        ({"base": "base", "buckets": 3}, "base has 2 buckets, but corpus.buckets is 3"),
        ({"base": "base", "buckets": 2}, "base was made with corpus.filters: {"),
        (
            {"base": "base", "buckets": 2, "filters": {"from_year": 2000}},
            "base was made with corpus.match, which decides on MAG ids",
        ),
    ],
)
def test_what_a_copy_of_openalex_cannot_be_is_refused(written, base, keys, said):
    del written["benchmarks"]["scirepeval"]
    filters = {"from_year": 2000, "fields": [], "languages": [], "types": [], "retracted": False, "paratext": False}
    of_base = {"source": "openalex", "format": "parquet", "authors": False, "filters": filters, "match": "papers"}
    (base / "configuration.yaml").write_text(yaml.safe_dump({"corpus": of_base}))
    assert said in refused(written, "corpus", {"source": "openalex", **keys})
