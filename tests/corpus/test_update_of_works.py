"""Updating from an older copy of OpenAlex: what both copies have comes from the base, and the tables are the same."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from tests.corpus.made import LIMITS
from tests.corpus.made_openalex import DATE, FOLDERS, write_copy
from tests.corpus.made_openalex import work as made_work
from tests.releases.faults import Faults
from tests.releases.server import Arrival, serve_copy
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.tables.files import read_table
from cocite.corpus.release.manifest import read_manifest

DAYS = ("2026-05-01", "2026-05-20", "2026-06-10")
NEXT = "2026-07-24"
JOBS, BUCKETS = 2, 2
TABLES = ("papers", "abstracts", "citations")


def work(number: int, day: str, **others) -> dict:
    references = [2**31 + (number * step) % 60 for step in (1, 7, 11)]
    texts = {"title": f"Title {number}", "abstract": f"About {number}"}
    return made_work(2**31 + number, **texts, references=references, updated_date=day, **others)


def older_works() -> list[dict]:
    return [work(number, DAYS[number // 10 % 3]) for number in range(60)]


def newer_works() -> list[dict]:
    """The first partition is as it was; of the others some have moved to a newer one, or are gone; some are new.

    The last partition has lost all that was in its second file, and so the file.
    """
    kept = [each for number, each in enumerate(older_works()[:50]) if number not in (12, 15, 41, 44)]
    moved = [work(number, "2026-07-20", citation_count=9, year=2021) for number in (12, 15)]
    return [*kept, *moved, *(work(number, "2026-07-20") for number in range(60, 70))]


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two copies in each layout, by their days."""
    for day, works in {DATE: older_works(), NEXT: newer_works()}.items():
        monkeypatch.setattr("tests.corpus.made_openalex.DATE", day)
        for layout in FOLDERS:
            write_copy(tmp_path / day, layout, works, per_file=10)
    return {day: tmp_path / day for day in (DATE, NEXT)}


def call(command: str, *words: str, **options: object) -> Result:
    named = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    return CliRunner().invoke(app, ["corpus", command, *words, *named])


def succeed(command: str, *words: str, **options: object) -> None:
    result = call(command, *words, **options)
    assert result.exit_code == 0, result.exception or result.output


def make(
    copy: Path, day: str, format: str, results: Path, base: Path | None = None, faults: Faults | None = None
) -> list[Arrival]:
    """Make papers and citations by the commands of the pipeline; return what was asked for while files were fetched."""
    corpus, requests = results / "corpus", list[Arrival]()
    with serve_copy(copy, requests=requests, faults=faults) as origin:
        source = {"source": "openalex", "format": format, "url": f"{origin}/{FOLDERS[format]}", "jobs": JOBS}
        settings = json.dumps(source | ({} if base is None else {"base": str(base)}))
        listed = {"settings": settings, "results": results}
        succeed("list", **listed, release=day, output=corpus / "manifest.json")
        requests.clear()
        for part in range(JOBS):
            place = {"manifest": corpus / "manifest.json", "part": part, "parts": JOBS}
            raw = corpus / f"raw/works/{part}"
            succeed("download", "works", **listed, **place, state=results / f".state/{part}", output=raw)
            limits = {"buckets": BUCKETS, **LIMITS, "settings": "{}"}
            succeed("ingest-works", **place, **limits, shards=raw, **written(corpus, part))
            if base is not None:
                succeed("reuse-works", **place, base=base / "corpus", **written(corpus, JOBS + part))
    succeed(
        "account", str(corpus / "ingest_report/works"), malformed=0.0, omissions=corpus / "omissions/ingest.parquet"
    )
    for table in ("papers", "citations"):
        for bucket in range(BUCKETS):
            outputs = {"output": corpus / table / f"{bucket}.parquet"}
            outputs["omissions"] = corpus / f"omissions/{table}-{bucket}.parquet"
            succeed("merge", table, ingested=corpus / "ingested", bucket=bucket, **LIMITS, **outputs)
    return requests


def written(corpus: Path, part: int) -> dict[str, Path]:
    tables = {table: corpus / f"ingested/{table}/{part}.parquet" for table in TABLES}
    return tables | {"report": corpus / f"ingest_report/works/{part}.parquet"}


