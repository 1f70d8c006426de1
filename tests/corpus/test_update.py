"""Updating: a release that is reached through diffs has the tables of one that is ingested whole.

Of the diffs every key that they name is ingested, and the rows of what they update.
"""

import gzip
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
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
        results = tmp_path / name
        with serve(release, key=key) as origin:
            source = {"source": "s2", "api": origin, **({"base": str(tmp_path / base)} if base else {})}
            api = {"settings": validated(Corpus, source), "results": tmp_path}
            list_shards(**api, release=release.name, output=results / "corpus/manifest.json")
            for dataset in DATASETS:
                for part in range(parts):
                    _fetch_and_ingest(dataset, part, parts, buckets, results, api, diffs=bool(base))
        for bucket in range(buckets):
            for dataset in DATASETS if base else ():
                update(
                    dataset,
                    manifest=results / "corpus/manifest.json",
                    base=tmp_path / base / "corpus",
                    changes=results / "corpus/changes" / dataset,
                    bucket=bucket,
                    buckets=buckets,
                    output=results / "corpus/ingested" / dataset / f"{bucket}.parquet",
                    omissions=results / "omissions" / f"update-{dataset}-{bucket}.parquet",
                    **LIMITS,
                )
            _merge(bucket, results)
        return results

    return run


def _fetch_and_ingest(dataset, part, parts, buckets, results, api, *, diffs):
    place = {"manifest": results / "corpus/manifest.json", "part": part, "parts": parts}
    raw = results / "raw" / dataset / str(part)
    download(dataset, **place, **api, state=results / "state", output=raw)
    folder = results / "corpus" / ("changes" if diffs else "ingested") / dataset
    ingest_part(
        dataset,
        **place,
        **LIMITS,
        shards=raw,
        buckets=buckets,
        ids="keep",
        output=folder / f"{part}.parquet",
        report=results / "report" / dataset / f"{part}.parquet",
    )


def _merge(bucket, results):
    for name in ("papers", "citations"):
        table = results / name / f"{bucket}.parquet"
        omissions = results / "omissions" / f"merge-{name}-{bucket}.parquet"
        merge(name, ingested=results / "corpus/ingested", bucket=bucket, **LIMITS, output=table, omissions=omissions)


def assert_same_tables(updated: Path, fresh: Path) -> None:
    for name in ("papers", "citations"):
        assert read_table(updated / name, name).equals(read_table(fresh / name, name))
        merges = [sorted((results / "omissions").glob(f"merge-{name}-*")) for results in (updated, fresh)]
        assert read_table(merges[0], "omissions").equals(read_table(merges[1], "omissions"))


@pytest.mark.parametrize(
    ("shape", "cut"),
    [
        pytest.param({"seed": 11, "share": 0.05, "shards": 1}, {"buckets": 1, "parts": 1}, marks=pytest.mark.long),
        ({"seed": 12, "share": 0.05}, {"buckets": 3, "parts": 4}),
        pytest.param({"share": 0.0}, {}, marks=pytest.mark.long),
    ],
)
def test_two_steps_of_diffs_give_the_tables_of_the_newer_release(generate, ingest, shape, cut):
    first, _, third = generate(**shape)
    ingest(first, "base", **cut)
    assert_same_tables(ingest(third, "two-steps", base="base", **cut), ingest(third, "third", **cut))


@pytest.mark.long
def test_an_updated_release_is_the_base_of_the_next_update(generate, ingest):
    first, second, third = generate()
    ingest(first, "first")
    ingest(second, "second", base="first")
    assert_same_tables(ingest(third, "third", base="second"), ingest(third, "third-whole"))


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
        folders = {
            "manifest": tmp_path / "manifest.json",
            "base": tmp_path / "base",
            "changes": write_rows(tmp_path / "changes/0.parquet", "changed_citations", changes).parent,
        }
        found, dropped = [], 0
        for bucket in range(2):
            paths = {"output": tmp_path / f"{bucket}.parquet", "omissions": tmp_path / "omissions"}
            update("citations", **folders, bucket=bucket, buckets=2, **paths, **LIMITS)
            rows = read_table(paths["output"], "ingested_citations").to_pylist()
            found.append(sorted(rows, key=lambda row: (row["citationid"], row["citing"], row["cited"])))
            dropped += read_table(paths["omissions"], "omissions")["count"][0].as_py()
        return found, dropped

    return run


