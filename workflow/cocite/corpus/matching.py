"""Match the papers of the corpus with Semantic Scholar's, and find the documents of a benchmark among them.

Papers with other ids are matched by MAG id, then by DOI (table `matches`); a key that two papers have on either side
matches neither. Documents (table `document_papers`) have corpus ids, or hashes that lead to them; others are looked for
by DOI, then by text: all papers that are one work with a document are that document, since each would give it away.
"""

from collections import Counter
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Annotated, Any

import duckdb
import pyarrow as pa
import typer
from duckdb import DuckDBPyConnection

from cocite.config.release_folder import find_shards
from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Omissions, Output, Papers, Threads
from cocite.core.progress import report
from cocite.core.tables.declarations.corpus import MAG
from cocite.core.tables.files import verified_files, write_omissions, write_table
from cocite.core.tables.papers import numbers_of
from cocite.core.written_ids import DIGITS
from cocite.corpus.ingest.records import sql_of_id
from cocite.corpus.same_work import SHARED_BY, compared, reason_of, record, title_words

BY = {"mag": "MAG id", "doi": "DOI"}
"""What papers are matched by, in this order, and what it is called."""
LARGEST_RECORD = 1 << 23
"""Bytes of the longest line that DuckDB reads."""
ROWS_IN_BATCH = 100_000

OTHER_DOI = "papers matched by MAG id whose DOIs differ (kept)"
NO_KEY = "papers with neither a MAG id nor a DOI"
NOT_FOUND = "papers with a MAG id or DOI that no paper of Semantic Scholar has"
PAIRS_AT_ONCE, TITLES_AT_ONCE = 2_048, 8_192
UNKNOWN = "documents that no paper is, by id, hash, DOI or title"
COMMON_TITLE = f"documents whose title more than {SHARED_BY} papers have"
OTHER_TEXT = "documents whose title a paper has that cannot be said to be the same"


def matched_by(key: str) -> str:
    """What is said of the papers that are matched by a key."""
    return f"papers matched by {BY[key]} (kept)"


