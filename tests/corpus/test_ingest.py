"""Ingesting: every generation of the release, everything counted, and bad input named by file and line."""

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cocite.corpus.ingest import citations, unpacking
from cocite.corpus.ingest.accounting import account
from cocite.corpus.ingest.shards import IngestSettings, ingest
from cocite.corpus.release.manifest import Shard
from cocite.ground.errors import InputError
from cocite.tables import files

SHARD = "20260101_000000_00000_x.gz"


def settings(dataset: str, **options) -> IngestSettings:
    usual = {"buckets": 1, "keep_ids": False, "memory_mb": 500, "threads": 1}
    return IngestSettings(dataset=dataset, **(usual | options))


class Ingested:
    """What one run of `ingest` wrote."""

    def __init__(self, folder: Path) -> None:
        self.rows = pq.read_table(folder / "out").to_pylist()
        self.buckets = [row.pop("bucket") for row in self.rows]
        self.report = pq.read_table(folder / "report").to_pylist()

    def lines(self, word: str) -> int:
        """Lines with an outcome that holds the word, over all shards."""
        return sum(row["lines"] for row in self.report if word in row["outcome"])


@pytest.fixture
def run(tmp_path):
    def run(dataset: str, *paths: Path, malformed: float = 0.0, **options) -> Ingested:
        shards = [Shard(name=path.name, bytes=path.stat().st_size) for path in paths]
        folder = paths[0].parent if paths else tmp_path
        ingest(settings(dataset, **options), folder, shards, output=tmp_path / "out", report=tmp_path / "report")
        account([tmp_path / "report"], malformed=malformed, omissions=tmp_path / "omissions")
        return Ingested(tmp_path)

    return run


@pytest.fixture
def shard(tmp_path, write_shard):
    return lambda *lines: write_shard(tmp_path / SHARD, *lines)


def citation(citing, cited, influential=False, intents=None, **more) -> dict:
    return {"citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": influential, "intents": intents, **more}


def row(citing, cited, *traits, citationid=None) -> dict:
    bits = {"background": 1, "methodology": 2, "result": 4, "influential": 8}
    return {"citationid": citationid, "citing": citing, "cited": cited, "traits": sum(bits[trait] for trait in traits)}


def test_citations_of_both_generations_give_the_same_rows(run, tmp_path, write_shard):
    old = citation("1", "2", True, ["result", "background"], updated="2020-09-13T15:59:00.392Z")
    new = citation(1, 2, True, [["background"], None, ["result", "background"]], citationid=10)
    expected = [row(1, 2, "background", "result", "influential")]
    assert run("citations", write_shard(tmp_path / "old" / SHARD, old)).rows == expected
    assert run("citations", write_shard(tmp_path / "new" / SHARD, new)).rows == expected


def test_ids_of_citations_are_kept_where_updates_need_them(run, shard):
    path = shard(citation(1, 2, citationid=10), citation(1, 2), citation(3, 2, citationid="11"))
    rows = [row(1, 2, citationid=10), row(1, 2), row(3, 2, citationid=11)]
    assert run("citations", path, keep_ids=True).rows == rows
    assert run("citations", path, keep_ids=False).rows == [row(1, 2), row(1, 2), row(3, 2)]


@pytest.mark.parametrize("intents", [None, [], [None], [[], None], ["other"], [["unknown"]], ["results"], ["back"]])
def test_a_citation_without_a_known_intent_has_none(run, shard, intents):
    assert run("citations", shard(citation(1, 2, None, intents))).rows == [row(1, 2)]


def test_all_copies_of_a_citation_are_kept_for_the_merge(run, tmp_path, write_shard):
    first = write_shard(tmp_path / "a.gz", citation(1, 2, False, [["result"]]), citation(1, 2), citation(3, 2))
    second = write_shard(tmp_path / "b.gz", citation(1, 2, True, [["methodology"]]))
    ingested = run("citations", first, second)
    assert ingested.rows == [row(1, 2, "result"), row(1, 2), row(3, 2), row(1, 2, "methodology", "influential")]
    assert [(line["shard"], line["lines"]) for line in ingested.report if line["outcome"] == "kept"] == [
        ("a.gz", 3),
        ("b.gz", 1),
    ]


