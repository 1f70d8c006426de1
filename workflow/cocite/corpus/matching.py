"""Match the papers of the corpus with Semantic Scholar's, and find the documents of a benchmark among them.

Papers with other ids are matched by their ids in the Microsoft Academic Graph, then by DOI (table `matches`). A key
that two papers have on either side matches none of them: which is meant cannot be told. Papers of the corpus with such
a MAG id are not matched by their DOI either.

Documents (table `document_papers`) have Semantic Scholar's corpus ids or, as those of SciDocs, its hashes, which the
dataset paper-ids translates into corpus ids; from there `matches` leads on. Others are looked for by DOI, if their id
is one, then by title. All papers with the title of a document, such as a preprint and its published version, are the
document, since each would give it away. Corpus ids without a record in papers are in the table too, marked as such:
they may be ends of citations, and are kept out with the others.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Annotated

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import typer
from duckdb import DuckDBPyConnection

from cocite.config.release_folder import find_shards
from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Omissions, Output, Papers, Threads
from cocite.core.progress import report
from cocite.core.tables.declarations.corpus import MAG
from cocite.core.tables.files import checked_files, open_table, verified_files, write_omissions, write_table
from cocite.core.tables.papers import numbers_of, read_documents
from cocite.core.text_ids import normalised
from cocite.core.written_ids import DIGITS
from cocite.corpus.ingest.records import sql_of_id

BY = {"mag": "MAG id", "doi": "DOI"}
"""What papers are matched by, in this order, and what it is called."""
LARGEST_RECORD = 1 << 23
"""Bytes of the longest line that DuckDB reads."""
ROWS_IN_BATCH = 100_000

OTHER_DOI = "papers matched by MAG id whose DOIs differ (kept)"
NO_KEY = "papers with neither a MAG id nor a DOI"
NOT_FOUND = "papers with a MAG id or DOI that no paper of Semantic Scholar has"
_DIFFERENT = """
    SELECT count(DISTINCT matches.corpusid)
    FROM matches JOIN ours USING (corpusid) JOIN theirs ON s2_corpusid = theirs.corpusid
    WHERE matched_by = 'mag' AND ours.doi <> theirs.doi