def ambiguous_by(key: str) -> str:
    """The reason for papers with an ambiguous key."""
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

    Raises `InputError` if the files of its dataset cannot be read or have no MAG ids and DOIs, or if the papers of the
    corpus have none.
    """
    if not find_shards(theirs):
        raise InputError(f"{theirs}: contains no files of Semantic Scholar's papers.")
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        given = connection.read_parquet(verified_files(papers, "papers", ["corpusid", MAG, "doi"]))
        given.create_view("papers")
        mag = MAG if MAG in given.columns else "NULL::BIGINT"
        ours = f"SELECT corpusid, {mag} AS mag, {sql_of_doi('doi')} AS doi FROM papers"
        connection.execute(f"CREATE TABLE ours AS {ours}")
        connection.execute("CREATE TABLE rest AS FROM ours WHERE mag IS NOT NULL OR doi IS NOT NULL")
        in_all, with_key = (number(connection, f"SELECT count(*) FROM {table}") for table in ("ours", "rest"))
        if with_key == 0:
            why = "so that none can be matched; leave out corpus.match."
            raise InputError(f"{papers}: none of the {in_all:,} papers has a MAG id or a DOI, {why}")
        _take_theirs(connection, theirs)
        connection.execute("CREATE TABLE matches (corpusid BIGINT, s2_corpusid BIGINT, matched_by VARCHAR)")
        counts = {NO_KEY: in_all - with_key}
        for key in BY:
            matched, ambiguous = _match(connection, key)
            counts |= {ambiguous_by(key): ambiguous, matched_by(key): matched}
        counts[NOT_FOUND] = number(connection, "SELECT count(*) FROM rest")
        both = "matches JOIN ours USING (corpusid) JOIN theirs ON s2_corpusid = theirs.corpusid"
        differ = "matched_by = 'mag' AND ours.doi <> theirs.doi"
        counts[OTHER_DOI] = number(connection, f"SELECT count(DISTINCT matches.corpusid) FROM {both} WHERE {differ}")
        rows = connection.sql("FROM matches ORDER BY corpusid").to_arrow_reader(ROWS_IN_BATCH)
        write_table(output, "matches", rows)
    write_omissions(omissions, counts)
    for reason, count in counts.items():
        report(f"{count:,} {reason}")


def _take_theirs(connection: DuckDBPyConnection, folder: Path) -> None:
    """Make the table `theirs` of the papers with a MAG id or a DOI."""
    mag, corpusid = sql_of_id("externalids.MAG"), sql_of_id("corpusid")
    query = f"""
        CREATE TABLE theirs AS FROM (
            SELECT {corpusid} AS corpusid, {mag} AS mag, {sql_of_doi("externalids.DOI")} AS doi
            FROM read_json($files, hive_partitioning = false, format = 'newline_delimited',
                maximum_object_size = {LARGEST_RECORD},
                columns = {{corpusid: 'VARCHAR', externalids: 'STRUCT(MAG VARCHAR, DOI VARCHAR)'}})
        ) WHERE corpusid IS NOT NULL AND (mag IS NOT NULL OR doi IS NOT NULL)
    """
    _query_dataset(connection, query, folder, "papers")
    if number(connection, "SELECT count(*) FROM theirs") == 0:
        why = "as those of Semantic Scholar's dataset papers do; name its folder in corpus.match."
        raise InputError(f"{folder}: no record has a corpusid and externalids with a MAG id or a DOI, {why}")


def _query_dataset(connection: DuckDBPyConnection, query: str, folder: Path, dataset: str) -> list[tuple[Any, ...]]:
    files = [escape(str(shard)) for shard in find_shards(folder)]
    try:
        return connection.execute(query, {"files": files}).fetchall()
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"{folder}: cannot be read as Semantic Scholar's dataset {dataset} ({said}).") from None


def _match(connection: DuckDBPyConnection, key: str) -> tuple[int, int]:
    """Move the papers that a key matches from `rest` to `matches`, and drop the ambiguous; return their numbers."""
    connection.execute(f"""
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
    """)
    # A paper of theirs that comes twice with different keys would be matched twice.
    clear = f"SELECT corpusid, s2_corpusid, '{key}' FROM pairs WHERE is_clear"
    once = "QUALIFY count(*) OVER (PARTITION BY s2_corpusid) = 1"
    matched = number(connection, f"INSERT INTO matches {clear} {once}")
    return matched, number(connection, f"DELETE FROM rest WHERE {key} IN (SELECT {key} FROM pairs)") - matched


def sql_of_doi(expression: str) -> str:
    """SQL expression: a DOI in lowercase without the address that resolves it and without punctuation at its end; null
    if nothing is left."""
    around = r"^((https?://)?(www\.|dx\.)?doi\.org/|doi:\s*)|[.,;]+$"
    return f"nullif(regexp_replace(lower(trim({expression})), '{around}', '', 'g'), '')"


def find_documents(
    documents: Annotated[Path, typer.Argument(help="Table documents of a benchmark.")],
    *,
    papers: Papers,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    matches: Annotated[
        Path | None, typer.Option(help="Table matches, if the corpus has other ids than the documents.")
    ] = None,
    paper_ids: Annotated[
        Path | None, typer.Option(help="Folder of Semantic Scholar's dataset paper-ids, by which hashes are found.")
    ] = None,
    text_only: Annotated[
        bool, typer.Option("--text-only", help="Ignore numbers and hashes, which are of another origin.")
    ] = False,
) -> None:
    """Find the documents of a benchmark among papers, if their ids alone do not identify them.

    Documents that are not found are counted by reason. Raises `InputError` if the files of paper-ids cannot be read.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        connection.register("numbers", numbers_of(documents))
        columns = "document VARCHAR, corpusid BIGINT, matched_by VARCHAR, has_record BOOLEAN"
        connection.execute(f"CREATE TABLE found ({columns})")
        connection.read_parquet(verified_files(papers, "papers", ["corpusid", "doi"])).create_view("papers")
        if not text_only:
            _find_by_ids(connection, matches, paper_ids)
        connection.execute(rf"""
            INSERT INTO found
            WITH rest AS (
                SELECT document, regexp_extract(lower(document), '(^|[:/])(10\.[0-9]{{4,9}}/.+)$', 2) AS doi
                FROM numbers WHERE document NOT IN (SELECT document FROM found WHERE has_record) AND doi <> ''
            )
            SELECT document, corpusid, 'doi', true
            FROM (SELECT corpusid, {sql_of_doi("doi")} AS doi FROM papers) JOIN rest USING (doi)
        """)
        left_out = _find_by_text(connection, documents, papers)
        rows = connection.sql("FROM found ORDER BY document, corpusid").to_arrow_table()
        among = number(connection, "SELECT count(*) FROM numbers")
    write_table(output, "document_papers", rows)
    write_omissions(omissions, left_out)
    report(f"{among - sum(left_out.values()):,} of {among:,} documents are known to be papers of the corpus")
    for by, count in sorted(Counter(rows.filter(rows["has_record"])["matched_by"].to_pylist()).items()):
        report(f"{count:,} papers by {by}")
    for reason, count in left_out.items():
        report(f"{count:,} {reason}")


