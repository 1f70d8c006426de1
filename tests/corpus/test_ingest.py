"""Ingesting: every generation of the release gives the same rows, and every line is counted."""

import gzip
import json
from datetime import date
from unittest.mock import Mock

import pytest
from tests.corpus.made import SHARD, citation, merged, row

from cocite.core.errors import InputError
from cocite.core.tables import files
from cocite.corpus.ingest import citations

ALL = row(1, 2, "background", "result", "influential")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (citation("1", "2", True, ["result", "background"], updated="2020-09-13T15:59:00.392Z"), ALL),
        (citation(1, 2, True, [["background"], None, ["result", "background"]], citationid=10), ALL),
        *((citation(1, 2, None, intents), row(1, 2)) for intents in (None, [], [None], [[], None])),
        *(
            (citation(1, 2, None, intents), row(1, 2, "unknown"))
            for intents in (["other"], [["unknown"]], ["results"], ["back"], [None, ["Result"]])
        ),
        (b'{"\\u0063itingcorpusid": 5, "citedcorpusid": 2}', row(5, 2)),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2, "intents": ["b\\u0061ckground"]}', row(1, 2, "background")),
        (b'{"citingcorpusid" : 1, "citedcorpusid" :2, "isinfluential" : true}', row(1, 2, "influential")),
        (b' {"citingcorpusid":"1","citedcorpusid":"2"}\r', row(1, 2)),
        (b'\xef\xbb\xbf{"citingcorpusid":1,"citedcorpusid":2}', row(1, 2)),
        (b'{"citedcorpusid": 2, "x": {"y": ["}", {"citingcorpusid": 9}]}, "citingcorpusid": 1}', row(1, 2)),
    ],
)
def test_a_citation_is_the_same_however_it_is_written(read, shard, line, expected):
    assert read("citations", shard(line)).rows == [expected]


def test_ids_of_citations_are_kept_where_updates_need_them(read, shard):
    path = shard(citation(1, 2, citationid=10), citation(1, 2), citation(3, 2, citationid="11"))
    rows = [row(1, 2, citationid=10), row(1, 2), row(3, 2, citationid=11)]
    assert read("citations", path, keep_ids=True).rows == rows
    assert read("citations", path, keep_ids=False).rows == [row(1, 2), row(1, 2), row(3, 2)]


def test_all_copies_of_a_citation_are_kept_for_the_merge(read, tmp_path, write_shard):
    first = write_shard(tmp_path / "a.gz", citation(1, 2, False, [["result"]]), citation(1, 2), citation(3, 2))
    second = write_shard(tmp_path / "b.gz", citation(1, 2, True, [["methodology"]]))
    ingested = read("citations", first, second)
    assert ingested.rows == [row(1, 2, "result"), row(1, 2), row(3, 2), row(1, 2, "methodology", "influential")]
    kept = {line["shard"]: line["lines"] for line in ingested.report if line["outcome"] == "kept"}
    assert kept == {"a.gz": 3, "b.gz": 1}


def test_citations_without_an_end_and_of_a_paper_by_itself_are_counted(read, shard):
    ingested = read("citations", shard(citation(None, 2), citation(1, None), citation(4, None), citation(5, 5), b""))
    assert ingested.rows == []
    assert (ingested.lines("citing id"), ingested.lines("cited id"), ingested.lines("itself")) == (1, 2, 1)
    assert (ingested.lines("kept"), ingested.lines("blank"), ingested.lines("")) == (0, 1, 5)


@pytest.mark.parametrize("dataset", ["citations", "papers"])
def test_rows_lie_together_by_the_bucket_of_their_id(read, shard, dataset):
    lines = [{"corpusid": n, "citingcorpusid": n, "citedcorpusid": 100} for n in (6, 4, 7, 8, 10)]
    ingested = read(dataset, shard(*lines), buckets=4)
    ids = [row["citing" if dataset == "citations" else "corpusid"] for row in ingested.rows]
    assert list(zip(ingested.buckets, ids, strict=True)) == [(0, 4), (0, 8), (2, 6), (2, 10), (3, 7)]


def test_rows_beyond_what_memory_takes_are_cut_by_bucket_in_several_turns(read, shard, monkeypatch):
    monkeypatch.setattr(citations, "ROWS_IN_MEMORY", 3)
    monkeypatch.setattr(citations, "ODD_LINES_AT_ONCE", 2)
    odd = [json.dumps(citation(n, 100)).replace('"citing', '"\\u0063iting').encode() for n in range(8)]
    ingested = read("citations", shard(*(citation(n, 100) for n in range(8)), *odd), buckets=2)
    assert sorted(row["citing"] for row in ingested.rows) == sorted([*range(8), *range(8)])
    assert ingested.lines("kept") == 16
    assert ingested.buckets == [row["citing"] % 2 for row in ingested.rows]


