"""Lines and shards that cannot be read are named, by file and line; too many malformed lines stop the run."""

import gzip
import json

import pytest
from tests.corpus.made import SHARD, citation, left_out, settings

from cocite.config.table_files import PaperTable
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.corpus.ingest import unpacking
from cocite.corpus.ingest.accounting import KEPT, MALFORMED, Tally, account, tallies_as_table
from cocite.corpus.ingest.release_shards import ingest_shards
from cocite.corpus.ingest.user_files import columns_in
from cocite.corpus.release.manifest import Shard

GOOD = {"corpusid": 1, "abstract": "text"}
BEFORE = {
    "abstracts": [GOOD, b"", GOOD, b" \t\r"],
    "citations": [citation(1, 2), b"", citation(None, 2), citation(5, 5)],
}
DEEP = b"[" * 100_000 + b"]" * 100_000
FAULTS: dict[str, list[tuple[bytes, str]]] = {
    "abstracts": [
        (b"{broken", "is not JSON"),
        (b"[1, 2]", "is a list, not an object; a line has one record"),
        (b"17", "is a single value, not an object"),
        (b"\0\0\0\0", "is not JSON"),
        (b'{"corpusid": 2, "abstract": ["text"]}', 'abstract is \\["text"\\], not text'),
        (b'{"corpusid": ' + b"9" * 43 + b', "abstract": "text"}', "corpusid is 9{43}, not a whole number from 0"),
        (b'{"corpusid": "' + b"9" * 5000 + b'", "abstract": "text"}', 'corpusid is "9{59}…, not a whole number'),
        (b'{"abstract": "text"}', "has no corpusid"),
        (b'{"corpusid": null, "abstract": "text"}', "corpusid is null"),
        (b'{"corpusid": "x7", "abstract": "text"}', 'corpusid is "x7", not a whole number'),
        (b'{"corpusid": "\\ud800", "abstract": "text"}', r'corpusid is "\\ud800", not a whole number'),
        (b'{"corpusid": "7\xc2\x9b2J", "abstract": "text"}', r'corpusid is "7\\x9b2J", not a whole number'),
        (b'{"corpusid": 2, "abstract": ' + DEEP + b"}", "is not JSON that can be read"),
        (b'{"corpusid": 2, "abstract": "\xff"}', "is not UTF-8"),
        (b'{"corpusid": 2, "abstract": "\\ud800"}', "contains half of a surrogate pair"),
        (b'{"corpusid": 9223372036854775808, "abstract": "text"}', "not a whole number from 0"),
        (b'{"corpusid": "9223372036854775808", "abstract": "text"}', "not a whole number from 0"),
        (b'{"corpusid": "' + b"0" * 43 + b'7", "abstract": "text"}', 'corpusid is "0{43}7", not a whole number'),
        (b'{"corpusid": -3, "abstract": "text"}', "corpusid is -3, not a whole number from 0"),
        (b'{"corpusid": 12.7, "abstract": "text"}', "corpusid is 12.7, not a whole number"),
        (b'{"corpusid": "1e3", "abstract": "text"}', 'corpusid is "1e3", not a whole number'),
        (b'{"corpusid": true, "abstract": "text"}', "corpusid is true, not a whole number"),
    ],
    "citations": [
        (b"{broken", "is not JSON"),
        (b'{"citedcorpusid": 1}', "has no citingcorpusid"),
        (b'{"citingcorpusid": 1}', "has no citedcorpusid"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["cut', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2}}', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": 2, "intents": [["result"}', "is not JSON"),
        (b"[1, 2]", "not an object"),
        (b'{"citingcorpusid": 1.5, "citedcorpusid": 2}', "citingcorpusid is 1.5, not a whole number"),
        (b'{"citingcorpusid": 1, "citedcorpusid": -2}', "citedcorpusid is -2, not a whole number"),
        (b'{"citingcorpusid": 1, "citedcorpusid": "2x"}', 'citedcorpusid is "2x", not a whole number'),
        (b'{"citingcorpusid": 1, "citedcorpusid": 9223372036854775808}', "not a whole number from 0 to"),
        (b'{"citingcorpusid": 1, "citedcorpusid": "18446744073709551617"}', "not a whole number from 0 to"),
        (b'{"citingcorpusid": "' + b"0" * 43 + b'7", "citedcorpusid": 2}', 'is "0{43}7", not a whole number'),
        (b'{"citingcorpusid": 01, "citedcorpusid": 2}', "is not JSON"),
        (b'{"citingcorpusid": 1, "citedcorpusid": true}', "citedcorpusid is true, not a whole number"),
    ],
}


@pytest.mark.parametrize(("dataset", "line", "reason"), [(name, *fault) for name in FAULTS for fault in FAULTS[name]])
def test_an_unusable_line_is_named_by_file_number_and_fault(read, shard, dataset, line, reason):
    path = shard(*BEFORE[dataset], line, BEFORE[dataset][0], line)
    with pytest.raises(InputError, match=f"{path.name}, line 5: .*{reason}"):
        read(dataset, path)


def test_malformed_lines_that_may_be_are_counted_and_the_first_is_remembered(read, shard):
    ingested = read("abstracts", shard(*[GOOD] * 98, b"{broken", b"{}"), malformed=0.02)
    assert len(ingested.rows) == 98
    (malformed,) = (row for row in ingested.report if "malformed" in row["outcome"])
    assert (malformed["lines"], malformed["first_line"]) == (2, 99)
    assert malformed["fault"].startswith("is not JSON")


@pytest.mark.parametrize("dataset", ["citations", "abstracts"])
def test_a_line_that_no_record_fills_is_named_before_it_fills_the_memory(read, tmp_path, monkeypatch, dataset):
    monkeypatch.setattr(unpacking, "LONGEST_LINE", 5_000_000)
    record = citation(1, 2) | {"corpusid": 1, "abstract": "text"}
    lines = [record | {"x": "y" * 4_500_000}, record, record | {"x": "y" * 9_000_000}]
    path = tmp_path / "0.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"0\.jsonl, line 3: is longer than 5 MB; a shard has one record per line"):
        read(dataset, path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(gzip.compress(f"{json.dumps(GOOD)}\n".encode() * 1000)[:-20], "is cut short", id="cut short"),
        pytest.param(json.dumps(GOOD).encode(), ".*not a gzip file", id="not packed"),
        pytest.param(b"", "is empty", id="nothing"),
        pytest.param(gzip.compress(b""), "is empty", id="packed nothing"),
        pytest.param(gzip.compress(b"\n\n"), "is empty", id="packed blank lines"),
    ],
)
def test_a_shard_that_is_broken_or_empty_is_named(read, shard, tmp_path, content, said):
    full, path = shard(GOOD), tmp_path / "broken.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{path} {said}"):
        read("abstracts", full, path)


def test_a_shard_that_is_missing_or_of_another_size_than_listed_is_named(read, shard, tmp_path):
    path, places = shard(GOOD), {"output": tmp_path / "out", "report": tmp_path / "report"}
    for name, reason in (("b.gz", "b.gz does not exist"), (SHARD, SHARD)):
        with pytest.raises(InputError, match=reason):
            ingest_shards(settings("abstracts"), path.parent, [Shard(name=name, bytes=9)], **places)


def test_the_keys_of_records_are_found_beside_a_line_that_is_nested_too_deeply(tmp_path):
    table = PaperTable.model_validate({"files": "*.jsonl", "columns": {"id": "id", "title": "name"}})
    (tmp_path / "a.jsonl").write_bytes(b'{"id": ' + DEEP + b'}\n{"id": 1, "name": "x"}\n')
    assert columns_in(table, tmp_path / "a.jsonl") == ["id", "name"]


@pytest.mark.parametrize("blank", [b"\n", b" \t\r\n"])
def test_a_shard_of_blank_lines_is_refused_though_there_are_records_among_them(read, tmp_path, monkeypatch, blank):
    monkeypatch.setattr(unpacking, "MOST_BLANK", 1_000_000)
    (tmp_path / SHARD).write_bytes(gzip.compress((b"{}\n" + blank * (3_000_000 // len(blank))) * 4, 1))
    with pytest.raises(InputError, match="more than 1 MB of it are blank lines; a shard has one record per line"):
        read("citations", tmp_path / SHARD)


def test_blank_lines_among_records_are_counted(read, shard):
    ingested = read("abstracts", shard(*[line for _ in range(2_000) for line in (GOOD, b"", b"  ", b"")]))
    assert (ingested.lines("blank"), ingested.lines("kept")) == (6_000, 2_000)


def test_a_share_is_judged_over_all_shards_and_more_names_shard_and_line_of_the_first(tmp_path):
    tallies = {name: Tally(dataset="papers", shard=f"{name}.gz") for name in ("b", "a")}
    tallies["a"].outcomes[KEPT], tallies["b"].outcomes[KEPT] = 900, 97
    for line in (70, 12, 99):
        tallies["b"].note_malformed(line, f"is wrong in line {line}")
    for name, tally in tallies.items():
        write_table(tmp_path / f"reports/{name}.parquet", "ingest_report", tallies_as_table([tally]))
    message = r"papers: 3 of 1000 lines .* 0\.002 .* b\.gz, line 12: is wrong in line 12"
    with pytest.raises(InputError, match=message):
        account(tmp_path / "reports", malformed=0.002, omissions=tmp_path / "omissions")
    assert not (tmp_path / "omissions").exists()
    account(tmp_path / "reports", malformed=0.003, omissions=tmp_path / "omissions")
    assert left_out(tmp_path / "omissions", zero=True) == {MALFORMED: 3}
