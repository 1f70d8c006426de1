"""Updating: a release that is reached through diffs has the tables of one that is ingested whole.

Of the diffs every key that they name is ingested, and the rows of what they update.
"""

import gzip
from itertools import pairwise, product
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.corpus.made import LIMITS, write_rows
from tests.releases.server import serve
from tests.releases.successor import generate_successor

from cocite.config.configuration import Corpus
from cocite.config.release_folder import DATASETS
from cocite.config.settings import validated
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.accounting import account
from cocite.corpus.ingest.changes import read_diff, update
from cocite.corpus.ingest.merge import merge
from cocite.corpus.ingest.release_shards import IngestSettings, write_ingested
from cocite.corpus.ingest.release_shards import ingest as ingest_part
from cocite.corpus.release.manifest import Dataset, DiffShard, Manifest, write_manifest
from cocite.corpus.release.plan import download, list_shards
from cocite.demo.release import generate_release

RELEASES = ("2026-01-06", "2026-01-13", "2026-01-20")


@pytest.fixture(scope="module")
def generate(tmp_path_factory):
    """Generate a release and two that follow it; the same ones once."""
    known: dict[tuple, list[Path]] = {}

    def folders(*, seed: int = 7, share: float = 0.01, shards: int = 3) -> list[Path]:
        if (seed, share, shards) not in known:
            made = [tmp_path_factory.mktemp("releases") / release for release in RELEASES]
            generate_release(made[0], release=RELEASES[0], papers=200, topics=6, shards=shards, seed=seed)
            for older, newer in pairwise(made):
                generate_successor(older, newer, release=newer.name, share=share, seed=seed)
            known[seed, share, shards] = made
        return known[seed, share, shards]

    return folders


@pytest.fixture
def ingest(key, tmp_path):
    """Take the release in a folder through all steps; `base` names the results of an earlier one, to go on from."""

    def run(release: Path, name: str, *, base: str = "", buckets: int = 2, parts: int = 2) -> Path:
        results, corpus = tmp_path / name, tmp_path / name / "corpus"
        manifest = corpus / "manifest.json"
        with serve(release, key=key) as origin:
            source = {"source": "s2", "api": origin, **({"base": str(tmp_path / base)} if base else {})}
            api = {"settings": validated(Corpus, source), "results": tmp_path}
            list_shards(**api, release=release.name, output=manifest)
            for dataset, part in product(DATASETS, range(parts)):
                place, raw = {"manifest": manifest, "part": part, "parts": parts}, results / f"raw/{dataset}/{part}"
                download(dataset, **place, **api, state=results / "state", output=raw)
                written = {
                    "output": corpus / ("changes" if base else "ingested") / f"{dataset}/{part}.parquet",
                    "report": results / f"report/{dataset}/{part}.parquet",
                }
                ingest_part(dataset, **place, **LIMITS, shards=raw, buckets=buckets, ids="keep", **written)
        for bucket in range(buckets):
            for dataset in DATASETS if base else ():
                written = {
                    "output": corpus / f"ingested/{dataset}/{bucket}.parquet",
                    "omissions": results / f"omissions/update-{dataset}-{bucket}.parquet",
                }
                given = {
                    "manifest": manifest,
                    "base": tmp_path / base / "corpus",
                    "changes": corpus / "changes" / dataset,
                }
                update(dataset, **given, bucket=bucket, buckets=buckets, **written, **LIMITS)
            for table in ("papers", "citations"):
                written = {
                    "output": results / f"{table}/{bucket}.parquet",
                    "omissions": results / f"omissions/merge-{table}-{bucket}.parquet",
                }
                merge(table, ingested=corpus / "ingested", bucket=bucket, **LIMITS, **written)
        return results

    return run


def assert_same_tables(updated: Path, fresh: Path) -> None:
    for name in ("papers", "citations"):
        assert read_table(updated / name, name).equals(read_table(fresh / name, name))
        merges = [sorted((results / "omissions").glob(f"merge-{name}-*")) for results in (updated, fresh)]
        assert read_table(merges[0], "omissions").equals(read_table(merges[1], "omissions"))


@pytest.mark.parametrize(
    ("shape", "cut", "bases"),
    [
        pytest.param({"seed": 11, "share": 0.05, "shards": 1}, {"buckets": 1, "parts": 1}, [0], marks=pytest.mark.long),
        ({"seed": 12, "share": 0.05}, {"buckets": 3, "parts": 4}, [0]),
        pytest.param({"share": 0.0}, {}, [0], marks=pytest.mark.long),
        pytest.param({}, {}, [0, 1], marks=pytest.mark.long),
    ],
    ids=["in one part", "in many parts", "nothing changed", "by two updates"],
)
def test_diffs_of_one_update_or_two_give_the_tables_of_the_newer_release(generate, ingest, shape, cut, bases):
    releases = generate(**shape)
    base = ""
    for at in bases:
        ingest(releases[at], str(at), base=base, **cut)
        base = str(at)
    assert_same_tables(ingest(releases[2], "updated", base=base, **cut), ingest(releases[2], "whole", **cut))


