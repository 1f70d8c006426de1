"""Which papers a sample has: the ones it starts from, what they cite, what cites them, and so on to a depth.

Of each paper at most so many references and as many citing papers are followed, those of the smallest priorities (a
seeded hash of both ids). So the sample depends neither on threads nor on buckets, and a larger number of neighbours, a
larger depth or more papers to start from only add to it.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from duckdb.func import PythonUDFType
from duckdb.sqltypes import BIGINT, UBIGINT

from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.randomness import priorities
from cocite.core.tables.splits import read_queries
from cocite.corpus.queries.named import ids_of_names
from cocite.corpus.queries.selection import Ids, read_ids

NAME = "corpus sample"


def queries_to_start_from(queries: Path, count: int, seed: int) -> Ids:
    """So many of the papers that anchor triplets, or all if there are fewer."""
    ids = read_queries(queries)["corpusid"].to_numpy()
    return ids[np.argsort(priorities(seed, NAME, ids))[:count]]


def listed_to_start_from(connection: DuckDBPyConnection, path: Path, names: Path) -> Ids:
    """The papers in a text file of ids, or of names where the corpus has a table of them.

    Raises `InputError` where one is no paper with a record.
    """
    ids, unnamed = ids_of_names(connection, path, names) if names.is_file() else (read_ids(path), [])
    connection.register("listed", pa.table({"corpusid": ids}))
    unrecorded = connection.sql("FROM listed ANTI JOIN papers USING (corpusid) ORDER BY corpusid").fetchall()
    unknown = [*unnamed, *(str(paper) for (paper,) in unrecorded)]
    if unknown:
        raise InputError(
            f"{path}: {len(unknown)} of its papers, the first {unknown[0]}, have no record in the corpus; name others."
        )
    if not len(ids):
        raise InputError(f"{path}: holds no id; a line has the id of a paper.")
    return ids


def gather_members(connection: DuckDBPyConnection, start: Ids, *, depth: int, neighbours: int, seed: int) -> None:
    """Make the table `members` (corpusid) of the papers of the sample, given the view `citations` (citing, cited)."""

    def priority(papers: pa.Array, others: pa.Array) -> pa.Array:
        return pa.array(priorities(seed, NAME, papers.to_numpy(), others.to_numpy()))

    connection.create_function("priority", priority, [BIGINT, BIGINT], UBIGINT, type=PythonUDFType.ARROW)
    connection.register("start", pa.table({"corpusid": start}))
    connection.execute("CREATE TEMP TABLE members AS SELECT DISTINCT corpusid FROM start")
    connection.execute("CREATE TEMP TABLE latest AS FROM members")
    for _ in progress(range(depth), of="neighbourhood", unit="steps"):
        connection.execute(_FOLLOW, {"neighbours": neighbours})
        connection.execute("INSERT INTO members FROM followed")
        connection.execute("CREATE OR REPLACE TEMP TABLE latest AS FROM followed")


_FOLLOW = """
    CREATE OR REPLACE TEMP TABLE followed AS
    WITH links AS (
        SELECT citing AS paper, cited AS other, true AS is_reference FROM citations WHERE citing IN (FROM latest)
        UNION ALL
        SELECT cited, citing, false FROM citations WHERE cited IN (FROM latest)
    ), ranked AS (
        SELECT other, row_number() OVER (
            PARTITION BY paper, is_reference ORDER BY priority(paper, other), other
        ) AS place
        FROM links
    )
    SELECT DISTINCT other AS corpusid FROM ranked
    WHERE place <= $neighbours AND other NOT IN (FROM members)
"""
