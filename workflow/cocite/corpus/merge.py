"""Merge one bucket of what the parts have ingested: each paper with its abstract, each citation once.

A release can hold the same record in several shards, and the copies may disagree. What is kept of them depends on
their content alone, never on the shard or part that they came from: of several copies of an abstract the longest, and
among these the first by text; of a paper the one that has a title and states most citations; of a citation the union
of the intents, and it is influential if any copy says so.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from cocite.corpus.intents import list_of_mask, mask_of_list
from cocite.database import connect
from cocite.files import scan_table, write_omissions, write_table

ROWS_IN_BATCH = {"papers": 20_000, "citations": 100_000}
"""Rows that are written at once: abstracts come at about 1.3 kB, and a batch of them must stay small."""

_PAPERS = """
    WITH distinct_papers AS (
        SELECT * FROM ingested_papers
        QUALIFY row_number() OVER (
            PARTITION BY corpusid
            ORDER BY title IS NULL, citation_count DESC NULLS LAST, reference_count DESC NULLS LAST,
                title, year, venue, doi, fields
        ) = 1
    ), distinct_abstracts AS (
        SELECT * FROM ingested_abstracts
        QUALIFY row_number() OVER (PARTITION BY corpusid ORDER BY length(abstract) DESC, abstract) = 1
    )
    SELECT * FROM distinct_papers LEFT JOIN distinct_abstracts USING (corpusid) ORDER BY corpusid
"""
_CITATIONS = f"""
    SELECT citing, cited, bool_or(influential) AS influential,
        {list_of_mask(f"bit_or({mask_of_list('intents')})")} AS intents
    FROM ingested_citations GROUP BY citing, cited ORDER BY citing, cited
"""
_QUERIES = {"papers": _PAPERS, "citations": _CITATIONS}
_OMISSIONS = {
    "papers": {
        "further copies of a paper": "SELECT count(*) - $written FROM ingested_papers",
        "further copies of an abstract": "SELECT count(*) - count(DISTINCT corpusid) FROM ingested_abstracts",
        "abstracts without a paper": """
            SELECT count(DISTINCT corpusid) FROM ingested_abstracts
            WHERE corpusid NOT IN (SELECT corpusid FROM ingested_papers)
        """,
    },
    "citations": {"further copies of a citation in other parts": "SELECT count(*) - $written FROM ingested_citations"},
}


def merge(
    table: str, files: Mapping[str, Sequence[Path]], *, output: Path, omissions: Path, memory_mb: int, threads: int
) -> None:
    """Write one bucket of `papers` or `citations`, and what was left out.

    `files` has the bucket's file of every part for each ingested table: `ingested_papers` and `ingested_abstracts`,
    or `ingested_citations`.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        for name, paths in files.items():
            scan_table(paths, name)
            connection.read_parquet([str(path) for path in paths]).create_view(name)
        written = write_table(output, table, connection.sql(_QUERIES[table]).to_arrow_reader(ROWS_IN_BATCH[table]))
        counts = {reason: _count(connection, query, written) for reason, query in _OMISSIONS[table].items()}
        write_omissions(omissions, counts)


def _count(connection: duckdb.DuckDBPyConnection, query: str, written: int) -> int:
    """The number that a query of `_OMISSIONS` yields, once so many rows are written."""
    ((count,),) = connection.execute(query, {"written": written} if "$written" in query else None).fetchall()
    return int(count)