def citation(citationid, citing, cited, buckets=2) -> dict:
    return {"bucket": citing % buckets, "citationid": citationid, "citing": citing, "cited": cited, "traits": 0}


@pytest.fixture
def update_citations(tmp_path):
    """Apply changes to rows; return the rows of each of two buckets, in order, and how many were dropped."""

    def run(base: list[dict], changes: list[dict], since: str = "1") -> tuple[list[list[dict]], int]:
        nothing = dict.fromkeys(DATASETS, Dataset(shards=(), readme=""))
        write_manifest(tmp_path / "base/manifest.json", Manifest(release="1", datasets=nothing))
        write_manifest(tmp_path / "manifest.json", Manifest(release="2", datasets=nothing, since=since))
        write_rows(tmp_path / "base/ingested/citations/0.parquet", "ingested_citations", base)
        folders = {"manifest": tmp_path / "manifest.json", "base": tmp_path / "base"}
        folders["changes"] = write_rows(tmp_path / "changes/0.parquet", "changed_citations", changes).parent
        found, dropped = [], 0
        for bucket in range(2):
            paths = {"output": tmp_path / f"{bucket}.parquet", "omissions": tmp_path / "omissions"}
            update("citations", **folders, bucket=bucket, buckets=2, **paths, **LIMITS)
            rows = read_table(paths["output"], "ingested_citations").to_pylist()
            found.append(sorted(rows, key=lambda row: (row["citationid"], row["citing"], row["cited"])))
            dropped += read_table(paths["omissions"], "omissions")["count"][0].as_py()
        return found, dropped

    return run


def test_all_copies_under_a_key_are_replaced_by_all_that_the_last_diff_has(update_citations):
    changes = [{"step": 2, "citationid": 7}, {"step": 2} | citation(7, 2, 5), {"step": 2} | citation(7, 2, 6)]
    base = [citation(7, 2, 8), citation(7, 3, 9)]
    assert update_citations(base, changes) == ([[citation(7, 2, 5), citation(7, 2, 6)], []], 2)


WITHOUT_ID = "base/ingested/citations: has citations without a citationid.*must be ingested whole"
OTHER_BUCKETS = "base/ingested/citations: was not ingested into 2 buckets"


@pytest.mark.parametrize(
    ("base", "since", "said"),
    [
        ([citation(None, 2, 9)], "1", WITHOUT_ID),
        ([], "2026-01-13", "base contains the release 1, but the listed diffs start from 2026-01-13"),
        *(([citation(7, 2, 9) | {"bucket": bucket}], "1", OTHER_BUCKETS) for bucket in (1, 2)),
    ],
)
def test_a_base_that_diffs_cannot_be_applied_to_is_refused(update_citations, base, since, said):
    with pytest.raises(InputError, match=said):
        update_citations(base, [], since=since)


KEYS = st.integers(0, 5)
PAPERS = st.integers(0, 3)
ENDS = st.tuples(PAPERS, st.none() | PAPERS)
DIFFS = st.fixed_dictionaries(
    {"updates": st.dictionaries(KEYS, ENDS, max_size=4), "deletes": st.sets(KEYS, max_size=3)}
)


@example({7: (2, 1), 8: (2, 1)}, [{"updates": {7: (3, 1)}, "deletes": set()}])  # moves to the other bucket
@given(st.dictionaries(KEYS, ENDS), st.lists(DIFFS, max_size=4))
def test_the_rows_are_what_a_dictionary_ends_up_with(update_citations, records, diffs):
    base = [citation(key, *ends) for key, ends in records.items() if ends[1] is not None]
    changes = []
    for step, diff in enumerate(diffs, start=1):
        deletes = diff["deletes"] - diff["updates"].keys()
        records = {key: ends for key, ends in records.items() if key not in deletes} | diff["updates"]
        changes += [{"step": step, "citationid": key} for key in [*diff["updates"], *deletes]]
        kept = {key: ends for key, ends in diff["updates"].items() if ends[1] is not None}
        changes += [{"step": step} | citation(key, *ends) for key, ends in kept.items()]
    found, dropped = update_citations(base, changes)
    assert dropped == len([row for row in base + changes if "cited" in row]) - sum(map(len, found))
    assert found == [
        [citation(key, *ends) for key, ends in sorted(records.items()) if ends[1] is not None and ends[0] % 2 == bucket]
        for bucket in range(2)
    ]


@pytest.fixture
def run(tmp_path, write_shard):
    """Ingest diffs, given as (step, whether it deletes, lines); return the rows without nulls, and the report."""

    def run(dataset: str, *diffs: tuple, buckets: int = 4, malformed: float = 0.0) -> tuple[list[dict], list[tuple]]:
        shards = []
        for number, (step, deletes, lines) in enumerate(diffs):
            path = write_shard(tmp_path / f"{number}.gz", *lines)
            shards.append(DiffShard(name=path.name, bytes=path.stat().st_size, step=step, deletes=deletes))
        settings = IngestSettings(dataset=dataset, buckets=buckets, keep_ids=False, **LIMITS)
        output, report = (tmp_path / name for name in ("out.parquet", "report.parquet"))
        write_ingested(f"changed_{dataset}", read_diff, settings, tmp_path, shards, output=output, report=report)
        account([report], malformed=malformed, omissions=tmp_path / "omissions.parquet")
        rows, counted = (pq.read_table(path).to_pylist() for path in (output, report))
        told = [{name: value for name, value in row.items() if value is not None} for row in rows]
        return told, [(row["shard"], row["outcome"], row["lines"]) for row in counted if row["lines"]]

    return run


