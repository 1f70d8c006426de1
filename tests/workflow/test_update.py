"""A configuration with a base reaches the newer release through its diffs, or the later copy of OpenAlex."""

import gzip
import json
from pathlib import Path

import pytest
from tests.corpus.made_openalex import DATE, url_of, work, write_copy
from tests.encoder.published import published
from tests.releases.server import serve, serve_copy
from tests.releases.successor import generate_successor
from tests.workflow.conftest import Run

from cocite.core.tables.files import read_table
from cocite.demo.release import generate_release

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

OLDER, NEWER, LATER = "2026-01-06", "2026-01-13", "2026-07-24"
DATASETS = ("papers", "abstracts", "citations")
TABLES = [f"corpus/{table}/{bucket}" for table in ("papers", "citations") for bucket in range(2)]
ENCODER = "fixed"
"""Folder of an encoder that embeds the papers of each corpus, if a test has written it."""
KEY = "a-key-that-must-stay-secret"


def make(run: Run, results: str, release: str, *tables: str, **corpus) -> str:
    """Make tables of a corpus in a results folder of their own; return what Snakemake says."""
    folders = {"results": results, "logs": f"logs/{results}", "benchmarks": "benchmarks"}
    config = {"release": release, "pathvars": folders, "corpus": {"buckets": 2, **corpus}}
    if (run.folder / ENCODER).is_dir():
        config["encoders"] = {"fixed": {"model": ENCODER, "max_length": 32}}
        tables += tuple(f"encoder/untrained_fixed/seed-0/papers/{bucket}" for bucket in range(2))
    wanted = [f"{results}/{name}.parquet" for name in tables]
    return run.make(*wanted, config=run.configure(config, f"{results}.yaml"))


def records(folder: Path) -> list[dict]:
    lines = [line for path in folder.glob("*.gz") for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [json.loads(line) for line in lines]


def citations(folder: Path) -> set[tuple[int, int]]:
    rows = read_table(folder / "corpus/citations", "citations").to_pylist()
    return {(row["citing"], row["cited"]) for row in rows}


def test_a_run_with_a_base_ends_in_the_newer_release_and_needs_the_base_no_more(run, tmp_path, monkeypatch):
    older, newer = tmp_path / OLDER, tmp_path / NEWER
    generate_release(older, release=OLDER, papers=200, topics=6, shards=1, seed=7)
    generate_successor(older, newer, release=NEWER, share=0.02, seed=7)
    monkeypatch.setenv("S2_API_KEY", KEY)
    shards = [f"corpus/ingested/{dataset}/0" for dataset in DATASETS]
    make(run, "base", OLDER, *shards, source="directory", path=str(older), keep_ingested=True)
    with serve(newer, key=KEY) as api:
        corpus = {"source": "s2", "api": api, "base": "base", "shards": dict.fromkeys(DATASETS, 1)}
        make(run, "updated", NEWER, *TABLES, **corpus)
    (run.folder / "base").rename(run.folder / "gone")
    assert "Nothing to be done" in make(run, "updated", NEWER, *TABLES, **corpus)

    ends = [(row["citingcorpusid"], row["citedcorpusid"]) for row in records(newer / "citations")]
    assert citations(run.folder / "updated") == {pair for pair in ends if pair[1] not in (None, pair[0])}
    abstracts = {row["corpusid"]: row["abstract"] for row in records(newer / "abstracts")}
    papers = read_table(run.folder / "updated/corpus/papers", "papers").to_pylist()
    assert {row["corpusid"]: (row["title"], row["abstract"]) for row in papers} == {
        row["corpusid"]: (row["title"].strip() or None, abstracts.get(row["corpusid"]))
        for row in records(newer / "papers")
    }
    for temporary in ("ingested", "changes"):
        assert not list((run.folder / "updated" / "corpus" / temporary).glob("*/*.parquet"))


def works(count: int) -> list[dict]:
    return [
        work(2**31 + number, abstract=f"About {number}", references=[2**31 + (3 * number) % count, 2**31], year=2000)
        | {"updated_date": f"2026-06-{1 + number % 4:02}"}
        for number in range(count)
    ]


def test_a_later_copy_is_reached_from_an_earlier_run_which_is_then_needed_no_more(run, tmp_path, monkeypatch):
    published(run.folder / ENCODER)
    write_copy(tmp_path / "older", "parquet", works(40))
    monkeypatch.setattr("tests.corpus.made_openalex.DATE", LATER)
    added = work(2**31 + 50, references=[2**31 + 1]) | {"updated_date": "2026-07-01"}
    later = [*works(40)[:38], added]
    write_copy(tmp_path / "later", "parquet", later)
    with serve_copy(tmp_path / "older") as older, serve_copy(tmp_path / "later") as newer:
        copies = {"source": "openalex", "jobs": 3}
        make(run, "base", DATE, *TABLES, **copies, url=f"{older}/data/parquet", keep_ingested=True)
        copies["url"] = f"{newer}/data/parquet"
        make(run, "updated", LATER, *TABLES, **copies, base="base")
        make(run, "fresh", LATER, *TABLES, **copies)
        (run.folder / "base").rename(run.folder / "gone")
        assert "Nothing to be done" in make(run, "updated", LATER, *TABLES, **copies, base="base")
    for table in ("papers", "citations"):
        made = [read_table(run.folder / results / "corpus" / table, table) for results in ("updated", "fresh")]
        assert made[0].equals(made[1])
    for bucket in range(2):
        name = f"encoder/untrained_fixed/seed-0/papers/{bucket}.parquet"
        assert (run.folder / "updated" / name).read_bytes() == (run.folder / "fresh" / name).read_bytes()
        log = (run.folder / f"logs/updated/encoder/untrained_fixed/seed-0/embed_papers-{bucket}.log").read_text()
        assert "papers have the text that they had in base" in log
    start = len(url_of(0)) - 1
    pairs = [(each["id"], cited) for each in later for cited in each["referenced_works"]]
    wanted = {(int(citing[start:]), int(cited[start:])) for citing, cited in pairs if citing != cited}
    assert citations(run.folder / "updated") == wanted
    assert not list((run.folder / "updated/corpus/ingested").glob("*/*.parquet"))