"""
SHARED_BY = 5
"""Papers that may have the title of a document; if more have it, such as "Introduction", it tells none apart."""
NO_NUMBER = "documents whose id is no number"
UNKNOWN = "documents whose id is no number, and whose hash, DOI and title no paper has"
COMMON_TITLE = f"documents whose id is no number, and whose title more than {SHARED_BY} papers have"
NOT_MATCHED = "documents whose id no paper of the corpus is matched with"
NOT_COMPARED = "documents whose id is of another origin than the corpus's, and nothing matches the two"


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
    if not (shards := find_shards(theirs)):
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


def _take_ours(connection: DuckDBPyConnection, papers: Path) -> None:
    """Make the table `ours`, of corpusid, mag and doi. Raises `InputError` where no paper has either."""
    given = connection.read_parquet(verified_files(papers, "papers", ["corpusid", MAG, "doi"])).create_view("papers")
    mag = MAG if MAG in given.columns else "NULL::BIGINT"
    connection.execute(f"CREATE TABLE ours AS SELECT corpusid, {mag} AS mag, {sql_of_doi('doi')} AS doi FROM papers")
    if number(connection, "SELECT count(*) FROM ours WHERE mag IS NOT NULL OR doi IS NOT NULL") == 0:
        raise InputError(
            f"{papers}: none of the {number(connection, 'SELECT count(*) FROM ours'):,} papers has a MAG id or a DOI, "
            "so that none can be matched; leave out corpus.match."
        )


def _take_theirs(connection: DuckDBPyConnection, folder: Path, shards: Sequence[Path]) -> None:
    """Make the table `theirs`, likewise. Raises `InputError` where a file cannot be read, or none has either."""
    mag, corpusid = sql_of_id("externalids.MAG"), sql_of_id("corpusid")
    with _explained(folder, "papers"):
        connection.execute(
            f"""
            CREATE TABLE theirs AS FROM (
                SELECT {corpusid} AS corpusid, {mag} AS mag, {sql_of_doi("externalids.DOI")} AS doi
                FROM read_json($files, format = 'newline_delimited', maximum_object_size = {LARGEST_RECORD},
                    columns = {{corpusid: 'VARCHAR', externalids: 'STRUCT(MAG VARCHAR, DOI VARCHAR)'}})
            ) WHERE corpusid IS NOT NULL AND (mag IS NOT NULL OR doi IS NOT NULL)
            """,
            {"files": [escape(str(shard)) for shard in shards]},
        )
    if number(connection, "SELECT count(*) FROM theirs") == 0:
        raise InputError(
            f"{folder}: no record has a corpusid and externalids with a MAG id or a DOI, as those of Semantic "
            "Scholar's dataset papers do; name its folder in corpus.match."
        )


@contextmanager
def _explained(folder: Path, dataset: str) -> Iterator[None]:
    """Turn what DuckDB says of files that it cannot read into an `InputError`."""
    try:
        yield
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"{folder}: cannot be read as Semantic Scholar's dataset {dataset} ({said}).") from None


def _match(connection: DuckDBPyConnection, key: str) -> int:
    """Move the papers that a key matches from `rest` to `matches`; drop the ambiguous ones, and return how many."""
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


def sql_of_doi(expression: str) -> str:
    """SQL expression: a DOI in lowercase without the address that resolves it; null if nothing is left."""
    return rf"nullif(regexp_replace(lower(trim({expression})), '^(https?://(dx\.)?doi\.org/|doi:\s*)', ''), '')"


def find_documents(
    documents: Annotated[Path, typer.Argument(help="Table documents of a benchmark.")],
    *,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    papers: Annotated[
        Path | None, typer.Option(help="Folder of the table papers; without it, no document is known to be a paper.")
    ] = None,
    matches: Annotated[
        Path | None, typer.Option(help="Table matches, if the corpus has other ids than the documents.")
    ] = None,
    paper_ids: Annotated[
        Path | None, typer.Option(help="Folder of Semantic Scholar's dataset paper-ids, by which hashes are found.")
    ] = None,
) -> None:
    """Find the documents of a benchmark among papers, if their ids alone do not say which they are.

    Those that are not found are counted by why. Raises `InputError` if the files of paper-ids cannot be read.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        connection.register("numbers", numbers_of(documents))
        for table in ("found", "without_record"):
            connection.execute(f"CREATE TABLE {table} (document VARCHAR, corpusid BIGINT, matched_by VARCHAR)")
        common = 0
        if papers:
            connection.read_parquet(verified_files(papers, "papers", ["corpusid", "doi"])).create_view("papers")
            _find_by_ids(connection, matches, paper_ids)
            _find_by_doi(connection)
            common = _find_by_title(connection, documents, papers)
        both = "SELECT *, true AS has_record FROM found UNION ALL SELECT *, false FROM without_record"
        rows = connection.sql(f"{both} ORDER BY document, corpusid").to_arrow_table()
        rest = "FROM numbers WHERE document NOT IN (SELECT document FROM found)"
        without, numbered = (number(connection, f"SELECT count({of}) {rest}") for of in ("*", "number"))
        among = number(connection, "SELECT count(*) FROM numbers")
    write_table(output, "document_papers", rows)
    left_out = (
        {UNKNOWN: without - numbered - common, COMMON_TITLE: common, NOT_MATCHED: numbered}
        if papers
        else {NO_NUMBER: without - numbered, NOT_COMPARED: numbered}
    )
    write_omissions(omissions, left_out)
    report(f"{among - without:,} of {among:,} documents are known to be papers of the corpus")
    for by, count in sorted(Counter(rows.filter(rows["has_record"])["matched_by"].to_pylist()).items()):
        report(f"{count:,} papers by {by}")
    for reason, count in left_out.items():
        report(f"{count:,} {reason}")


def _find_by_ids(connection: DuckDBPyConnection, matches: Path | None, paper_ids: Path | None) -> None:
    """Add the documents that have a corpus id of Semantic Scholar, or a hash that leads to one."""
    connection.execute(
        """
        CREATE TABLE hashes AS
        SELECT document, regexp_extract(lower(document), '(^|:)([0-9a-f]{40})$', 2) AS sha FROM numbers
        WHERE number IS NULL AND sha <> ''
        """
    )
    connection.execute("CREATE TABLE theirs AS SELECT document, number AS s2_corpusid, 'id' AS named_by FROM numbers")
    connection.execute("DELETE FROM theirs WHERE s2_corpusid IS NULL")
    if paper_ids:
        _read_hashes(connection, paper_ids)
    if matches is None:
        for table, join in (("found", "SEMI"), ("without_record", "ANTI")):
            connection.execute(f"INSERT INTO {table} FROM theirs {join} JOIN papers ON s2_corpusid = corpusid")
        return
    connection.read_parquet(verified_files(matches, "matches")).create_view("matches")
    connection.execute(
        """
        INSERT INTO found
        SELECT document, corpusid, if(named_by = 'id', matched_by, named_by)
        FROM theirs JOIN matches USING (s2_corpusid)
        """
    )


