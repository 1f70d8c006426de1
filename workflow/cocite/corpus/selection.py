"""Choose the queries: papers that anchor triplets, and papers held out of every graph, index and triplet.

A candidate has a title and an abstract, is cited often enough, and cites enough papers with text. Held-out papers are
drawn first, then queries among the rest, each by the smallest priorities (a seeded hash of the id): so the choice
depends on the papers alone, not on buckets, threads or the order of rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.database import connect
from cocite.errors import InputError
from cocite.files import scan_table, write_omissions, write_table
from cocite.randomness import priorities

HOLDOUT_REFERENCES = 5
"""References with text that a held-out paper needs: as many positives as the hold-out benchmark ranks."""
IDS_IN_BATCH = 1_000_000
UNKNOWN = "ids of the file that are no paper with title and abstract"
SHORT_OF_QUERIES = "queries asked for beyond the papers that fit the rule"
SHORT_OF_HOLDOUT = "held-out papers asked for beyond the papers that fit the rule"

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class QuerySettings:
    """The section `queries` of the configuration."""

    from_: str
    """rule, or file: then all ids of the file are queries, and the rule draws the held-out papers only."""
    path: str = ""
    """Text file with one corpus id a line."""
    count: int
    """Queries that the rule draws, for training and validation together."""
    min_citations: int
    """Distinct papers that must cite a candidate."""
    min_references: int
    """Papers with title and abstract that a candidate must cite."""
    validation: float
    """Share of the queries whose triplets validate instead of train."""
    holdout: int
    """Papers to hold out."""


def select(
    papers: Path,
    citations: Path,
    settings: QuerySettings,
    seed: int,
    *,
    output: Path,
    omissions: Path,
    memory_mb: int,
    threads: int,
) -> None:
    """Write the table `queries`, and by how much it falls short of what was asked for.

    Raises `InputError` if not one query is found, and for a file of ids that cannot be read.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        for name, folder in (("papers", papers), ("citations", citations)):
            connection.read_parquet(scan_table(folder, name).files).create_view(name)
        _find_candidates(connection, settings)
        counts = {UNKNOWN: 0, SHORT_OF_QUERIES: 0, SHORT_OF_HOLDOUT: 0}
        given = np.empty(0, dtype=np.int64)
        if settings.from_ == "file":
            given, counts[UNKNOWN] = _read_queries(connection, Path(settings.path))
        usable = _candidates(connection, HOLDOUT_REFERENCES, without=given)
        holdout = _draw(usable, settings.holdout, seed, "holdout")
        counts[SHORT_OF_HOLDOUT] = settings.holdout - len(holdout)
        queries = given
        if settings.from_ == "rule":
            queries = _draw(_candidates(connection, 0, without=holdout), settings.count, seed, "queries")
            counts[SHORT_OF_QUERIES] = settings.count - len(queries)
    if len(queries) == 0:
        raise InputError(_no_queries(settings, len(holdout)))
    write_table(output, "queries", _as_table(queries, holdout, settings.validation, seed))
    write_omissions(omissions, counts)


def _find_candidates(connection: duckdb.DuckDBPyConnection, settings: QuerySettings) -> None:
    """Make the tables `texts` (papers with title and abstract) and `candidates`, with their references with text."""
    connection.execute(
        "CREATE TABLE texts AS SELECT corpusid FROM papers WHERE title IS NOT NULL AND abstract IS NOT NULL"
    )
    connection.execute(
        """
        CREATE TABLE candidates AS
        WITH cited AS (
            SELECT cited AS corpusid, count(*) AS citations FROM citations GROUP BY cited
        ), citing AS (
            SELECT citing AS corpusid, count(*) AS "references" FROM citations
            WHERE cited IN (SELECT corpusid FROM texts) GROUP BY citing
        )
        SELECT corpusid, coalesce("references", 0) AS "references"
        FROM texts LEFT JOIN cited USING (corpusid) LEFT JOIN citing USING (corpusid)
        WHERE coalesce(citations, 0) >= $min_citations AND coalesce("references", 0) >= $min_references
        """,
        {"min_citations": settings.min_citations, "min_references": settings.min_references},
    )


def _candidates(connection: duckdb.DuckDBPyConnection, references: int, *, without: Ids) -> Iterator[Ids]:
    """Ids of the candidates with at least so many references with text, in batches, without the given ones."""
    query = 'SELECT corpusid FROM candidates WHERE "references" >= $references'
    for batch in connection.sql(query, params={"references": references}).to_arrow_reader(IDS_IN_BATCH):
        ids = batch.column("corpusid").to_numpy()
        yield ids[~np.isin(ids, without)]


def _draw(batches: Iterable[Ids], count: int, seed: int, split: str) -> Ids:
    """The `count` ids of smallest priority."""
    drawn = np.empty(0, dtype=np.int64)
    for ids in batches:
        drawn = _smallest(np.concatenate([drawn, ids]), count, seed, split)
    return drawn


def _smallest(ids: Ids, count: int, seed: int, split: str) -> Ids:
    return ids[np.argsort(priorities(seed, f"corpus select {split}", ids))[:count]]


def _read_queries(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[Ids, int]:
    """The distinct ids in a file that are papers with text, and the number of the others."""
    ids = _read_ids(path)
    connection.register("given", pa.table({"corpusid": ids}))
    known = connection.sql("SELECT corpusid FROM given WHERE corpusid IN (SELECT corpusid FROM texts)")
    found = known.to_arrow_table().column("corpusid").to_numpy()
    return found, len(ids) - len(found)


def _read_ids(path: Path) -> Ids:
    ids = set()
    # Editors that save "UTF-8 with BOM" put a mark before the first id; other bytes than digits are no id anyway.
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            text = line.strip()
            if text and not (text.isascii() and text.isdigit() and int(text) < 1 << 63):
                raise InputError(f"{path}, line {number}: {text!r} is not a corpus id; it must be a whole number.")
            if text:
                ids.add(int(text))
    return np.array(sorted(ids), dtype=np.int64)


def _no_queries(settings: QuerySettings, held_out: int) -> str:
    if settings.from_ == "file":
        return f"{settings.path}: none of its ids is a paper of the release with title and abstract."
    beside = f" beside the {held_out} held-out ones" if held_out else ""
    return (
        f"No paper can be a query{beside}: none has title and abstract, is cited by {settings.min_citations} papers "
        f"(queries.min_citations) and cites {settings.min_references} with text (queries.min_references); ask for less."
    )


def _as_table(queries: Ids, holdout: Ids, validation: float, seed: int) -> pa.Table:
    """The rows of `queries`; validation gets its share, but at least one of two queries or more."""
    share = max(round(validation * len(queries)), min(1, len(queries) - 1))
    validating = _smallest(queries, share, seed, "validation")
    splits = [(np.setdiff1d(queries, validating), "train"), (validating, "validation"), (holdout, "holdout")]
    tables = [pa.table({"corpusid": ids, "split": [split] * len(ids)}) for ids, split in splits if len(ids)]
    return pa.concat_tables(tables).sort_by("corpusid")