def record(citationid, citing, cited) -> dict:
    return {"citationid": citationid, "citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": True}


def test_updates_give_their_keys_and_their_rows_by_the_step_of_their_shard(run):
    first, second = [record(70, 6, 2), record("71", "7", "2")], [record(70, 7, 2)]
    rows, report = run("citations", (1, False, first), (12, False, second))
    assert rows == [
        {"step": 1, "citationid": 70},
        {"step": 1, "citationid": 71},
        {"step": 1, "citationid": 70, "bucket": 2, "citing": 6, "cited": 2, "traits": 8},
        {"step": 1, "citationid": 71, "bucket": 3, "citing": 7, "cited": 2, "traits": 8},
        {"step": 12, "citationid": 70},
        {"step": 12, "citationid": 70, "bucket": 3, "citing": 7, "cited": 2, "traits": 8},
    ]
    assert report == [("0.gz", "kept", 2), ("1.gz", "kept", 1)]
    rows, _ = run("papers", (3, True, [{"corpusid": 1}]), (12, False, [{"corpusid": 1, "title": "Back"}]))
    assert [(row["step"], row.get("title")) for row in rows] == [(3, None), (12, None), (12, "Back")]


def test_an_update_that_is_left_out_gives_its_key_alone_and_is_counted_by_its_kind(run):
    rows, report = run("citations", (1, False, [record(70, 6, None), record(71, 7, 7), record(72, None, 2)]))
    assert rows == [{"step": 1, "citationid": key} for key in (70, 71, 72)]
    assert sorted(report) == [
        ("0.gz", "citations of a paper by itself", 1),
        ("0.gz", "citations without a cited id", 1),
        ("0.gz", "citations without a citing id", 1),
    ]
    assert run("abstracts", (1, False, [{"corpusid": 5, "abstract": " "}]))[0] == [{"step": 1, "corpusid": 5}]


def test_deletes_come_as_keys_or_as_whole_records_and_give_keys(run):
    rows, report = run("citations", (1, True, [{"citationid": 70}, record(71, 7, 2)]))
    assert sorted(row["citationid"] for row in rows) == [70, 71]
    assert report == [("0.gz", "kept", 2)]
    assert run("papers", (1, True, [{"corpusid": "8"}]))[0] == [{"step": 1, "corpusid": 8}]


NAMELESS = {"citingcorpusid": 1, "citedcorpusid": 2}


@pytest.mark.parametrize(
    ("deletes", "line", "said"),
    [
        (True, b"{broken", r"0\.gz, line 2: is not JSON"),
        (True, NAMELESS, r"0\.gz, line 2: has no citationid"),
        (True, record(None, 1, 2), r"0\.gz, line 2: citationid is null"),
        (False, NAMELESS, r"0\.gz: has citations without a citationid"),
    ],
)
def test_a_deletion_or_update_without_a_key_is_named(run, deletes, line, said):
    with pytest.raises(InputError, match=said):
        run("citations", (1, deletes, [record(1, 1, 2), line]))


@pytest.mark.parametrize("context", [rb"cut \ud835", b"a\ttab", b"\xff"])
def test_an_update_whose_contexts_are_broken_gives_its_key_as_it_gives_its_row(run, context):
    line = b'{"citationid":70,"citingcorpusid":6,"citedcorpusid":2,"contexts":["' + context + b'"]}'
    rows, _ = run("citations", (1, False, [line]))
    assert [row["citationid"] for row in rows] == [70, 70]


def test_malformed_lines_are_counted_once_where_they_are_allowed(run):
    for deletes in (True, False):
        _, report = run("papers", (1, deletes, [{"corpusid": 1}, b"{broken"]), malformed=0.5)
        assert [count for _, _, count in report] == [1, 1]


def test_an_empty_file_changes_nothing(run):
    assert run("papers", (1, True, []), (1, False, [])) == ([], [])
    assert run("papers") == ([], [])


def test_a_file_that_is_cut_short_is_named(run, tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b'{"corpusid": 1}\n')[:-8])
    shard = DiffShard(name=path.name, bytes=path.stat().st_size, step=1, deletes=True)
    settings = IngestSettings(dataset="papers", buckets=1, keep_ids=False, **LIMITS)
    paths: dict[str, Path] = {name: tmp_path / name for name in ("output", "report")}
    with pytest.raises(InputError, match=f"{path} is cut short"):
        write_ingested("changed_papers", read_diff, settings, tmp_path, [shard], **paths)
    assert not paths["output"].exists()
