"""Merge one bucket of what was ingested: each paper with its abstract, each citation once.

The copy that is kept depends only on content, never on the shard: of an abstract the longest, then the first by text;
of a paper the one that has a title and the highest citation count. A citation gets the union of the intents, and is
influential if any copy is. But of a work, the copy in the last file by name, and so by day, replaces all earlier ones.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import duckdb
import typer

from cocite.config.cuts import is_later, year_of_day
from cocite.config.graphs import INTENTS
from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.options import Bucket, MemoryMb, Omissions, Output, Threads, Until
from cocite.core.tables.declarations.corpus import AUTHORS, MAG, SHARD
from cocite.core.tables.files import checked_files, scan_table, verified_files, write_omissions, write_table

INFLUENTIAL = 1 << len(INTENTS)
"""The bit that says that a citation is influential."""
UNKNOWN_INTENT = 2 * INFLUENTIAL
"""The bit that says that a citation has an intent that is none of `INTENTS`; it is counted, and treated as none."""
BUCKET_KEYS = {"papers": "corpusid", "abstracts": "corpusid", "citations": "citing"}
"""The column that rows are cut into buckets by."""
ROWS_IN_BATCH = {"papers": 20_000, "abstracts": 20_000, "citations": 100_000}
"""Rows that are written at once: abstracts come at about 1.3 kB, and a batch of them must stay small."""

_PAPERS = """
    WITH distinct_papers AS (
        SELECT * EXCLUDE bucket FROM ingested_papers
        QUALIFY row_number() OVER (
            PARTITION BY corpusid
            ORDER BY title IS NULL, citation_count DESC NULLS LAST, reference_count DESC NULLS LAST,
                title, year, date, venue, doi, fields{further}
        ) = 1
    ), distinct_abstracts AS (
        SELECT * EXCLUDE bucket FROM ingested_abstracts
        QUALIFY row_number() OVER (PARTITION BY corpusid ORDER BY length(abstract) DESC, abstract) = 1
    )
    SELECT *, title IS NOT NULL AND (abstract IS NOT NULL OR {allow_missing_abstract}) AS has_text
    FROM distinct_papers LEFT JOIN distinct_abstracts USING (corpusid) ORDER BY corpusid
"""
_INTENTS = ", ".join(f"CASE WHEN traits & {1 << bit} > 0 THEN '{name}' END" for bit, name in enumerate(INTENTS))
_CITATIONS = f"""
    WITH united AS (SELECT citing, cited, bit_or(traits) AS traits FROM ingested_citations GROUP BY citing, cited)
    SELECT citing, cited, traits & {INFLUENTIAL} > 0 AS influential,
        list_filter([{_INTENTS}], lambda name: name IS NOT NULL) AS intents
    FROM united ORDER BY citing, cited