NOTHING = dict.fromkeys(["title", "year", "date", "venue", "doi", "citation_count", "reference_count"])


def test_a_paper_keeps_what_the_table_declares(read, shard):
    fields = [{"category": name, "source": "external"} for name in ("B", "A", "B", None, "")]
    record = {"corpusid": 7, "externalids": {"DOI": "10.1/x", "MAG": "1"}, "title": "\u3000On  shards", "year": 2001}
    record |= {"publicationdate": "2001-02-03", "venue": "JCDL", "citationcount": 3, "referencecount": 2**31 - 1}
    record |= {"s2fieldsofstudy": fields, "authors": AUTHORS}
    nulls = dict.fromkeys(("externalids", "year", "publicationdate", "s2fieldsofstudy"))
    bare = {"corpusid": 8, "title": " ", "venue": "", **nulls}
    blank = {"corpusid": 9, "title": "\u3000\xa0", "venue": "\u2003\x85\v", "year": 1 << 15, "citationcount": 1 << 31}
    kept = {"title": "\u3000On  shards", "year": 2001, "venue": "JCDL", "date": date(2001, 2, 3), "doi": "10.1/x"}
    kept |= {"citation_count": 3, "reference_count": 2**31 - 1}
    assert read("papers", shard(record, bare, blank | {"publicationdate": "2001-02-30"})).rows == [
        {"corpusid": 7, "fields": ["B", "A"]} | kept,
        {"corpusid": 8, "fields": []} | NOTHING,
        {"corpusid": 9, "fields": []} | NOTHING,
    ]


def test_empty_abstracts_are_left_out_and_counted(read, shard):
    texts = ["", "text", None, " \n", "\u3000\u2028"]
    ingested = read("abstracts", shard(*({"corpusid": n, "abstract": text} for n, text in enumerate(texts, start=1))))
    assert ingested.rows == [{"corpusid": 2, "abstract": "text"}]
    assert (ingested.lines("empty"), ingested.lines("")) == (4, 5)


LARGEST = 2**63 - 1


@pytest.mark.parametrize("paper", [2**31, 2**53 + 1, 10**18, LARGEST])
def test_ids_of_63_bits_are_read_exactly_cut_by_bucket_and_not_left_to_the_slow_parser(read, shard, monkeypatch, paper):
    with monkeypatch.context() as patched:
        patched.setattr(citations, "parse_record", None)
        lines = [citation(paper, 1, citationid=paper), citation(2, str(paper))]
        ingested = read("citations", shard(*lines), buckets=3, keep_ids=True)
    found = sorted(zip(ingested.buckets, ingested.rows, strict=True), key=lambda kept: kept[1]["citing"])
    assert found == [(2, row(2, paper)), (paper % 3, row(paper, 1, citationid=paper))]
    ingested = read("abstracts", shard({"corpusid": str(paper), "abstract": "text"}), buckets=3)
    assert (ingested.buckets, ingested.rows) == ([paper % 3], [{"corpusid": paper, "abstract": "text"}])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_byte_order_mark_a_long_line_and_a_last_one_without_newline_are_read(read, tmp_path, threads):
    lines = [json.dumps({"corpusid": n, "abstract": "x" * length}) for n, length in enumerate((9, 9_000_000, 1))]
    (tmp_path / SHARD).write_bytes(gzip.compress(b"\xef\xbb\xbf" + "\n".join(lines).encode()))
    rows = read("abstracts", tmp_path / SHARD, threads=threads).rows
    assert sorted(len(row["abstract"]) for row in rows) == [1, 9, 9_000_000]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dataset", ["citations", "papers"])
def test_plain_shards_and_those_of_several_gzip_members_give_the_rows_of_usual_ones(read, tmp_path, dataset, threads):
    lines = [
        json.dumps(citation(n, n + 1) | {"corpusid": n, "title": f"Paper {n}"}).encode() + b"\n" for n in range(20)
    ]
    packed, members = gzip.compress(b"".join(lines)), b"".join(map(gzip.compress, lines))
    found = {}
    for name, content in {SHARD: packed, "0.GZ": packed, "members.gz": members, "0.jsonl": b"".join(lines)}.items():
        (tmp_path / name).write_bytes(content)
        found[name] = read(dataset, tmp_path / name, threads=threads).rows
    key = "citing" if dataset == "citations" else "corpusid"
    assert [row[key] for row in found[SHARD]] == [*range(20)]
    assert all(rows == found[SHARD] for rows in found.values())


