"""From the files of a user's table to the ingested tables: every row is counted as the lines of a release are.

Cells become the record of a release, which the same expressions turn into columns. An id that is a text has a number,
its rank among all names of the corpus: it depends only on the set of names, and is dense, which keeps sets of ids small
(`core.id_sets`). A first pass lists the names of each file, one job numbers them, and a second pass looks them up.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import duckdb
import numpy as np
import pyarrow as pa
import typer

from cocite.config.settings import GivenAsJson
from cocite.config.table_files import AnyTable, CitationTable, JsonLinesFormat, PaperTable, TableFiles, named_columns
from cocite.core.database import connect
from cocite.core.options import Buckets, MemoryMb, Output, Threads
from cocite.core.progress import progress
from cocite.core.tables.files import verified_files, write_table
from cocite.core.tables.places import as_text
from cocite.corpus.ingest.accounting import BLANK, KEPT, MALFORMED, Tally, fault_of_line
from cocite.corpus.ingest.cells import (
    Cells,
    Expression,
    begins_as_list,
    cells_of,
    cited_in,
    citing_in,
    holds_list,
    is_refused,
    is_rounded,
    paper_in,
    text_in,
)
from cocite.corpus.ingest.citation_scanner import NO_CITED, NO_CITING, SELF
from cocite.corpus.ingest.citations import LEFT_OUT
from cocite.corpus.ingest.merge import BUCKET_KEYS, ROWS_IN_BATCH
from cocite.corpus.ingest.records import ABSTRACTS, PAPERS, PAPERS_WITH_AUTHORS, cut_by_bucket, outcome_of, sql_of_id
from cocite.corpus.ingest.release_shards import IngestSettings, Report, check_filled, write_ingested
from cocite.corpus.ingest.unpacking import gather
from cocite.corpus.ingest.user_files import FAULT, NOT_UTF8, PLACE, read_rows
from cocite.corpus.release.manifest import DatasetName, ManifestFile, Part, Parts, Shard, read_manifest, shards_of_part

YEAR = r"TRY_CAST(regexp_extract(year, '^\s*(1[0-9]{3}|20[0-9]{2})(?:[-/.\s]|$)', 1) AS SMALLINT)"
"""A year from 1000 to 2099, perhaps as a number with decimals, or of a date that begins with one, in the text `year`.
Others are slips, one of which would make all papers look old."""
NOT_AN_ID = "not a whole number from 0 to 2⁶³ − 1; with corpus.ids: string, ids may be any text"
LISTS = ("fields", "authors")
LISTED = "is a list that cannot be read; write it as a JSON list, or with a separator"
A_LIST = "a list that cannot be read here; write it as a JSON list, or one id a row"
A_DECIMAL = "a decimal, to which ids have been rounded; write them as whole numbers"
IS_BLANK, IS_FAULTY = r"regexp_full_match(fault, '\s*')", "fault IS NOT NULL OR why IS NOT NULL"
_GATHERED = "place BIGINT, fault VARCHAR, why VARCHAR"
Numbering = tuple[Path, Path] | None
"""The tables `listed_names` of the files at hand, and `names` of all, if ids are texts."""

NAMES_AT_ONCE = 100_000
SHARE_IN_MEMORY = 0.05
"""Share of the memory that rows fill before they are cut by bucket, while DuckDB has those that follow."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """How the rows of a dataset are made of the cells of a file: the table `cells` of `given`, then a query over it."""

    columns: tuple[str, ...]
    """Keys of the table's columns that are read."""
    schema: str
    cells: str
    query: str
    """The rows, by `cells` and `numbers`, with place, fault, why and the number of an outcome."""
    outcomes: tuple[str, ...]
    """Outcomes of a row by their number: kept, blank, malformed, or omitted for a reason."""


def _documents(table: PaperTable, cells: Cells, dataset: str, *, with_names: bool) -> Rows:
    records, columns = ABSTRACTS, ["abstract"]
    if dataset == "papers":
        records, columns = PAPERS, ["title", "year", "venue", "doi", "fields"]
        if table.columns.authors is not None:
            records, columns = PAPERS_WITH_AUTHORS, [*columns, "authors"]
    gathered, faults = {"written VARCHAR": paper_in(table, cells)}, ""
    for key in columns:
        named, kind = getattr(table.columns, key), "VARCHAR[]" if key in LISTS else "VARCHAR"
        expression = "NULL"
        if named and key in LISTS:
            expression = f"list_transform({cells.items(named, False)}, lambda item: trim({text_in('item', table)}))"
            has_list = f"len(list_filter({expression}, lambda item: {holds_list('item')})) > 0"
            faults += f" WHEN {has_list} THEN '{key} {LISTED}'"
        elif named:
            expression = text_in(cells.value(named), table)
            if key in records.texts:
                faults += f" WHEN {cells.is_nested(named)} THEN '{key} is a list or an object, not text'"
        gathered[f"{key} {kind}"] = expression
    why = f"CASE {faults} END" if faults else "NULL"
    number = {"corpusid": "numbers.corpusid"} if with_names else {}
    taken = ", ".join(f"{expression} AS {name}" for name, expression in (records.columns | number).items())
    return Rows(
        columns=("id", *columns),
        schema=", ".join([_GATHERED, *gathered]),
        cells=f'SELECT "{PLACE}", "{FAULT}", {why}, {", ".join(gathered.values())} FROM given',
        query=f"""
            SELECT {", ".join(records.columns)}, place, fault,
                coalesce(why, {_unlike_an_id(table.columns.id, "written")}) AS why,
                {outcome_of(IS_BLANK, f"{IS_FAULTY} OR corpusid IS NULL", records.omissions)} AS outcome
            FROM (
                SELECT place, fault, why, written, {taken} FROM (SELECT *, {_record(columns)} AS record FROM cells)
                {"LEFT JOIN numbers ON numbers.name = written" if with_names else ""}
            )
        """,
        outcomes=(KEPT, BLANK, MALFORMED, *records.omissions),
    )