def _find_by_ids(connection: DuckDBPyConnection, matches: Path | None, paper_ids: Path | None) -> None:
    """Add the documents that have a corpus id of Semantic Scholar, or a hash that leads to one. Ids without a record in
    papers are added too, marked as such: they may be ends of citations, and are kept out with the others."""
    connection.execute("""
        CREATE TABLE theirs AS
        SELECT document, number AS s2_corpusid, 'id' AS named_by FROM numbers WHERE number IS NOT NULL
    """)
    if paper_ids:
        _read_hashes(connection, paper_ids)
    if matches is None:
        connection.execute("INSERT INTO found SELECT *, s2_corpusid IN (SELECT corpusid FROM papers) FROM theirs")
        return
    connection.read_parquet(verified_files(matches, "matches")).create_view("matches")
    connection.execute("""
        INSERT INTO found
        SELECT document, corpusid, if(named_by = 'id', matched_by, named_by), true
        FROM theirs JOIN matches USING (s2_corpusid)
    """)


def _read_hashes(connection: DuckDBPyConnection, folder: Path) -> None:
    """Add to `theirs` the corpus ids of hashes, unless two records differ about one."""
    columns = "columns = {sha: 'VARCHAR', corpusid: 'VARCHAR'}"
    records = f"read_json($files, hive_partitioning = false, format = 'newline_delimited', {columns})"
    known = f"sha IS NOT NULL AND regexp_full_match(corpusid, '{DIGITS}')"
    query = f"""
        INSERT INTO theirs
        WITH hashes AS (
            SELECT document, regexp_extract(lower(document), '(^|:)([0-9a-f]{{40}})$', 2) AS sha FROM numbers
            WHERE number IS NULL AND sha <> ''
        )
        SELECT document, min(corpusid::BIGINT), 'sha'
        FROM (SELECT lower(sha) AS sha, corpusid FROM {records} WHERE {known}) JOIN hashes USING (sha)
        GROUP BY document HAVING min(corpusid::BIGINT) = max(corpusid::BIGINT)
    """
    has_hashes = _query_dataset(connection, f"SELECT 1 FROM {records} WHERE {known} LIMIT 1", folder, "paper-ids")
    _query_dataset(connection, query, folder, "paper-ids")
    if not has_hashes:
        why = "as those of Semantic Scholar's dataset paper-ids do; name its folder in corpus.paper_ids."
        raise InputError(f"{folder}: no record has a sha and a corpusid, {why}")


