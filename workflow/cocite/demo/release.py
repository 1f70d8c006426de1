"""Writes a generated release: a folder in the layout of a real one, as the Datasets API would have it downloaded.

    <folder>/release.json                                      id, datasets, true counts
    <folder>/<dataset>/<date>_<time>_<shard>_<dataset>.gz      gzipped JSON Lines
    <folder>/<dataset>/README.txt

The same options give the same bytes. Rows are written as they are made, so that memory holds the literature alone.
"""

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from cocite.demo.literature import cite_literature, imagine_literature
from cocite.demo.records import abstract_records, citation_records, paper_records
from cocite.demo.shards import Record, shard_paths, write_rows
from cocite.ground.errors import InputError
from cocite.tables.files import atomic_path, write_json, write_text

_README = """\
{description}

This is generated data. No such paper was ever written: titles, abstracts, authors and citations were drawn at random,
with topics, so that citations and texts have something to do with each other. It has the layout, the fields and the
flaws of the Semantic Scholar Academic Graph's dataset "{name}" and serves to try out programs that read it.

Files are gzipped JSON Lines: one record a line. The data may be used freely.
"""
_DESCRIPTIONS = {
    "papers": "Generated papers: title, authors, year, venue, fields of study, counts of citations and references.",
    "abstracts": "Generated abstracts of those papers that have one.",
    "citations": "Generated citations between papers, some of them in several copies, some to unknown papers.",
}


def generate_release(output: Path, *, release: str, papers: int, topics: int, shards: int, seed: int) -> None:
    """Write the release `release` (a date) with so many papers, each dataset in so many shards.

    Raises `InputError` where the release is no date, or there are too few papers or too many topics.
    """
    day = parse_date(release)
    if papers < 1 or shards < 1:
        raise InputError(f"--papers and --shards: are {papers} and {shards}, must be at least 1.")
    literature = imagine_literature(papers, topics, day.year - 1, seed)
    references = cite_literature(literature, seed)
    influential: set[tuple[int, int]] = set()
    rows = {
        "citations": citation_records(literature, references, influential, seed),
        "papers": paper_records(literature, references, influential, seed),
        "abstracts": abstract_records(literature, seed),
    }
    with atomic_path(output) as folder:
        counts = {name: _write_dataset(folder / name, day, shards, rows[name]) for name in rows}
        counts["citations"] = sum(map(len, references))
        write_json(folder / "release.json", {"release_id": release, "datasets": list(_DESCRIPTIONS), **counts})


def parse_date(release: str) -> date:
    """The day that a release's id names. Raises `InputError` where it is no date."""
    try:
        return date.fromisoformat(release)
    except ValueError:
        raise InputError(f"--release: {release!r} is not a date such as 2026-01-06.") from None


def _write_dataset(folder: Path, day: date, shards: int, rows: Iterable[Record]) -> int:
    """Write a dataset and its README; return the number of rows."""
    write_text(folder / "README.txt", _README.format(name=folder.name, description=_DESCRIPTIONS[folder.name]))
    return write_rows(rows, shard_paths(folder, day, shards))