def test_citations_without_an_end_and_of_a_paper_by_itself_are_counted(run, shard):
    ingested = run("citations", shard(citation(None, 2), citation(1, None), citation(4, None), citation(5, 5), b""))
    assert ingested.rows == []
    assert (ingested.lines("citing id"), ingested.lines("cited id"), ingested.lines("itself")) == (1, 2, 1)
    assert (ingested.lines("kept"), ingested.lines("blank"), ingested.lines("")) == (0, 1, 5)


@pytest.mark.parametrize("dataset", ["citations", "papers"])
def test_rows_lie_together_by_the_bucket_of_their_id(run, shard, dataset):
    lines = [{"corpusid": n, "citingcorpusid": n, "citedcorpusid": 100} for n in (6, 4, 7, 8, 10)]
    ingested = run(dataset, shard(*lines), buckets=4)
    ids = [row["citing" if dataset == "citations" else "corpusid"] for row in ingested.rows]
    assert list(zip(ingested.buckets, ids, strict=True)) == [(0, 4), (0, 8), (2, 6), (2, 10), (3, 7)]


def test_rows_beyond_what_memory_takes_are_cut_by_bucket_in_several_turns(run, shard, monkeypatch):
    monkeypatch.setattr(citations, "ROWS_IN_MEMORY", 3)
    monkeypatch.setattr(citations, "ODD_LINES_AT_ONCE", 2)
    odd = [json.dumps(citation(n, 100)).replace('"citing', '"\\u0063iting').encode() for n in range(8)]
    ingested = run("citations", shard(*(citation(n, 100) for n in range(8)), *odd), buckets=2)
    assert sorted(row["citing"] for row in ingested.rows) == sorted([*range(8), *range(8)])
    assert ingested.lines("kept") == 16
    assert ingested.buckets == [row["citing"] % 2 for row in ingested.rows]


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


def test_text_of_white_space_of_any_kind_is_none_and_a_field_without_a_name_is_left_out(run, shard):
    fields = [{"category": "", "source": "external"}, {"category": "A", "source": "external"}]
    blank = {"corpusid": 1, "title": "\u3000\xa0", "venue": "\u2003\x85\v", "s2fieldsofstudy": fields}
    (paper, spaced) = run("papers", shard(blank, blank | {"title": "\u3000a"})).rows
    assert (paper["title"], paper["venue"], paper["fields"]) == (None, None, ["A"])
    assert spaced["title"] == "\u3000a"


def test_a_number_that_its_column_cannot_hold_is_null(run, shard):
    record = {"corpusid": 1, "year": 1 << 15, "citationcount": 1 << 31, "referencecount": (1 << 31) - 1}
    (paper,) = run("papers", shard(record)).rows
    assert (paper["year"], paper["citation_count"], paper["reference_count"]) == (None, None, 2147483647)


def test_empty_abstracts_are_left_out_and_counted(run, shard):
    texts = ["", "text", None, " \n", "\u3000\u2028"]
    ingested = run("abstracts", shard(*({"corpusid": n, "abstract": text} for n, text in enumerate(texts, start=1))))
    assert ingested.rows == [{"corpusid": 2, "abstract": "text"}]
    assert (ingested.lines("empty"), ingested.lines("")) == (4, 5)


