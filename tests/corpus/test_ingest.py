"""Ingesting: every generation of the release, everything counted, and bad input named by file and line."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cocite import files
from cocite.corpus.ingest import IngestSettings, ingest
from cocite.corpus.manifest import Shard
from cocite.errors import InputError

SHARD = "20260101_000000_00000_x.gz"


class Ingested:
    """What one run of `ingest` wrote."""

    def __init__(self, folder: Path) -> None:
        paths = sorted((folder / "out").glob("*.parquet"), key=lambda path: int(path.stem))
        self.buckets = [pq.read_table(path).to_pylist() for path in paths]
        self.rows = [row for bucket in self.buckets for row in bucket]
        self.omissions = {row["reason"]: row["count"] for row in pq.read_table(folder / "omissions").to_pylist()}

    def omitted(self, word: str) -> int:
        (count,) = (count for reason, count in self.omissions.items() if word in reason)
        return count


@pytest.fixture
def run(tmp_path):
    def run(dataset: str, *paths: Path, buckets: int = 1, malformed: float = 0.0) -> Ingested:
        settings = IngestSettings(dataset=dataset, buckets=buckets, malformed=malformed, memory_mb=500, threads=1)
        shards = [Shard(name=path.name, bytes=path.stat().st_size) for path in paths]
        folder = paths[0].parent if paths else tmp_path
        ingest(settings, folder, shards, output=tmp_path / "out", omissions=tmp_path / "omissions")
        return Ingested(tmp_path)

    return run


@pytest.fixture
def shard(tmp_path, write_shard):
    return lambda *lines: write_shard(tmp_path / SHARD, *lines)


def citation(citing, cited, influential=False, intents=None, **more) -> dict:
    return {"citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": influential, "intents": intents, **more}


def test_citations_of_both_generations_give_the_same_rows(run, tmp_path, write_shard):
    old = citation("1", "2", True, ["result", "background"], updated="2020-09-13T15:59:00.392Z")
    new = citation(1, 2, True, [["background"], None, ["result", "background"]], citationid=10)
    expected = [{"citing": 1, "cited": 2, "influential": True, "intents": ["background", "result"]}]
    assert run("citations", write_shard(tmp_path / "old" / SHARD, old)).rows == expected
    assert run("citations", write_shard(tmp_path / "new" / SHARD, new)).rows == expected


@pytest.mark.parametrize("intents", [None, [], [None], [[], None], ["other"], [["unknown"]]])
def test_a_citation_without_a_known_intent_has_an_empty_list(run, shard, intents):
    assert run("citations", shard(citation(1, 2, None, intents))).rows == [
        {"citing": 1, "cited": 2, "influential": False, "intents": []}
    ]


def test_a_citation_in_two_shards_counts_once_and_unites_its_copies(run, tmp_path, write_shard):
    first = write_shard(tmp_path / "a.gz", citation(1, 2, False, [["result"]]), citation(1, 2), citation(3, 2))
    second = write_shard(tmp_path / "b.gz", citation(1, 2, True, [["methodology"]]))
    ingested = run("citations", first, second)
    assert ingested.rows == [
        {"citing": 1, "cited": 2, "influential": True, "intents": ["methodology", "result"]},
        {"citing": 3, "cited": 2, "influential": False, "intents": []},
    ]
    assert ingested.omitted("copies") == 2


def test_citations_without_an_end_and_of_a_paper_by_itself_are_counted(run, shard):
    ingested = run("citations", shard(citation(None, 2), citation(1, None), citation(4, None), citation(5, 5)))
    assert ingested.rows == []
    assert (ingested.omitted("citing id"), ingested.omitted("cited id"), ingested.omitted("itself")) == (1, 2, 1)
    assert (ingested.omitted("copies"), ingested.omitted("unusable")) == (0, 0)


def test_rows_lie_in_the_bucket_of_their_id_and_empty_buckets_exist(run, shard):
    buckets = run("citations", shard(citation(4, 1), citation(8, 1), citation(6, 1)), buckets=4).buckets
    assert [[row["citing"] for row in bucket] for bucket in buckets] == [[4, 8], [], [6], []]


def test_a_paper_keeps_what_the_table_declares(run, shard):
    fields = [("B", "external"), ("A", "external"), ("B", "s2-fos-model"), (None, "external")]
    record = {
        "corpusid": 7,
        "externalids": {"DOI": "10.1/x", "MAG": "1"},
        "title": "On  shards",
        "year": 2001,
        "venue": "JCDL",
        "citationcount": 3,
        "referencecount": 4,
        "s2fieldsofstudy": [{"category": category, "source": source} for category, source in fields],
    }
    bare = {"corpusid": 8, "externalids": None, "title": " ", "year": None, "venue": "", "s2fieldsofstudy": None}
    ingested = run("papers", shard(record, bare))
    assert ingested.rows == [
        {
            "corpusid": 7,
            "title": "On  shards",
            "year": 2001,
            "venue": "JCDL",
            "fields": ["B", "A"],
            "doi": "10.1/x",
            "citation_count": 3,
            "reference_count": 4,
        },
        {"corpusid": 8, "fields": []}
        | dict.fromkeys(["title", "year", "venue", "doi", "citation_count", "reference_count"]),
    ]
    assert ingested.omitted("without title") == 1


def test_empty_abstracts_are_left_out_and_counted(run, shard):
    lines = [{"corpusid": n, "abstract": text} for n, text in enumerate(["", "text", None, " \n"], start=1)]
    ingested = run("abstracts", shard(*lines))
    assert ingested.rows == [{"corpusid": 2, "abstract": "text"}]
    assert ingested.omitted("empty") == 3


GOOD = {"corpusid": 1, "abstract": "text"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{broken", "is not JSON"),
        (b'{"corpusid": 2, "abstract": "cut', "is not JSON"),
        (b"[1, 2]", "not an object"),
        (b"17", "not an object"),
        (b'{"abstract": "text"}', "has no corpusid"),
        (b'{"corpusid": null, "abstract": "text"}', "corpusid is null"),
        (b'{"corpusid": "x7", "abstract": "text"}', 'corpusid is "x7", not a whole number'),
        (b'{"corpusid": [7], "abstract": "text"}', "not a whole number"),
        (b'{"corpusid": 2, "abstract": "\xff"}', "is not UTF-8"),
        (b'{"corpusid": 2, "abstract": "\\ud800"}', "is not valid Unicode"),
        (b'{"corpusid": 99999999999999999999, "abstract": "text"}', "not a whole number from 0 to 2⁶³ − 1"),
        (b'{"corpusid": 9223372036854775808, "abstract": "text"}', "not a whole number from 0"),
        (b'{"corpusid": -3, "abstract": "text"}', "corpusid is -3, not a whole number from 0"),
        (b'{"corpusid": 12.7, "abstract": "text"}', "corpusid is 12.7, not a whole number"),
        (b'{"corpusid": "1e3", "abstract": "text"}', 'corpusid is "1e3", not a whole number'),
        (b'{"corpusid": true, "abstract": "text"}', "corpusid is true, not a whole number"),
    ],
)
def test_an_unusable_line_is_named_by_file_number_and_fault(run, shard, line, reason):
    path = shard(GOOD, b"", GOOD, b" \t\r", line, GOOD, line)
    with pytest.raises(InputError, match=f"{path}, line 5: .*{reason}"):
        run("abstracts", path)
    assert not path.with_name("out").exists()
    assert not path.with_name("omissions").exists()


@pytest.mark.parametrize(
    ("record", "missing"), [({"citedcorpusid": 1}, "citingcorpusid"), ({"citingcorpusid": 1}, "citedcorpusid")]
)
def test_a_citation_that_lacks_the_key_of_an_id_is_unusable_unlike_one_where_it_is_null(run, shard, record, missing):
    path = shard(citation(1, None), record)
    with pytest.raises(InputError, match=f"line 2: has no {missing}"):
        run("citations", path)


def test_unusable_lines_below_the_allowed_share_are_counted(run, shard):
    ingested = run("abstracts", shard(*[GOOD] * 98, b"{broken", b"{}"), malformed=0.02)
    assert len(ingested.rows) == 98
    assert ingested.omitted("unusable") == 2


def test_more_unusable_lines_than_allowed_name_their_number_and_the_first(run, tmp_path, write_shard):
    first = write_shard(tmp_path / "a.gz", *[GOOD] * 50)
    second = write_shard(tmp_path / "b.gz", *[GOOD] * 47, b"{broken", b"{}", b"[]")
    with pytest.raises(InputError, match=f"3 of 100 lines .* 0.02.*{second}, line 48"):
        run("abstracts", first, second, malformed=0.02)


def test_a_truncated_shard_is_named(run, shard):
    path = shard(*[GOOD | {"corpusid": n} for n in range(1000)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=f"{path} is cut short"):
        run("abstracts", path)


def test_a_shard_that_is_no_gzip_file_is_named(run, tmp_path):
    path = tmp_path / SHARD
    path.write_text(json.dumps(GOOD))
    with pytest.raises(InputError, match=f"{path} .*no gzip file"):
        run("abstracts", path)


@pytest.mark.parametrize("content", [b"", gzip.compress(b""), gzip.compress(b"\n\n")])
def test_an_empty_shard_is_named(run, shard, tmp_path, content):
    full = shard(GOOD)
    empty = tmp_path / "empty.gz"
    empty.write_bytes(content)
    with pytest.raises(InputError, match=f"{empty} is empty"):
        run("abstracts", full, empty)


def test_a_shard_that_is_missing_or_of_another_size_than_listed_is_named(run, shard, tmp_path):
    path = shard(GOOD)
    settings = IngestSettings(dataset="abstracts", buckets=1, malformed=0, memory_mb=500, threads=1)
    for listed, reason in ((Shard(name="b.gz", bytes=9), "b.gz does not exist"), (Shard(name=SHARD, bytes=9), SHARD)):
        with pytest.raises(InputError, match=reason):
            ingest(settings, path.parent, [listed], output=tmp_path / "out", omissions=tmp_path / "omissions")


def test_a_part_without_shards_gives_empty_buckets(run):
    assert run("papers", buckets=2).buckets == [[], []]


def test_a_full_disk_leaves_no_output(run, shard, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    path = shard(GOOD)
    monkeypatch.setattr(files.pq.ParquetWriter, "write_table", full)
    with pytest.raises(InputError, match=rf"disk is full: {tmp_path} has [\d.]+ GB free"):
        run("abstracts", path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [SHARD]


@pytest.mark.parametrize("release", ["synergy", "hci"])
@pytest.mark.parametrize("dataset", ["papers", "abstracts", "citations"])
def test_a_real_release_has_the_counts_that_it_states(shared, run, release, dataset):
    folder = shared / "data" / "releases" / release
    ingested = run(dataset, *sorted((folder / dataset).glob("*.gz")), buckets=2)
    assert len(ingested.rows) == json.loads((folder / "release.json").read_text())[dataset]


def test_the_official_sample_of_2023_is_read_as_python_reads_it(shared, run):
    path = shared / "data" / "s2ag-samples" / "citations" / "citations-sample.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    known = [record for record in records if record["citedcorpusid"] is not None]
    ingested = run("citations", path)
    assert ingested.omitted("cited id") == 23 == len(records) - len(known)
    assert {(row["citing"], row["cited"]) for row in ingested.rows} == {
        (int(record["citingcorpusid"]), int(record["citedcorpusid"])) for record in known
    }
    expected = Counter(intent for record in known for intent in set(record["intents"] or []))
    assert Counter(intent for row in ingested.rows for intent in row["intents"]) == expected


@pytest.mark.parametrize("dataset", ["papers", "abstracts"])
def test_the_official_samples_of_papers_and_abstracts_are_read_whole(shared, run, dataset):
    path = shared / "data" / "s2ag-samples" / dataset / f"{dataset}-sample.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    key = {"papers": "title", "abstracts": "abstract"}[dataset]
    assert {row["corpusid"]: row[key] for row in run(dataset, path).rows} == {
        record["corpusid"]: record[key] for record in records
    }