def _citations(table: CitationTable, cells: Cells, *, with_names: bool) -> Rows:
    ends = f"{citing_in(table, cells)} AS citing, {cited_in(table, cells)} AS cited"
    names = {"citing": table.columns.citing, "cited": table.columns.cited.column}
    numbers = {key: f"{key}_number.corpusid" if with_names else sql_of_id(f"cells.{key}") for key in names}
    joins = " ".join(f"LEFT JOIN numbers AS {key}_number ON {key}_number.name = cells.{key}" for key in names)
    wrong = " ".join(
        f"WHEN written_{key} IS NOT NULL AND {key} IS NULL THEN {_unlike_an_id(name, f'written_{key}')}"
        for key, name in names.items()
    )
    conditions = {NO_CITING: "citing IS NULL", NO_CITED: "cited IS NULL", SELF: "citing = cited"}
    omissions = {LEFT_OUT[place]: condition for place, condition in conditions.items()}
    return Rows(
        columns=("citing", "cited"),
        schema=f"{_GATHERED}, citing VARCHAR, cited VARCHAR",
        cells=f"""
            SELECT place, fault, NULL, citing, unnest(CASE WHEN len(cited) > 0 THEN cited ELSE [NULL] END)
            FROM (SELECT "{PLACE}" AS place, "{FAULT}" AS fault, {ends} FROM given)
        """,
        query=f"""
            SELECT NULL::BIGINT AS citationid, citing, cited, 0::UTINYINT AS traits, place, fault, why,
                {outcome_of(IS_BLANK, IS_FAULTY, omissions)} AS outcome
            FROM (
                SELECT *, CASE {wrong} END AS why FROM (
                    SELECT place, fault, cells.citing AS written_citing, cells.cited AS written_cited,
                        {numbers["citing"]} AS citing, {numbers["cited"]} AS cited
                    FROM cells {joins if with_names else ""}
                )
            )
        """,
        outcomes=(KEPT, BLANK, MALFORMED, *omissions),
    )


def _record(columns: list[str]) -> Expression:
    """The cells as the record of a release, of which columns are made; what it lacks is null."""
    if columns == ["abstract"]:
        return "{'corpusid': written, 'abstract': abstract}"
    authors = ", 'authors': list_transform(authors, lambda name: {'name': name})" if "authors" in columns else ""
    return f"""{{
        'corpusid': written, 'title': title, 'year': {YEAR}, 'venue': venue,
        'publicationdate': trim(year),
        's2fieldsofstudy': list_transform(fields, lambda name: {{'category': name}}), 'externalids': {{'DOI': doi}},
        'citationcount': NULL::INTEGER, 'referencecount': NULL::INTEGER{authors}
    }}"""


def _unlike_an_id(column: str, text: Expression) -> Expression:
    """A sentence on a text of a column that is not an id."""
    kind = f"""CASE WHEN {begins_as_list(text)} THEN '{A_LIST}'
        WHEN {is_rounded(text)} OR regexp_full_match({text}, '-?[0-9]*\\.[0-9]+') THEN '{A_DECIMAL}'
        ELSE '{NOT_AN_ID}' END"""
    said = f"concat('is ', to_json({text}[:60]), ', ', {kind})"
    return f"{as_text(f'{column} ')} || CASE WHEN {text} IS NULL THEN 'has no id' ELSE {said} END"


def ingest_tables(
    dataset: DatasetName,
    settings: GivenAsJson[AnyTable],
    *,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    report: Report,
    listed: Annotated[Path | None, typer.Option(help="Table listed_names of these files, if ids are texts.")] = None,
    names: Annotated[Path | None, typer.Option(help="Table names, if ids are texts.")] = None,
) -> None:
    """Convert the files of one part of a table, whose columns the settings name, to Parquet, sorted by bucket.

    Raises `InputError` for a file that is missing, of another size than listed, empty or broken. Malformed rows are
    left to `account`.
    """
    cost = {"memory_mb": memory_mb, "threads": threads}
    authors = isinstance(settings, PaperTable) and settings.columns.authors is not None
    how = IngestSettings(dataset=dataset, buckets=buckets, keep_ids=False, authors=authors, **cost)
    read = partial(_read_file, settings, (listed, names) if listed and names else None)
    shards = shards_of_part(read_manifest(manifest), dataset, part=part, parts=parts)
    write_ingested(f"ingested_{dataset}", read, how, Path(), shards, output=output, report=report)