GOOD = {"corpusid": 1, "abstract": "text"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{broken", "is not JSON"),
        (b'{"corpusid": 2, "abstract": "cut', "is not JSON"),
        (b"[1, 2]", "is a list, not an object; a line has one record"),
        (b"17", "is a single value, not an object"),
        (b"\0\0\0\0", "is not JSON"),
        (b'{"corpusid": 2, "abstract": ["text"]}', 'abstract is \\["text"\\], not text'),
        (b'{"corpusid": 2, "abstract": {"p": "text"}}', 'abstract is {"p": "text"}, not text'),
        (b'{"corpusid": ' + b"9" * 43 + b', "abstract": "text"}', "corpusid is 9{43}, not a whole number from 0"),
        (b'{"corpusid": "' + b"9" * 5000 + b'", "abstract": "text"}', 'corpusid is "9{59}…, not a whole number'),
        (b'{"abstract": "text"}', "has no corpusid"),
        (b'{"corpusid": null, "abstract": "text"}', "corpusid is null"),
        (b'{"corpusid": "x7", "abstract": "text"}', 'corpusid is "x7", not a whole number'),
        (b'{"corpusid": [7], "abstract": "text"}', "not a whole number"),
        (b'{"corpusid": 2, "abstract": "\xff"}', "is not UTF-8"),
        (b'{"corpusid": 2, "abstract": "\\ud800"}', "holds half of a surrogate pair"),
        (b'{"corpusid": 99999999999999999999, "abstract": "text"}', "not a whole number from 0 to 2⁶³ − 1"),
        (b'{"corpusid": 9223372036854775808, "abstract": "text"}', "not a whole number from 0"),
        (b'{"corpusid": "9223372036854775808", "abstract": "text"}', "not a whole number from 0"),
        (b'{"corpusid": ' + b"7" * 43 + b', "abstract": "text"}', "corpusid is 7{43}, not a whole number from 0"),
        (b'{"corpusid": "' + b"0" * 43 + b'7", "abstract": "text"}', 'corpusid is "0{43}7", not a whole number'),
        (b'{"corpusid": -3, "abstract": "text"}', "corpusid is -3, not a whole number from 0"),
        (b'{"corpusid": 12.7, "abstract": "text"}', "corpusid is 12.7, not a whole number"),
        (b'{"corpusid": "1e3", "abstract": "text"}', 'corpusid is "1e3", not a whole number'),
        (b'{"corpusid": true, "abstract": "text"}', "corpusid is true, not a whole number"),
    ],
)
def test_an_unusable_line_is_named_by_file_number_and_fault(run, shard, line, reason):
    path = shard(GOOD, b"", GOOD, b" \t\r", line, GOOD, line)
    with pytest.raises(InputError, match=f"{path.name}, line 5: .*{reason}"):
        run("abstracts", path)


@pytest.mark.parametrize(
    ("record", "missing"), [({"citedcorpusid": 1}, "citingcorpusid"), ({"citingcorpusid": 1}, "citedcorpusid")]
)
def test_a_citation_that_lacks_the_key_of_an_id_is_unusable_unlike_one_where_it_is_null(run, shard, record, missing):
    path = shard(citation(1, None), record)
    with pytest.raises(InputError, match=f"line 2: has no {missing}"):
        run("citations", path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{broken", "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["cut', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2}}', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2} {', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2,}', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2, "intents": [["result"}', "is not JSON"),
        (b"[1, 2]", "not an object"),
        (b'{"citingcorpusid": 1.5, "citedcorpusid": 2}', "citingcorpusid is 1.5, not a whole number"),
        (b'{"citingcorpusid": 1, "citedcorpusid": -2}', "citedcorpusid is -2, not a whole number"),
        (b'{"citingcorpusid": 1, "citedcorpusid": "2x"}', 'citedcorpusid is "2x", not a whole number'),
        (b'{"citingcorpusid": 1, "citedcorpusid": 99999999999999999999}', "not a whole number from 0 to"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 9223372036854775808}', "not a whole number from 0 to"),
        (b'{"citingcorpusid": 1, "citedcorpusid": "18446744073709551617"}', "not a whole number from 0 to"),
        (b'{"citingcorpusid": ' + b"7" * 43 + b', "citedcorpusid": 2}', "citingcorpusid is 7{43}, not a whole number"),
        (b'{"citingcorpusid": "' + b"0" * 43 + b'7", "citedcorpusid": 2}', 'is "0{43}7", not a whole number'),
        (b'{"citingcorpusid": 01, "citedcorpusid": 2}', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": true}', "citedcorpusid is true, not a whole number"),
    ],
)
def test_an_unusable_citation_is_named_by_file_number_and_fault(run, shard, line, reason):
    path = shard(citation(1, 2), b"", citation(None, 2), citation(5, 5), line, citation(1, 2), line)
    with pytest.raises(InputError, match=f"{path.name}, line 5: .*{reason}"):
        run("citations", path)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"\\u0063itingcorpusid": 5, "citedcorpusid": 2}', row(5, 2)),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2, "intents": ["b\\u0061ckground"]}', row(1, 2, "background")),
        (b'{"citingcorpusid" : 1, "citedcorpusid" :2, "isinfluential" : true}', row(1, 2, "influential")),
        (b' {"citingcorpusid":"1","citedcorpusid":"2"}\r', row(1, 2)),
        (b'{"citedcorpusid": 2, "x": {"y": ["}", {"citingcorpusid": 9}]}, "citingcorpusid": 1}', row(1, 2)),
    ],
)
def test_a_citation_that_is_written_in_an_unusual_way_is_the_same_citation(run, shard, line, expected):
    assert run("citations", shard(line)).rows == [expected]


