"""Which papers can be drawn: those that fit the rule of the configuration.

A candidate has a text (`has_text`), a year and a field as asked for, is cited often enough, and cites enough papers
with text. An excluded paper is not a candidate.
"""

from collections.abc import Iterator

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from cocite.config.queries import QuerySettings
from cocite.core.errors import InputError

IDS_IN_BATCH = 1_000_000

Ids = NDArray[np.int64]


def find_candidates(connection: DuckDBPyConnection, settings: QuerySettings) -> None:
    """Make the tables `texts` (papers with a text) and `candidates`, with their references with text.

    Takes the tables papers, citations and `excluded` (corpusid). Raises `InputError` for a field that no paper has.
    """
    _check_fields(connection, settings.fields)
    connection.execute("CREATE TABLE texts AS SELECT corpusid FROM papers WHERE has_text")
    connection.execute(
        """
        CREATE TABLE candidates AS
        WITH cited AS (
            SELECT cited AS corpusid, count(*) AS citations FROM citations GROUP BY cited
        ), citing AS (
            SELECT citing AS corpusid, count(*) AS "references" FROM citations
            WHERE cited IN (FROM texts) GROUP BY citing
        ), described AS (
            SELECT corpusid FROM papers
            WHERE ($min_year IS NULL OR year >= $min_year) AND ($max_year IS NULL OR year <= $max_year)
            AND (len($fields) = 0 OR list_has_any(fields, $fields))
        )
        SELECT corpusid, coalesce("references", 0) AS "references"
        FROM texts SEMI JOIN described USING (corpusid)
        LEFT JOIN cited USING (corpusid) LEFT JOIN citing USING (corpusid)
        WHERE coalesce(citations, 0) >= $min_citations AND coalesce("references", 0) >= $min_references
        AND corpusid NOT IN (FROM excluded)
        """,
        {
            "min_citations": settings.min_citations,
            "min_references": settings.min_references,
            "min_year": settings.min_year,
            "max_year": settings.max_year,
            "fields": list(settings.fields),
        },
    )


def candidates(connection: DuckDBPyConnection, references: int) -> Iterator[Ids]:
    """Ids of the candidates with at least this many references with text, in batches."""
    query = 'SELECT corpusid FROM candidates WHERE "references" >= $references'
    for batch in connection.sql(query, params={"references": references}).to_arrow_reader(IDS_IN_BATCH):
        yield batch.column("corpusid").to_numpy()


def _check_fields(connection: DuckDBPyConnection, fields: tuple[str, ...]) -> None:
    if not fields:
        return
    named = connection.sql("SELECT DISTINCT unnest(fields) AS field FROM papers ORDER BY field")
    known = [field for (field,) in named.fetchall()]
    for field in fields:
        if field not in known:
            raise InputError(
                f"Configuration key queries.fields names {field!r}, which no paper of the release has; they have "
                f"{', '.join(known) or 'none'}."
            )