def assert_same(updated: Path, fresh: Path) -> None:
    for table in ("papers", "citations"):
        assert read_table(updated / "corpus" / table, table).equals(read_table(fresh / "corpus" / table, table))
    omissions = [sorted((results / "corpus/omissions").glob("*.parquet")) for results in (updated, fresh)]
    for mine, theirs in zip(*omissions, strict=True):
        assert read_table(mine, "omissions").equals(read_table(theirs, "omissions")), mine.name


@pytest.mark.parametrize(
    "format", ["parquet", *(pytest.param(name, marks=pytest.mark.long) for name in ("jsonl", "legacy"))]
)
def test_an_update_gives_the_tables_and_the_account_of_the_newer_copy_and_fetches_what_is_new(copies, format, tmp_path):
    make(copies[DATE], DATE, format, tmp_path / "base")
    requests = make(copies[NEXT], NEXT, format, tmp_path / "updated", base=tmp_path / "base")
    make(copies[NEXT], NEXT, format, tmp_path / "fresh")
    assert_same(tmp_path / "updated", tmp_path / "fresh")
    papers = {row["corpusid"]: row for row in read_table(tmp_path / "updated/corpus/papers", "papers").to_pylist()}
    assert papers[2**31 + 12]["year"] == 2021
    assert not {2**31 + 41, 2**31 + 50} & papers.keys()
    assert len(papers) == 58
    older, newer = (
        read_manifest(tmp_path / results / "corpus/manifest.json").datasets["works"].shards
        for results in ("base", "updated")
    )
    assert any(DAYS[2] in path for path in {shard.path for shard in older} - {shard.path for shard in newer})
    from_base = {shard.path for shard in newer if shard.in_base}
    assert {path.split("/")[1] for path in from_base} >= {f"updated_date={DAYS[0]}"}
    fetched = {request.path.partition("works/")[2] for request in requests}
    assert fetched == {shard.path.removeprefix("works/") for shard in newer if not shard.in_base} != set()


@pytest.mark.long
def test_an_updated_corpus_is_the_base_of_the_next_update(copies, tmp_path, monkeypatch):
    make(copies[DATE], DATE, "jsonl", tmp_path / "first")
    make(copies[NEXT], NEXT, "jsonl", tmp_path / "second", base=tmp_path / "first")
    monkeypatch.setattr("tests.corpus.made_openalex.DATE", "2026-08-24")
    third = [*newer_works()[:-3], work(70, "2026-08-20")]
    write_copy(tmp_path / "2026-08-24", "jsonl", third, per_file=10)
    make(tmp_path / "2026-08-24", "2026-08-24", "jsonl", tmp_path / "third", base=tmp_path / "second")
    make(tmp_path / "2026-08-24", "2026-08-24", "jsonl", tmp_path / "fresh")
    assert_same(tmp_path / "third", tmp_path / "fresh")


def test_a_base_that_is_not_older_is_refused(copies, tmp_path):
    make(copies[DATE], DATE, "legacy", tmp_path / "base")
    settings = {"source": "openalex", "format": "jsonl", "path": str(copies[DATE] / "data/jsonl")}
    settings = json.dumps(settings | {"base": str(tmp_path / "base")})
    result = call("list", settings=settings, results=tmp_path, release="latest", output="x")
    assert "is not later than that in corpus.base" in str(result.exception)


def test_a_base_that_has_lost_a_file_is_named(copies, tmp_path):
    make(copies[DATE], DATE, "jsonl", tmp_path / "base")
    make(copies[NEXT], NEXT, "jsonl", tmp_path / "updated", base=tmp_path / "base")
    next((tmp_path / "base/corpus/ingest_report/works").iterdir()).unlink()
    corpus = tmp_path / "updated/corpus"
    place = {"manifest": corpus / "manifest.json", "part": 0, "parts": 1, "base": tmp_path / "base/corpus"}
    result = call("reuse-works", **place, **written(corpus, 9))
    assert "has no rows of the file updated_date=" in str(result.exception)