"""
_OMISSIONS = {
    "papers": {
        "papers without title (kept, with a null title)": "SELECT count(*) FROM written WHERE title IS NULL",
        "papers without the texts that triplets need (kept)": "SELECT count(*) FROM written WHERE NOT has_text",
        "papers without a year (kept; corpus.until takes them for earlier)": """
            SELECT count(*) FROM written WHERE year IS NULL
        """,
        "further copies of a paper": "SELECT count(*) - (SELECT count(*) FROM written) FROM ingested_papers",
        "further copies of an abstract": "SELECT count(*) - count(DISTINCT corpusid) FROM ingested_abstracts",
        "abstracts without a paper": """
            SELECT count(DISTINCT corpusid) FROM ingested_abstracts
            WHERE corpusid NOT IN (SELECT corpusid FROM ingested_papers)
        """,
    },
    "citations": {
        "further copies of a citation": "SELECT count(*) - (SELECT count(*) FROM written) FROM ingested_citations",
        "copies of a citation with an unknown intent (kept, as if they had none)": f"""
            SELECT count(*) FROM ingested_citations WHERE traits & {UNKNOWN_INTENT} > 0
        """,
    },
}
_OLDER = {
    "ingested_papers": "older copies of a paper, which is in a newer file as well",
    "ingested_abstracts": "abstracts of older copies of a paper",
    "ingested_citations": "citations of older copies of the paper that cites",
}


def merge(
    table: Annotated[Literal["papers", "citations"], typer.Argument(help="The table to write.")],
    *,
    ingested: Annotated[Path, typer.Option(help="Folder of the ingested rows, with a folder for each dataset.")],
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    allow_missing_abstract: Annotated[bool, typer.Option(help="Count a title without an abstract as a text.")] = False,
    until: Until = None,
) -> None:
    """Write a bucket of papers, each once and with its abstract, or of citations, each once.

    Citations need the ingested papers as well if these are works, whose newest copy counts, or to know who is
    from after `until`. Raises `InputError` if no paper has a year or date, or `until` is before or after all years.
    """
    datasets = read = ["papers", "abstracts"] if table == "papers" else ["citations"]
    if table == "citations":
        are_works = SHARD in scan_table(ingested / "citations", "ingested_citations").schema.names
        read = ["citations", "papers"] if are_works or until is not None else datasets
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        tables = {}
        for dataset in read:
            name = f"ingested_{dataset}"
            files = verified_files(ingested / dataset, name, bucket=bucket)
            tables[name] = connection.read_parquet(files).filter(f"bucket = {bucket}")
        of_older_copies = keep_newest(connection, tables)
        of_later = {} if until is None else leave_out_later(connection, datasets, ingested / "papers", until)
        columns = connection.view("ingested_papers").columns if table == "papers" else []
        further = [name for name in (AUTHORS, MAG) if name in columns]
        query = _CITATIONS
        if table == "papers":
            names = "".join(f", {name}" for name in further)
            query = _PAPERS.format(further=names, allow_missing_abstract=allow_missing_abstract)
        write_table(output, table, connection.sql(query).to_arrow_reader(ROWS_IN_BATCH[table]))
        connection.read_parquet(str(output)).create_view("written")
        queries = _OMISSIONS[table] | of_older_copies | of_later
        if AUTHORS in further:
            queries["papers without authors (kept)"] = f"SELECT count(*) FROM written WHERE len({AUTHORS}) = 0"
        write_omissions(omissions, {reason: number(connection, query) for reason, query in queries.items()})


def keep_newest(connection: duckdb.DuckDBPyConnection, tables: dict[str, duckdb.DuckDBPyRelation]) -> dict[str, str]:
    """Create a view of each table, one bucket, with the rows that count; return reason → query for how many do not."""
    works = any(SHARD in rows.columns for rows in tables.values())
    for name, rows in tables.items():
        rows.create_view(f"all_{name}" if works else name)
    if not works:
        return {}
    newest = "SELECT corpusid, max(shard::VARCHAR) AS shard FROM all_ingested_papers GROUP BY corpusid"
    connection.execute(f"CREATE TEMP TABLE newest AS {newest} HAVING count(*) > 1")
    reasons = {}
    for name in tables:
        paper = BUCKET_KEYS[name.removeprefix("ingested_")]
        taken = "NOT rows.left_out" if name == "ingested_papers" else "true"
        older = "rows.shard::VARCHAR < newest.shard"
        joined = f"FROM all_{name} AS rows LEFT JOIN newest ON newest.corpusid = rows.{paper}"
        unwanted = f"{SHARD}, left_out" if name == "ingested_papers" else SHARD
        counting = f"{joined} WHERE {taken} AND NOT coalesce({older}, false)"
        connection.execute(f"CREATE VIEW {name} AS SELECT rows.* EXCLUDE ({unwanted}) {counting}")
        if name != "ingested_papers" or "ingested_abstracts" in tables:  # else papers only determine which rows count
            reasons[_OLDER[name]] = f"SELECT count(*) {joined} WHERE {taken} AND {older}"
    return reasons


def check_dates(
    connection: duckdb.DuckDBPyConnection, papers: str, key: str, cut: int | str, given: dict[str, list[str]]
) -> None:
    """Raise `InputError` if a cut is a day and no paper of its year has a date. `papers` is what SQL reads."""
    year = year_of_day(cut)
    dated = f"SELECT 1 FROM {papers} WHERE year = {year} AND date IS NOT NULL LIMIT 1"
    if year is not None and not connection.execute(dated, given).fetchall():
        why = f"and no paper of {year} has a date of publication; set a year instead, such as {year}."
        raise InputError(f"Configuration key {key} is {cut}, {why}")


def leave_out_later(
    connection: duckdb.DuckDBPyConnection, datasets: Iterable[str], papers: Path, until: str
) -> dict[str, str]:
    """Take the rows of papers from after a cut out of the views of a bucket; return reason → query for how many. The
    view `ingested_papers` has the papers of the bucket, the folder `papers` those of all. Raises `InputError` if no
    paper has a year, all years are on one side, or the cut is a day and no paper of its year has a date."""
    files = list(map(str, checked_files(papers, "ingested_papers")))
    years = "min(stats_min_value::SMALLINT), max(stats_max_value::SMALLINT)"
    query = f"SELECT {years} FROM parquet_metadata($files) WHERE path_in_schema = 'year'"
    ((first, last),) = connection.execute(query, {"files": files}).fetchall()
    of_day = year_of_day(until)
    if first is None or not first <= (of_day or int(until)) <= last:
        known = "no paper has a year" if first is None else f"papers are from {first} to {last}"
        raise InputError(f"Configuration key corpus.until is {until}, and {known}; set one of these years or none.")
    check_dates(connection, "read_parquet($files, hive_partitioning = false)", "corpus.until", until, {"files": files})
    later = f"SELECT DISTINCT corpusid FROM ingested_papers WHERE {is_later(until, '>')}"
    connection.execute(f"CREATE TEMP TABLE later AS {later}")
    reasons = {}
    for dataset in datasets:
        key = BUCKET_KEYS.get(dataset, "citing")
        connection.execute(f"ALTER VIEW ingested_{dataset} RENAME TO dated_{dataset}")
        connection.execute(f"CREATE VIEW ingested_{dataset} AS FROM dated_{dataset} WHERE {key} NOT IN (FROM later)")
        copies = f"SELECT count(*) FROM dated_{dataset} WHERE {key} IN (FROM later)"
        reasons[f"copies of {dataset} from after corpus.until"] = copies
    if of_day and "papers" in datasets:
        reason = "copies of papers of the year of corpus.until without a date (left out, as if from after it)"
        reasons[reason] = f"SELECT count(*) FROM dated_papers WHERE year = {of_day} AND date IS NULL"
    return reasons
