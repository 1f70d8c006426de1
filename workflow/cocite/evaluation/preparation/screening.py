"""Reviews to screen: from tables of labels, and the papers and citations of the corpus, to the tables of a benchmark.

A review is a query of both tasks, and its candidates are the papers that it looked at, with relevance 1 if it included
them. The table reference_lists has all that these papers cite, papers without a record as well.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from cocite.config.benchmarks import names
from cocite.config.benchmarks.screening import Screening, ScreeningSettings
from cocite.config.settings import GivenAsJson
from cocite.core.database import connect
from cocite.core.errors import InputError
from cocite.core.options import Citations, MemoryMb, Omissions, Papers, Threads
from cocite.core.rows import Row, read_delimited, read_rows
from cocite.core.tables.files import verified_files, write_table
from cocite.evaluation.benchmark import Benchmark, Tables, TaskNames, write_benchmark

FEWEST = 2
"""Included papers that a review must have: one is known from the start."""
PAPER = re.compile(r"(?:https?://openalex\.org/)?[Ww]?0*(\d+)|(?:https?://(?:dx\.)?doi\.org/|doi:)?(10\.\S+/\S+)")
LABELS = {"1": True, "1.0": True, "true": True, "yes": True, "0": False, "0.0": False, "false": False, "no": False}
LABELLED = """
    SELECT review, corpusid, any_value(title), any_value(abstract), bool_or(included)
    FROM (
        SELECT review, included, papers.* FROM labels JOIN papers ON paper = corpusid::VARCHAR
        UNION ALL SELECT review, included, papers.* FROM labels JOIN papers ON paper = lower(doi)
    ) WHERE title IS NOT NULL OR abstract IS NOT NULL
    GROUP BY ALL ORDER BY ALL
"""
CITED = """
    SELECT citing, list(DISTINCT cited ORDER BY cited) AS cited
    FROM citations JOIN listed ON citing = corpusid WHERE citing <> cited
    GROUP BY citing ORDER BY citing
"""


def prepare_screening(
    *,
    papers: Papers,
    citations: Citations,
    settings: GivenAsJson[ScreeningSettings],
    tasks: TaskNames = "",
    memory_mb: MemoryMb,
    threads: Threads,
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Read which papers reviews included, and look the papers and their citations up in the corpus.

    Raises `InputError` if a label is none, or no review has two included papers and an excluded one in the corpus.
    """
    labels = list(read_labels(settings))
    columns = dict(zip(("review", "paper", "included"), map(list, zip(*labels, strict=True)), strict=True))
    with connect(memory_mb=memory_mb, threads=threads, spill_to=tables) as database:
        of_papers = ["corpusid", "title", "abstract", "doi"]
        database.read_parquet(verified_files(papers, "papers", of_papers)).create_view("papers")
        database.read_parquet(verified_files(citations, "citations")).create_view("citations")
        database.register("labels", pa.table(columns))
        rows = database.sql(LABELLED).fetchall()
        database.register("listed", pa.table({"corpusid": sorted({row[1] for row in rows})}))
        write_table(tables / "reference_lists.parquet", "reference_lists", database.sql(CITED).to_arrow_table())
    reviews: dict[str, dict[str, int]] = {}
    for review, paper, *_, is_included in rows:
        reviews.setdefault(review, {})[str(paper)] = int(is_included)
    kept = {review: of for review, of in reviews.items() if FEWEST <= sum(of.values()) < len(of)}
    listed, needed = len(set(columns["review"])), f"{FEWEST} included papers and an excluded one"
    if not kept:
        lacks = f"none of the {listed} reviews has {needed} that are in the corpus with a text"
        raise InputError(f"{settings.labels}: {lacks}.")
    asked = [task.name for task in Screening.declared if not tasks or task.name in names(tasks)]
    omitted = {
        "labelled paper that is not in the corpus, has no text, or is listed again": len(labels) - len(rows),
        f"review without {needed}": listed - len(kept),
    }
    documents = {str(paper): (title, abstract, (), None) for _, paper, title, abstract, _ in rows}
    benchmark = Benchmark(judgements=dict.fromkeys(asked, kept))
    write_benchmark(benchmark, documents, omitted, tables=tables, omissions=omissions)


def read_labels(settings: ScreeningSettings) -> Iterator[tuple[str, str, bool]]:
    """Review, id or DOI of a paper, and whether the review included it; rows without either id are passed over."""
    columns = settings.columns
    for path in map(Path, settings.files()):
        for row in _rows(path):
            review = path.name.partition(".")[0] if columns.review is None else row.identifier(columns.review)
            paper, label = str(row.values.get(columns.paper) or "").strip(), str(row.require(columns.included)).lower()
            if label not in LABELS:
                raise InputError(f"{row.place}: {columns.included} must be 1 or 0, true or false, not {label!r:.80}.")
            if (found := PAPER.fullmatch(paper)) is not None:
                yield review, found[1] or found[2].lower(), LABELS[label]
            elif paper:
                raise InputError(f"{row.place}: {columns.paper} must be a corpus id or a DOI, not {paper!r:.80}.")


def _rows(path: Path) -> Iterator[Row]:
    delimiter = {".csv": ",", ".tsv": "\t"}.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if delimiter is None:
        yield from read_rows(path)
        return
    rows = read_delimited(path, delimiter)
    _, columns = next(rows, (0, []))
    yield from (Row(dict(zip(columns, fields, strict=False)), path, number) for number, fields in rows if fields)