def _read_file(
    table: AnyTable, numbering: Numbering, settings: IngestSettings, shard: Shard, path: Path, tally: Tally, spill: Path
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a batch a bucket, some at a time; every row is counted."""
    cells, with_names = cells_of(table, path), numbering is not None
    if isinstance(table, CitationTable):
        rows = _citations(table, cells, with_names=with_names)
    else:
        rows = _documents(table, cells, settings.dataset, with_names=with_names)
    columns = [name for key, name in named_columns(table) if key in rows.columns]
    # The rest is for the rows that are parsed, and for those that are written.
    with connect(memory_mb=settings.memory_mb // 3, threads=settings.threads, spill_to=spill) as connection:
        connection.execute(f"CREATE TEMP TABLE cells ({rows.schema})")
        read_rows(connection, table, path, columns, f"INSERT INTO cells {rows.cells}")
        if numbering:
            for name, file in zip(("listed_names", "names"), numbering, strict=True):
                connection.read_parquet(verified_files(file, name)).create_view(name)
            numbers = "SELECT name, corpusid FROM names SEMI JOIN listed_names USING (name)"
            connection.execute(f"CREATE TEMP TABLE numbers AS {numbers}")
        connection.execute(f"CREATE TEMP TABLE found AS {rows.query}")
        connection.execute("DROP TABLE cells")
        _count(connection, rows, table, path, tally)
        kept = connection.sql("SELECT * EXCLUDE (place, fault, why, outcome) FROM found WHERE outcome = 0")
        batches = kept.to_arrow_reader(ROWS_IN_BATCH[settings.dataset])
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        for gathered in gather(tables, SHARE_IN_MEMORY * settings.memory_mb * 1e6):
            yield from cut_by_bucket(BUCKET_KEYS[settings.dataset], settings.buckets, pa.concat_tables(gathered))
            gathered.clear()
    check_filled(path, tally)


def _count(connection: duckdb.DuckDBPyConnection, rows: Rows, table: TableFiles, path: Path, tally: Tally) -> None:
    """Count the rows that were found by what becomes of them, and note the first that is malformed."""
    counts = dict(connection.execute("SELECT outcome, count(*) FROM found GROUP BY outcome").fetchall())
    malformed = rows.outcomes.index(MALFORMED)
    first = f"SELECT place, fault, why FROM found WHERE outcome = {malformed} ORDER BY place LIMIT 1"
    for place, fault, why in connection.execute(first).fetchall():
        # The fault of a row of JSON Lines is the line.
        is_line = isinstance(table.format_of(str(path)), JsonLinesFormat) and fault not in (None, NOT_UTF8)
        tally.note_malformed(place, fault_of_line(fault) if is_line else fault or why)
        counts[malformed] -= 1
    tally.outcomes.update({name: counts.get(number, 0) for number, name in enumerate(rows.outcomes)})


def list_names(
    dataset: DatasetName,
    settings: GivenAsJson[AnyTable],
    *,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """List the distinct ids in one part of a table whose ids are texts.

    Raises `InputError` if a file is broken; errors of single rows are reported when they are ingested.
    """
    shards = shards_of_part(read_manifest(manifest), dataset, part=part, parts=parts)
    # The other half is for the rows that are parsed.
    with connect(memory_mb=memory_mb // 2, threads=threads, spill_to=output.parent) as connection:
        connection.execute("CREATE TEMP TABLE found (name VARCHAR)")
        for shard in progress(shards, of="list names", unit="files"):
            path = Path(shard.name)
            cells = cells_of(settings, path)
            if isinstance(settings, PaperTable):
                ids, columns = f"[{paper_in(settings, cells)}]", [settings.columns.id]
            else:
                ids = f"list_prepend({citing_in(settings, cells)}, {cited_in(settings, cells)})"
                columns = [settings.columns.citing, settings.columns.cited.column]
            found = f"INSERT INTO found SELECT DISTINCT unnest({ids}) FROM given"
            read_rows(connection, settings, path, columns, found)
        connection.execute(f"DELETE FROM found WHERE {is_refused('name')}")
        write_table(output, "listed_names", _in_order(connection))


def number_names(
    listed: Annotated[Sequence[Path], typer.Argument(help="Files of the table listed_names, or their folders.")],
    *,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Give each id that is a text its number: its rank among all that were listed."""

    def ranked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in batches:
            yield pa.record_batch({"corpusid": np.arange(first, first + len(batch)), "name": batch["name"]})
            first += len(batch)

    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        files = [file for each in listed for file in verified_files(each, "listed_names")]
        connection.read_parquet(files).create_view("found")
        write_table(output, "names", ranked(_in_order(connection)))


def _in_order(connection: duckdb.DuckDBPyConnection) -> pa.RecordBatchReader:
    names = connection.sql("SELECT DISTINCT name FROM found WHERE name IS NOT NULL ORDER BY name")
    return names.to_arrow_reader(NAMES_AT_ONCE)
