"""Ingesting diffs: every key that they name, and the rows of what they update."""

import gzip
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cocite.core.errors import InputError
from cocite.corpus.ingest.accounting import account
from cocite.corpus.ingest.changes import read_diff
from cocite.corpus.ingest.release_shards import IngestSettings, write_ingested
from cocite.corpus.release.manifest import DiffShard


@pytest.fixture
def run(tmp_path, write_shard):
    """Ingest diffs, given as (step, whether it deletes, lines); return the rows without nulls, and the report."""

    def run(dataset: str, *diffs: tuple, buckets: int = 4, malformed: float = 0.0) -> tuple[list[dict], list[tuple]]:
        shards = []
        for number, (step, deletes, lines) in enumerate(diffs):
            path = write_shard(tmp_path / f"{number}.gz", *lines)
            shards.append(DiffShard(name=path.name, bytes=path.stat().st_size, step=step, deletes=deletes))
        cost = {"memory_mb": 500, "threads": 1}
        settings = IngestSettings(dataset=dataset, buckets=buckets, keep_ids=False, **cost)
        output, report = (tmp_path / name for name in ("out.parquet", "report.parquet"))
        write_ingested(f"changed_{dataset}", read_diff, settings, tmp_path, shards, output=output, report=report)
        account([report], malformed=malformed, omissions=tmp_path / "omissions.parquet")
        rows = [
            {name: value for name, value in row.items() if value is not None}
            for row in pq.read_table(output).to_pylist()
        ]
        counted = [
            (row["shard"], row["outcome"], row["lines"]) for row in pq.read_table(report).to_pylist() if row["lines"]
        ]
        return rows, counted

    return run


def citation(citationid, citing, cited) -> dict:
    return {"citationid": citationid, "citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": True}


def test_updates_give_their_keys_and_their_rows(run):
    rows, report = run("citations", (1, False, [citation(70, 6, 2), citation("71", "7", "2")]))
    assert rows == [
        {"step": 1, "citationid": 70},
        {"step": 1, "citationid": 71},
        {"step": 1, "citationid": 70, "bucket": 2, "citing": 6, "cited": 2, "traits": 8},
        {"step": 1, "citationid": 71, "bucket": 3, "citing": 7, "cited": 2, "traits": 8},
    ]
    assert report == [("0.gz", "kept", 2)]


def test_an_update_that_is_left_out_gives_its_key_alone_and_is_counted_by_its_kind(run):
    rows, report = run("citations", (1, False, [citation(70, 6, None), citation(71, 7, 7), citation(72, None, 2)]))
    assert rows == [{"step": 1, "citationid": key} for key in (70, 71, 72)]
    assert sorted(report) == [
        ("0.gz", "citations of a paper by itself", 1),
        ("0.gz", "citations without a cited id", 1),
        ("0.gz", "citations without a citing id", 1),
    ]
    assert run("abstracts", (1, False, [{"corpusid": 5, "abstract": " "}]))[0] == [{"step": 1, "corpusid": 5}]


def test_deletes_come_as_keys_or_as_whole_records_and_give_keys(run):
    rows, report = run("citations", (1, True, [{"citationid": 70}, citation(71, 7, 2)]))
    assert sorted(row["citationid"] for row in rows) == [70, 71]
    assert report == [("0.gz", "kept", 2)]
    assert run("papers", (1, True, [{"corpusid": "8"}]))[0] == [{"step": 1, "corpusid": 8}]


def test_each_shard_keeps_the_number_of_its_step(run):
    rows, _ = run("papers", (3, True, [{"corpusid": 1}]), (12, False, [{"corpusid": 1, "title": "Back"}]))
    assert [(row["step"], row.get("title")) for row in rows] == [(3, None), (12, None), (12, "Back")]


@pytest.mark.parametrize("line", [b"{broken", {"citingcorpusid": 1, "citedcorpusid": 2}, citation(None, 1, 2)])
def test_a_deletion_without_a_key_is_named(run, line):
    with pytest.raises(InputError, match=r"0\.gz, line 2: (is not JSON|has no citationid|citationid is null)"):
        run("citations", (1, True, [citation(1, 1, 2), line]))


@pytest.mark.parametrize("context", [rb"cut \ud835", b"a\ttab", b"\xff"])
def test_an_update_whose_contexts_are_broken_gives_its_key_as_it_gives_its_row(run, context):
    line = b'{"citationid":70,"citingcorpusid":6,"citedcorpusid":2,"contexts":["' + context + b'"]}'
    rows, _ = run("citations", (1, False, [line]))
    assert [row["citationid"] for row in rows] == [70, 70]


def test_malformed_lines_are_counted_once_where_they_are_allowed(run):
    for deletes in (True, False):
        _, report = run("papers", (1, deletes, [{"corpusid": 1}, b"{broken"]), malformed=0.5)
        assert [count for _, _, count in report] == [1, 1]


def test_an_update_of_a_citation_must_have_a_key(run):
    nameless = {"citingcorpusid": 1, "citedcorpusid": 2}
    with pytest.raises(InputError, match=r"0\.gz: holds citations without a citationid"):
        run("citations", (1, False, [nameless]))


def test_an_empty_file_changes_nothing(run):
    assert run("papers", (1, True, []), (1, False, [])) == ([], [])
    assert run("papers") == ([], [])


def test_a_file_that_is_cut_short_is_named(run, tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b'{"corpusid": 1}\n')[:-8])
    shard = DiffShard(name=path.name, bytes=path.stat().st_size, step=1, deletes=True)
    settings = IngestSettings(dataset="papers", buckets=1, keep_ids=False, memory_mb=500, threads=1)
    paths: dict[str, Path] = {name: tmp_path / name for name in ("output", "report")}
    with pytest.raises(InputError, match=f"{path} is cut short"):
        write_ingested("changed_papers", read_diff, settings, tmp_path, [shard], **paths)
    assert not paths["output"].exists()