LARGEST = 2**63 - 1


@pytest.mark.parametrize("paper", [2**31, 2**53 + 1, 10**18, LARGEST])
def test_ids_of_63_bits_are_read_exactly_and_cut_by_bucket(run, shard, paper):
    ingested = run("citations", shard(citation(paper, 1), citation(2, str(paper))), buckets=3)
    found = sorted(zip(ingested.buckets, ingested.rows, strict=True), key=lambda kept: kept[1]["citing"])
    assert found == [(2, row(2, paper)), (paper % 3, row(paper, 1))]
    ingested = run("abstracts", shard({"corpusid": str(paper), "abstract": "text"}), buckets=3)
    assert (ingested.buckets, ingested.rows) == ([paper % 3], [{"corpusid": paper, "abstract": "text"}])


def test_ids_of_19_digits_are_not_left_to_the_slow_parser(run, shard, monkeypatch):
    monkeypatch.setattr("cocite.corpus.ingest.citations.parse_record", None)
    ingested = run("citations", shard(citation(LARGEST, str(LARGEST - 1), citationid=10**18)), keep_ids=True)
    assert ingested.rows == [row(LARGEST, LARGEST - 1, citationid=10**18)]


@pytest.mark.parametrize("dataset", ["citations", "abstracts"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(run, shard, dataset):
    record = citation(1, 2) | {"corpusid": 1, "abstract": "text"}
    assert len(run(dataset, shard(b"\xef\xbb\xbf" + json.dumps(record).encode())).rows) == 1


def test_malformed_lines_that_may_be_are_counted_and_the_first_is_remembered(run, shard):
    ingested = run("abstracts", shard(*[GOOD] * 98, b"{broken", b"{}"), malformed=0.02)
    assert len(ingested.rows) == 98
    (malformed,) = (row for row in ingested.report if "malformed" in row["outcome"])
    assert (malformed["lines"], malformed["first_line"]) == (2, 99)
    assert malformed["fault"].startswith("is not JSON")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_line_and_a_last_one_without_newline_are_read(run, tmp_path, threads):
    long = json.dumps({"corpusid": 1, "abstract": "x" * 9_000_000})
    path = tmp_path / SHARD
    path.write_bytes(gzip.compress(f'{long}\n{{"corpusid": 2, "abstract": "y"}}'.encode()))
    rows = run("abstracts", path, threads=threads).rows
    assert sorted(len(row["abstract"]) for row in rows) == [1, 9_000_000]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_shard_of_several_gzip_members_is_read_whole(run, tmp_path, threads):
    path = tmp_path / SHARD
    members = [json.dumps(citation(n, 100)).encode() + b"\n" for n in range(3)]
    path.write_bytes(b"".join(map(gzip.compress, members)))
    assert [row["citing"] for row in run("citations", path, threads=threads).rows] == [0, 1, 2]


@pytest.mark.parametrize("dataset", ["citations", "papers"])
def test_plain_shards_give_the_rows_of_gzipped_ones(run, tmp_path, write_shard, dataset):
    lines = [citation(n, n + 1) | {"corpusid": n, "title": f"Paper {n}"} for n in range(20)]
    packed = write_shard(tmp_path / "packed" / SHARD, *lines)
    capital = write_shard(tmp_path / "capital" / "0.GZ", *lines)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "0.jsonl").write_bytes(gzip.decompress(packed.read_bytes()))
    expected = run(dataset, packed).rows
    assert len(expected) == 20
    assert run(dataset, capital).rows == run(dataset, tmp_path / "plain" / "0.jsonl").rows == expected


def test_a_text_may_begin_like_a_list_or_an_object(run, shard):
    titles = ["[Review] On shards", "{braces}", "[1]", '["a"]']
    rows = run("papers", shard(*({"corpusid": n, "title": title} for n, title in enumerate(titles)))).rows
    assert [row["title"] for row in rows] == titles


def test_a_title_that_is_a_list_is_no_text(run, shard):
    with pytest.raises(InputError, match=r'line 2: title is \["On shards"\], not text'):
        run("papers", shard({"corpusid": 1, "title": "x"}, {"corpusid": 2, "title": ["On shards"]}))


@pytest.mark.parametrize("dataset", ["citations", "abstracts"])
def test_a_line_that_no_record_fills_is_named_before_it_fills_the_memory(run, tmp_path, monkeypatch, dataset):
    monkeypatch.setattr(unpacking, "LONGEST_LINE", 5_000_000)
    record = citation(1, 2) | {"corpusid": 1, "abstract": "text"}
    longest = json.dumps(record | {"x": "y" * 4_500_000})
    path = tmp_path / SHARD
    path.write_text("\n".join([longest, json.dumps(record), json.dumps(record | {"x": "y" * 9_000_000})]))
    path = path.rename(tmp_path / "0.jsonl")
    with pytest.raises(InputError, match=r"0\.jsonl, line 3: is longer than 5 MB; a shard has one record a line"):
        run(dataset, path)


def test_long_lines_are_read_a_few_at_a_time_within_the_memory(run, tmp_path):
    path = tmp_path / "0.jsonl"
    with path.open("w") as file:
        for number in range(6):
            file.write(json.dumps({"corpusid": number, "title": "t", "x": "y" * 30_000_000}) + "\n")
    assert len(run("papers", path, memory_mb=1500, threads=2).rows) == 6


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
    for listed, reason in ((Shard(name="b.gz", bytes=9), "b.gz does not exist"), (Shard(name=SHARD, bytes=9), SHARD)):
        with pytest.raises(InputError, match=reason):
            ingest(settings("abstracts"), path.parent, [listed], output=tmp_path / "out", report=tmp_path / "report")


@pytest.mark.parametrize("dataset", ["papers", "abstracts", "citations"])
def test_a_job_without_shards_gives_an_empty_table(run, dataset):
    ingested = run(dataset)
    assert ingested.rows == ingested.report == []


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
    assert len(ingested.rows) == ingested.lines("kept") == json.loads((folder / "release.json").read_text())[dataset]
    assert ingested.lines("") == sum(
        len(gzip.decompress(path.read_bytes()).splitlines()) for path in (folder / dataset).glob("*.gz")
    )


def test_the_official_sample_of_2023_is_read_as_python_reads_it(shared, run):
    path = shared / "data" / "s2ag-samples" / "citations" / "citations-sample.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    known = [record for record in records if record["citedcorpusid"] is not None]
    ingested = run("citations", path)
    assert (ingested.lines("cited id"), ingested.lines("kept"), ingested.lines("")) == (23, 77, 100)
    assert ingested.rows == [
        row(
            int(record["citingcorpusid"]),
            int(record["citedcorpusid"]),
            *set(record["intents"] or []),
            *["influential"] * record["isinfluential"],
        )
        for record in known
    ]


@pytest.mark.parametrize("dataset", ["papers", "abstracts"])
def test_the_official_samples_of_papers_and_abstracts_are_read_whole(shared, run, dataset):
    path = shared / "data" / "s2ag-samples" / dataset / f"{dataset}-sample.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    key = {"papers": "title", "abstracts": "abstract"}[dataset]
    assert {row["corpusid"]: row[key] for row in run(dataset, path).rows} == {
        record["corpusid"]: record[key] for record in records
    }