def _find_by_text(connection: DuckDBPyConnection, documents: Path, papers: Path) -> dict[str, int]:
    """Add the papers that have the title of a document and are one work with it; count the documents without any."""
    known = "SELECT document FROM found WHERE has_record"
    connection.execute(f"CREATE TABLE sought AS FROM numbers WHERE document NOT IN ({known})")
    theirs = {"documents": verified_files(documents, "documents", ["document", "title", "abstract"])}
    ours = {"papers": verified_files(papers, "papers", ["corpusid", "title", "abstract"])}
    titled = "SELECT {}, title FROM read_parquet(${}, hive_partitioning = false)".format
    sought = f"{titled('document', 'documents')} SEMI JOIN sought USING (document)"
    add_titles(connection, "of_documents", sought, theirs)
    add_titles(connection, "of_papers", titled("corpusid", "papers"), ours)
    some = f"list(corpusid)[:{SHARED_BY + 1}]"
    shared = f"SELECT key, {some} AS papers FROM of_papers SEMI JOIN of_documents USING (key) GROUP BY key"
    connection.execute(f"CREATE TABLE sharing AS {shared}")
    query = f"""
        WITH pair AS (
            SELECT document, unnest(papers) AS corpusid, len(papers) AS with_title
            FROM of_documents JOIN sharing USING (key) WHERE len(papers) <= {SHARED_BY}
        ), paper AS (
            SELECT corpusid, title AS other_title, abstract AS other_abstract
            FROM read_parquet($papers, hive_partitioning = false) WHERE corpusid IN (SELECT corpusid FROM pair)
        )
        SELECT document, corpusid, with_title, title, abstract, other_title, other_abstract
        FROM pair JOIN read_parquet($documents, hive_partitioning = false) USING (document) JOIN paper USING (corpusid)
    """
    found = []
    for batch in connection.sql(query, params=theirs | ours).to_arrow_reader(PAIRS_AT_ONCE):
        for pair, abstracts in compared(batch):
            if reason_of(record(pair["title"]), record(pair["other_title"]), abstracts, pair["with_title"]):
                found.append(pair)
    schema = pa.schema({"document": pa.string(), "corpusid": pa.int64()})
    connection.register("by_text", pa.Table.from_pylist(found, schema))
    connection.execute("INSERT INTO found SELECT document, corpusid, 'text', true FROM by_text")
    connection.execute("DELETE FROM sought WHERE document IN (SELECT document FROM by_text)")
    among = "SELECT count(*) FROM sought JOIN of_documents USING (document) JOIN sharing USING (key) WHERE len(papers)"
    common, other = (number(connection, f"{among} {than} {SHARED_BY}") for than in (">", "<="))
    unknown = number(connection, "SELECT count(*) FROM sought") - common - other
    return {UNKNOWN: unknown, COMMON_TITLE: common, OTHER_TEXT: other}


def add_titles(db: DuckDBPyConnection, table: str, rows: str, given: Mapping[str, Any]) -> None:
    """Add the rows of a query to a table, which is made if there is none, by the words of their titles. The column
    `title` becomes `words`, their number, and `key`, their hash, which is null if there are none."""
    empty = f"SELECT * EXCLUDE title, 0::INTEGER AS words, NULL::UBIGINT AS key FROM ({rows}) LIMIT 0"
    db.execute(f"CREATE TABLE IF NOT EXISTS {table} AS {empty}", given)
    with db.cursor() as reading:
        for batch in reading.sql(rows, params=given).to_arrow_reader(TITLES_AT_ONCE):
            words = [title_words(title) for title in batch["title"].to_pylist()]
            counts, joined = pa.array(map(len, words), pa.int32()), pa.array(map("".join, words), pa.string())
            columns = {name: batch[name] for name in batch.schema.names if name != "title"}
            db.register("batch", pa.table(columns | {"words": counts, "joined": joined}))
            db.execute(f"INSERT INTO {table} SELECT * EXCLUDE joined, if(words > 0, hash(joined), NULL) FROM batch")
            db.unregister("batch")
