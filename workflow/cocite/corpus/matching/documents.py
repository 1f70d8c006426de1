"""Which documents of a benchmark are which papers of the corpus, if their ids alone do not say so.

In: the table documents of a benchmark, and what leads from its documents to papers. Out: the table `document_papers`,
which is empty if nothing does; documents without a paper are counted and reported. Corpus ids that have no record in
papers are in the table too, marked as such: they may be ends of citations, and are kept out with the others.

Documents have Semantic Scholar's corpus ids or, as those of SciDocs, its hashes, which the dataset paper-ids translates
into corpus ids. If the ids of the corpus are others, the table matches leads on from there. Other documents without a
number are looked for by DOI, if their id is one, then by title. A title may be that of several papers, such as a
preprint and its published version: all of them are the document, since each would give it away.
"""

from collections import Counter, defaultdict
from glob import escape
from pathlib import Path
from typing import Annotated

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import typer
from duckdb import DuckDBPyConnection

from cocite.config.release_folder import find_shards
from cocite.core.database import connect
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Omissions, Output, Threads
from cocite.core.progress import report
from cocite.core.tables.documents import numbers_of, read_documents
from cocite.core.tables.files import checked_files, open_table, verified_files, write_omissions, write_table
from cocite.core.titles import normalised
from cocite.core.written_ids import DIGITS
from cocite.corpus.ingest.merge import number
from cocite.corpus.matching.dois import sql_of_doi

SHARED_BY = 5
"""Papers that may have the title of a document; if more have it, such as "Introduction", it tells none apart."""
NO_NUMBER = "documents whose id is no number"
UNKNOWN = "documents whose id is no number, and whose hash, DOI and title no paper has"
COMMON_TITLE = f"documents whose id is no number, and whose title more than {SHARED_BY} papers have"
NOT_MATCHED = "documents whose id no paper of the corpus is matched with"
NOT_COMPARED = "documents whose id is of another origin than the corpus's, and nothing matches the two"


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
    shards = find_shards(folder)
    records = """
        read_json($files, format = 'newline_delimited', columns = {sha: 'VARCHAR', corpusid: 'VARCHAR'})
    """
    known = f"sha IS NOT NULL AND regexp_full_match(corpusid, '{DIGITS}')"
    files = {"files": [escape(str(shard)) for shard in shards]}
    try:
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
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"{folder}: cannot be read as Semantic Scholar's dataset paper-ids ({said}).") from None
    if not has_hashes:
        raise InputError(
            f"{folder}: no record has a sha and a corpusid, as those of Semantic Scholar's dataset paper-ids do; name "
            "its folder in corpus.paper_ids."
        )


def _find_by_doi(connection: DuckDBPyConnection) -> None:
    """Add the papers that have the DOI which is a document's id."""
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
    told = {title: found for title, found in having.items() if len(found) <= SHARED_BY}
    rows = [
        {"document": document, "corpusid": paper}
        for title, found in told.items()
        for document in sought[title]
        for paper in found
    ]
    schema = pa.schema({"document": pa.string(), "corpusid": pa.int64()})
    connection.register("by_title", pa.Table.from_pylist(rows, schema))
    connection.execute("INSERT INTO found SELECT document, corpusid, 'title' FROM by_title")
    return sum(len(sought[title]) for title in having.keys() - told.keys())


def _titles_of(documents: Path, names: pa.Array) -> dict[str, list[str]]:
    """Of some documents that are no short queries, by their titles as they are compared: their names."""
    found = defaultdict(list)
    for batch in read_documents(documents):
        wanted = pc.and_(pc.is_in(batch["document"], value_set=names), pc.invert(batch["is_query"]))
        kept = batch.filter(wanted)
        for document, title in zip(kept["document"].to_pylist(), kept["title"].to_pylist(), strict=True):
            if key := normalised(title or ""):
                found[key].append(document)
    return dict(found)
