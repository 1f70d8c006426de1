"""Match the papers of the corpus with Semantic Scholar's: by their ids in the Microsoft Academic Graph, then by DOI.

In: the table papers, and the records of Semantic Scholar's dataset papers, of which `corpusid` and `externalids` are
read. Out: the table `matches`. A key that two papers have on either side matches none of them: which is meant cannot be
told. Papers of the corpus with such a MAG id are not matched by their DOI either. DuckDB joins within the job's memory.
"""

from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from duckdb import DuckDBPyConnection

from cocite.config.release_folder import find_shards
from cocite.core.database import connect
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Omissions, Output, Papers, Threads
from cocite.core.progress import report
from cocite.core.tables.declarations.corpus import MAG
from cocite.core.tables.files import verified_files, write_omissions, write_table
from cocite.core.written_ids import DIGITS
from cocite.corpus.ingest.merge import number
from cocite.corpus.matching.dois import sql_of_doi

BY = {"mag": "MAG id", "doi": "DOI"}
"""What papers are matched by, in this order, and what it is called."""
LARGEST_RECORD = 1 << 23
"""Bytes of a line that DuckDB reads."""
ROWS_IN_BATCH = 100_000

OTHER_DOI = "papers matched by MAG id whose DOIs differ (kept)"
NO_KEY = "papers with neither a MAG id nor a DOI"
NOT_FOUND = "papers with a MAG id or DOI that no paper of Semantic Scholar has"


def matched_by(key: str) -> str:
    """What is said of the papers that are matched by a key."""
    return f"papers matched by {BY[key]} (kept)"


def ambiguous_by(key: str) -> str:
    """What is said of the papers that a key does not match because it is not theirs alone."""
    return f"papers whose {BY[key]} two papers have, here or there"


def match_papers(
    theirs: Annotated[Path, typer.Argument(help="Folder of Semantic Scholar's dataset papers.")],
    *,
    papers: Papers,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Match papers of other ids with Semantic Scholar's, by their MAG ids and DOIs.

    Raises `InputError` where the files of its dataset cannot be read or have no MAG ids and DOIs, and where the papers
    of the corpus have none.
    """
    shards = find_shards(theirs)
    if not shards:
        raise InputError(f"{theirs}: holds no files of Semantic Scholar's papers.")
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        _take_ours(connection, papers)
        _take_theirs(connection, theirs, shards)
        connection.execute("CREATE TABLE matches (corpusid BIGINT, s2_corpusid BIGINT, matched_by VARCHAR)")
        connection.execute("CREATE TABLE rest AS FROM ours WHERE mag IS NOT NULL OR doi IS NOT NULL")
        counts = {NO_KEY: number(connection, "SELECT count(*) FROM ours WHERE mag IS NULL AND doi IS NULL")}
        for key in BY:
            counts[ambiguous_by(key)] = _match(connection, key)
            counts[matched_by(key)] = number(connection, f"SELECT count(*) FROM matches WHERE matched_by = '{key}'")
        counts[NOT_FOUND] = number(connection, "SELECT count(*) FROM rest")
        counts[OTHER_DOI] = number(connection, _DIFFERENT)
        rows = connection.sql("FROM matches ORDER BY corpusid").to_arrow_reader(ROWS_IN_BATCH)
        write_table(output, "matches", rows)
    write_omissions(omissions, counts)
    for reason, count in counts.items():
        report(f"{count:,} {reason}")


_DIFFERENT = """
    SELECT count(DISTINCT matches.corpusid)
    FROM matches JOIN ours USING (corpusid) JOIN theirs ON s2_corpusid = theirs.corpusid
    WHERE matched_by = 'mag' AND ours.doi <> theirs.doi
"""


def _take_ours(connection: DuckDBPyConnection, papers: Path) -> None:
    """Make the table `ours`, of corpusid, mag and doi. Raises `InputError` where no paper has either."""
    given = connection.read_parquet(verified_files(papers, "papers", ["corpusid", MAG, "doi"]))
    given.create_view("papers")
    mag = MAG if MAG in given.columns else "NULL::BIGINT"
    connection.execute(f"CREATE TABLE ours AS SELECT corpusid, {mag} AS mag, {sql_of_doi('doi')} AS doi FROM papers")
    if number(connection, "SELECT count(*) FROM ours WHERE mag IS NOT NULL OR doi IS NOT NULL") == 0:
        raise InputError(
            f"{papers}: none of the {number(connection, 'SELECT count(*) FROM ours'):,} papers has a MAG id or a DOI, "
            "so that none can be matched; leave out corpus.match."
        )


def _take_theirs(connection: DuckDBPyConnection, folder: Path, shards: Sequence[Path]) -> None:
    """Make the table `theirs`, likewise. Raises `InputError` where a file cannot be read, or none has either."""
    mag, corpusid = (
        f"CASE WHEN regexp_full_match({text}, '{DIGITS}') THEN TRY_CAST({text} AS BIGINT) END"
        for text in ("externalids.MAG", "corpusid")
    )
    records = f"""
        read_json($files, format = 'newline_delimited', maximum_object_size = {LARGEST_RECORD},
            columns = {{corpusid: 'VARCHAR', externalids: 'STRUCT(MAG VARCHAR, DOI VARCHAR)'}})
    """
    try:
        connection.execute(
            f"""
            CREATE TABLE theirs AS FROM (
                SELECT {corpusid} AS corpusid, {mag} AS mag, {sql_of_doi("externalids.DOI")} AS doi FROM {records}
            ) WHERE corpusid IS NOT NULL AND (mag IS NOT NULL OR doi IS NOT NULL)
            """,
            {"files": [escape(str(shard)) for shard in shards]},
        )
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"{folder}: cannot be read as Semantic Scholar's dataset papers ({said}).") from None
    if number(connection, "SELECT count(*) FROM theirs") == 0:
        raise InputError(
            f"{folder}: no record has a corpusid and externalids with a MAG id or a DOI, as those of Semantic "
            "Scholar's dataset papers do; name its folder in corpus.match."
        )


def _match(connection: DuckDBPyConnection, key: str) -> int:
    """Move the papers that a key matches from `rest` to `matches`; drop those for which it does so to several, and
    return how many these are."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE pairs AS
        WITH one AS (
            SELECT {key}, min(corpusid) AS corpusid, min(corpusid) = max(corpusid) AS is_one
            FROM rest WHERE {key} IS NOT NULL GROUP BY {key}
        ), other AS (
            SELECT {key}, min(corpusid) AS s2_corpusid, min(corpusid) = max(corpusid) AS is_one
            FROM theirs ANTI JOIN matches ON theirs.corpusid = s2_corpusid WHERE {key} IS NOT NULL GROUP BY {key}
        )
        SELECT {key}, corpusid, s2_corpusid, one.is_one AND other.is_one AS is_clear
        FROM one JOIN other USING ({key})
        """
    )
    # A paper of theirs that comes twice with different keys would be matched twice.
    twice = "SELECT s2_corpusid FROM pairs WHERE is_clear GROUP BY s2_corpusid HAVING count(*) > 1"
    before = number(connection, "SELECT count(*) FROM rest")
    connection.execute(
        f"""
        INSERT INTO matches SELECT corpusid, s2_corpusid, '{key}' FROM pairs
        WHERE is_clear AND s2_corpusid NOT IN ({twice})
        """
    )
    connection.execute(f"CREATE OR REPLACE TABLE rest AS FROM rest ANTI JOIN pairs USING ({key})")
    moved = number(connection, f"SELECT count(*) FROM matches WHERE matched_by = '{key}'")
    return before - number(connection, "SELECT count(*) FROM rest") - moved