def test_a_text_may_begin_like_a_list_or_an_object(read, shard):
    titles = ["[Review] On shards", "{braces}", "[1]", '["a"]']
    rows = read("papers", shard(*({"corpusid": n, "title": title} for n, title in enumerate(titles)))).rows
    assert [row["title"] for row in rows] == titles


def test_a_full_disk_leaves_no_output(read, shard, tmp_path, monkeypatch):
    path = shard({"corpusid": 1, "abstract": "text"})
    monkeypatch.setattr(files.pq.ParquetWriter, "write_table", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(InputError, match=rf"disk is full: {tmp_path} has [\d.]+ GB free"):
        read("abstracts", path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [SHARD]


@pytest.mark.parametrize("release", ["synergy", "hci"])
@pytest.mark.parametrize("dataset", ["papers", "abstracts", "citations"])
def test_a_real_release_has_the_counts_that_it_states(shared, read, release, dataset):
    folder = shared / "data" / "releases" / release
    ingested = read(dataset, *sorted((folder / dataset).glob("*.gz")), buckets=2)
    assert len(ingested.rows) == ingested.lines("kept") == json.loads((folder / "release.json").read_text())[dataset]
    assert ingested.lines("") == sum(
        len(gzip.decompress(path.read_bytes()).splitlines()) for path in (folder / dataset).glob("*.gz")
    )


AUTHORS = [{"authorId": "1", "name": "Ada Abel"}, {"authorId": None, "name": "Mira  Okoye"}]
NAMELESS = [{"authorId": "2", "name": None}, {"authorId": "3", "name": " "}]


@pytest.mark.parametrize(
    ("authors", "expected"),
    [
        (AUTHORS, ["Ada Abel", "Mira  Okoye"]),
        ([AUTHORS[1], *NAMELESS, AUTHORS[0]], ["Mira  Okoye", "Ada Abel"]),
        *((nothing, []) for nothing in ([], None, "Ada Abel")),
    ],
)
def test_names_of_authors_are_kept_in_their_order_where_they_are_asked_for(read, shard, authors, expected):
    ingested = read("papers", shard({"corpusid": 7, "title": "T", "authors": authors}, {"corpusid": 8}), authors=True)
    assert [row["authors"] for row in ingested.rows] == [expected, []]
    assert ingested.lines("kept") == 2


def test_a_job_without_shards_writes_an_empty_table_with_the_columns_of_the_others(read, shard, tmp_path):
    ingested = tmp_path / "ingested"
    full = shard({"corpusid": 7, "title": "T", "authors": AUTHORS})
    for part, paths in {"papers/0": [full], "papers/1": [], "abstracts/0": [], "citations/0": []}.items():
        made = read(part.partition("/")[0], *paths, authors=True)
        assert paths or made.rows == made.report == []
        (ingested / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out").rename(ingested / f"{part}.parquet")
    tables, _ = merged(ingested, buckets=1)
    assert [row["authors"] for row in tables["papers"]] == [["Ada Abel", "Mira  Okoye"]]


def test_long_lines_are_read_a_few_at_a_time_within_the_memory(read, tmp_path):
    path = tmp_path / "0.jsonl"
    with path.open("w") as file:
        for number in range(6):
            file.write(json.dumps({"corpusid": number, "title": "t", "x": "y" * 30_000_000}) + "\n")
    assert len(read("papers", path, memory_mb=1500, threads=2).rows) == 6


def sample(shared, dataset):
    """The official sample of 2023: its file and records."""
    path = shared / "data" / "s2ag-samples" / dataset / f"{dataset}-sample.jsonl.gz"
    return path, [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_the_official_sample_of_citations_is_read_as_python_reads_it(shared, read):
    path, records = sample(shared, "citations")
    ingested = read("citations", path)
    assert (ingested.lines("cited id"), ingested.lines("kept"), ingested.lines("")) == (23, 77, 100)
    expected = []
    for record in records:
        if record["citedcorpusid"] is not None:
            traits = [*set(record["intents"] or []), *["influential"] * record["isinfluential"]]
            expected.append(row(int(record["citingcorpusid"]), int(record["citedcorpusid"]), *traits))
    assert ingested.rows == expected


@pytest.mark.parametrize(("dataset", "key"), [("papers", "title"), ("abstracts", "abstract")])
def test_the_official_samples_of_papers_and_abstracts_are_read_whole(shared, read, dataset, key):
    path, records = sample(shared, dataset)
    found = {row["corpusid"]: row[key] for row in read(dataset, path).rows}
    assert found == {record["corpusid"]: record[key] for record in records}