def test_a_citation_that_moves_to_a_paper_of_another_bucket_leaves_its_old_one(update_citations):
    moved = [{"step": 1, "citationid": 7}, {"step": 1} | citation(7, 3, 9)]
    assert update_citations([citation(7, 2, 9), citation(8, 2, 9)], moved) == (
        [[citation(8, 2, 9)], [citation(7, 3, 9)]],
        1,
    )


def test_all_copies_under_a_key_are_replaced_by_all_that_the_last_diff_has(update_citations):
    changes = [{"step": 2, "citationid": 7}, {"step": 2} | citation(7, 2, 5), {"step": 2} | citation(7, 2, 6)]
    base = [citation(7, 2, 8), citation(7, 3, 9)]
    assert update_citations(base, changes) == ([[citation(7, 2, 5), citation(7, 2, 6)], []], 2)


def test_citations_without_an_id_cannot_be_updated(update_citations):
    with pytest.raises(
        InputError, match=r"base/ingested/citations: has citations without a citationid.*must be ingested whole"
    ):
        update_citations([citation(None, 2, 9)], [])


def test_diffs_are_not_applied_to_another_release_than_they_lead_on_from(update_citations):
    with pytest.raises(InputError, match=r"base contains the release 1, but the listed diffs start from 2026-01-13"):
        update_citations([], [], since="2026-01-13")


@pytest.mark.parametrize("bucket", [1, 2])
def test_a_base_with_another_number_of_buckets_is_refused(update_citations, bucket):
    with pytest.raises(InputError, match="base/ingested/citations: was not ingested into 2 buckets"):
        update_citations([citation(7, 2, 9) | {"bucket": bucket}], [])


KEYS = st.integers(0, 5)
PAPERS = st.integers(0, 3)
ENDS = st.tuples(PAPERS, st.none() | PAPERS)
DIFFS = st.fixed_dictionaries(
    {"updates": st.dictionaries(KEYS, ENDS, max_size=4), "deletes": st.sets(KEYS, max_size=3)}
)


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
    found, _ = update_citations(base, changes)
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
        rows = [
            {name: value for name, value in row.items() if value is not None}
            for row in pq.read_table(output).to_pylist()
        ]
        counted = [
            (row["shard"], row["outcome"], row["lines"]) for row in pq.read_table(report).to_pylist() if row["lines"]
        ]
        return rows, counted

    return run


def record(citationid, citing, cited) -> dict:
    return {"citationid": citationid, "citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": True}


def test_updates_give_their_keys_and_their_rows(run):
    rows, report = run("citations", (1, False, [record(70, 6, 2), record("71", "7", "2")]))
    assert rows == [
        {"step": 1, "citationid": 70},
        {"step": 1, "citationid": 71},
        {"step": 1, "citationid": 70, "bucket": 2, "citing": 6, "cited": 2, "traits": 8},
        {"step": 1, "citationid": 71, "bucket": 3, "citing": 7, "cited": 2, "traits": 8},
    ]
    assert report == [("0.gz", "kept", 2)]


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


def test_each_shard_keeps_the_number_of_its_step(run):
    rows, _ = run("papers", (3, True, [{"corpusid": 1}]), (12, False, [{"corpusid": 1, "title": "Back"}]))
    assert [(row["step"], row.get("title")) for row in rows] == [(3, None), (12, None), (12, "Back")]


@pytest.mark.parametrize("line", [b"{broken", {"citingcorpusid": 1, "citedcorpusid": 2}, record(None, 1, 2)])
def test_a_deletion_without_a_key_is_named(run, line):
    with pytest.raises(InputError, match=r"0\.gz, line 2: (is not JSON|has no citationid|citationid is null)"):
        run("citations", (1, True, [record(1, 1, 2), line]))


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
    with pytest.raises(InputError, match=r"0\.gz: has citations without a citationid"):
        run("citations", (1, False, [nameless]))


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
