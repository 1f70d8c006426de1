"""Of several copies of a work, in files of different days, the one in the last file counts, with all that is in it.

Files are named by their day and, within it, by their number, so that the last by name is the newest. Nothing of an
earlier copy stays: neither an abstract nor a citation that the newest copy no longer has, and nothing at all where the
configuration leaves the newest one out. Rows of releases that have one copy of a record a file do not name their file,
and are left as they are.
"""

from pathlib import Path

import duckdb

from cocite.core.tables.declarations.corpus import SHARD
from cocite.core.tables.files import scan_table

CURRENT = {"ingested_papers": "corpusid", "ingested_abstracts": "corpusid", "ingested_citations": "citing"}
"""Ingested table → the paper that a row of it is of."""
_OLDER = {
    "ingested_papers": "older copies of a paper, which is in a newer file as well",
    "ingested_abstracts": "abstracts of older copies of a paper",
    "ingested_citations": "citations of older copies of the paper that cites",
}


def names_files(folder: Path, table: str) -> bool:
    """Whether the rows of an ingested table name the file that they are from."""
    return SHARD in scan_table(folder, table).schema.names


def keep_newest(connection: duckdb.DuckDBPyConnection, tables: dict[str, duckdb.DuckDBPyRelation]) -> dict[str, str]:
    """Create a view of each table with the rows that count; return reason → query for how many do not.

    Each table is one bucket; the papers must be among them where rows name their file.
    """
    for name, rows in tables.items():
        rows.create_view(f"all_{name}")
    if not any(SHARD in rows.columns for rows in tables.values()):
        for name, rows in tables.items():
            rows.create_view(name)
        return {}
    connection.execute(
        "CREATE TEMP TABLE newest AS SELECT corpusid, max(shard::VARCHAR) AS shard FROM all_ingested_papers "
        "GROUP BY corpusid HAVING count(*) > 1"
    )
    reasons = {}
    for name, paper in CURRENT.items():
        if name not in tables:
            continue
        taken = "NOT rows.left_out" if name == "ingested_papers" else "true"
        older = "rows.shard::VARCHAR < newest.shard"
        joined = f"FROM all_{name} AS rows LEFT JOIN newest ON newest.corpusid = rows.{paper}"
        unwanted = [SHARD, "left_out"] if name == "ingested_papers" else [SHARD]
        connection.execute(
            f"CREATE VIEW {name} AS SELECT rows.* EXCLUDE ({', '.join(unwanted)}) {joined} "
            f"WHERE {taken} AND NOT coalesce({older}, false)"
        )
        if name != "ingested_papers" or "ingested_abstracts" in tables:  # beside citations, papers only say what counts
            reasons[_OLDER[name]] = f"SELECT count(*) {joined} WHERE {taken} AND {older}"
    return reasons