def _read_hashes(connection: DuckDBPyConnection, folder: Path) -> None:
    """Add to `theirs` the corpus ids of hashes, unless two records differ about one."""
    records = "read_json($files, format = 'newline_delimited', columns = {sha: 'VARCHAR', corpusid: 'VARCHAR'})"
    known = f"sha IS NOT NULL AND regexp_full_match(corpusid, '{DIGITS}')"
    files = {"files": [escape(str(shard)) for shard in find_shards(folder)]}
    with _explained(folder, "paper-ids"):
        has_hashes = connection.execute(f"SELECT 1 FROM {records} WHERE {known} LIMIT 1", files).fetchall()
        connection.execute(
            f"""
            INSERT INTO theirs
            SELECT document, min(corpusid::BIGINT), 'sha'
            FROM (SELECT lower(sha) AS sha, corpusid FROM {records} WHERE {known}) JOIN hashes USING (sha)
            GROUP BY document HAVING min(corpusid::BIGINT) = max(corpusid::BIGINT)
            """,
            files,
        )
    if not has_hashes:
        raise InputError(
            f"{folder}: no record has a sha and a corpusid, as those of Semantic Scholar's dataset paper-ids do; name "
            "its folder in corpus.paper_ids."
        )


def _find_by_doi(connection: DuckDBPyConnection) -> None:
    connection.execute(
        rf"""
        INSERT INTO found
        WITH rest AS (
            SELECT document, regexp_extract(lower(document), '(^|[:/])(10\.[0-9]{{4,9}}/.+)$', 2) AS doi FROM numbers
            WHERE number IS NULL AND document NOT IN (SELECT document FROM found) AND doi <> ''
        )
        SELECT document, corpusid, 'doi' FROM (SELECT corpusid, {sql_of_doi("doi")} AS doi FROM papers)
        JOIN rest USING (doi)
        """
    )


def _find_by_title(connection: DuckDBPyConnection, documents: Path, papers: Path) -> int:
    """Add the papers that have the title of a document; return of how many documents too many papers have it."""
    rest = "SELECT document FROM numbers WHERE number IS NULL AND document NOT IN (SELECT document FROM found)"
    sought = _titles_of(documents, connection.sql(rest).to_arrow_table()["document"].combine_chunks())
    having: dict[str, list[int]] = {title: [] for title in sought}
    for path in checked_files(papers, "papers") if having else ():
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "title"]):
            for paper, title in zip(*(batch[name].to_pylist() for name in ("corpusid", "title")), strict=True):
                found = having.get(normalised(title)) if title else None
                if found is not None and len(found) <= SHARED_BY:
                    found.append(paper)
    common = {title for title, found in having.items() if len(found) > SHARED_BY}
    rows = [
        {"document": document, "corpusid": paper}
        for title in having.keys() - common
        for document in sought[title]
        for paper in having[title]
    ]
    schema = pa.schema({"document": pa.string(), "corpusid": pa.int64()})
    connection.register("by_title", pa.Table.from_pylist(rows, schema))
    connection.execute("INSERT INTO found SELECT document, corpusid, 'title' FROM by_title")
    return sum(len(sought[title]) for title in common)


def _titles_of(documents: Path, names: pa.Array) -> dict[str, list[str]]:
    """Of some documents that are no short queries, by their titles as they are compared: their names."""
    found = defaultdict(list)
    for batch in read_documents(documents):
        kept = batch.filter(pc.and_(pc.is_in(batch["document"], value_set=names), pc.invert(batch["is_query"])))
        for document, title in zip(kept["document"].to_pylist(), kept["title"].to_pylist(), strict=True):
            if key := normalised(title or ""):
                found[key].append(document)
    return dict(found)
