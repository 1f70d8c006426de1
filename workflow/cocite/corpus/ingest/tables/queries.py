"""The queries by which the cells of a file become rows of a dataset, and the outcome of each row."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cocite.config.table_files import CitationTable, PaperTable
from cocite.core.tables.sql import as_text
from cocite.core.written_ids import DIGITS
from cocite.corpus.ingest.accounting import BLANK, KEPT, MALFORMED
from cocite.corpus.ingest.citations import LEFT_OUT
from cocite.corpus.ingest.records import ABSTRACTS, PAPERS, PAPERS_WITH_AUTHORS, Records
from cocite.corpus.ingest.scanning import NO_CITED, NO_CITING, SELF
from cocite.corpus.ingest.tables.cells import Cells, cells_of, cited_in, citing_in, paper_in, text_in
from cocite.corpus.ingest.tables.files import FAULT, PLACE
from cocite.corpus.ingest.tables.written import Expression, begins_as_list, holds_list, is_rounded

YEAR = r"^\s*([0-9]{1,5})(?:\.0*)?\s*$|^\s*([0-9]{4})[-/.]"
"""A year, perhaps as a number with decimals, or a date that begins with one."""
NOT_AN_ID = "not a whole number from 0 to 2⁶³ − 1; with corpus.ids: string, ids may be any text"
A_LIST = "a list that cannot be read here; write it as a JSON list, or one id a row"
A_DECIMAL = "a decimal, to which ids have been rounded; write them as whole numbers"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """How the rows of a dataset are made of the cells of a file."""

    columns: tuple[str, ...]
    """Keys of the table's columns that are read."""
    schema: str
    """The columns that the cells are gathered in."""
    cells: str
    """Query for them, over `given`."""
    query: str
    """Query for the rows, over `cells` and `numbers`, with place, fault, why and the number of an outcome."""
    outcomes: tuple[str, ...]
    """What may become of a row: kept, blank, malformed, or left out for a reason."""


def rows_of(table: PaperTable | CitationTable, path: Path, dataset: str, *, with_names: bool) -> Rows:
    """How a file of a table becomes rows of papers, abstracts or citations."""
    cells = cells_of(table, path)
    if isinstance(table, CitationTable):
        return _citations(table, cells, with_names=with_names)
    if dataset == "abstracts":
        return _documents(table, cells, ABSTRACTS, ("abstract",), with_names=with_names)
    authors = table.columns.authors is not None
    columns = ("title", "year", "venue", "doi", "fields", *(["authors"] if authors else []))
    return _documents(table, cells, PAPERS_WITH_AUTHORS if authors else PAPERS, columns, with_names=with_names)


def _documents(
    table: PaperTable, cells: Cells, records: Records, columns: tuple[str, ...], *, with_names: bool
) -> Rows:
    texts = {key: _text(table, cells, key) for key in columns if key not in ("fields", "authors")}
    lists = {key: _texts(table, cells, key) for key in columns if key in ("fields", "authors")}
    nested = "".join(
        f" WHEN {cells.is_nested(name)} THEN '{key} is a list or an object, not text'"
        for key in records.texts
        if (name := getattr(table.columns, key))
    ) + "".join(
        f" WHEN len(list_filter({items}, lambda item: {holds_list('item')})) > 0"
        f" THEN '{key} is a list that cannot be read; write it as a JSON list, or with a separator'"
        for key, items in lists.items()
        if items != "NULL"
    )
    gathered = {**dict.fromkeys(texts, "VARCHAR"), **dict.fromkeys(lists, "VARCHAR[]")}
    number = {"corpusid": "numbers.corpusid"} if with_names else {}
    taken = ", ".join(f"{expression} AS {name}" for name, expression in (records.columns | number).items())
    unknown = f"'{_quotable(table.columns.id)} ' || {_unlike_an_id('written')}"
    return Rows(
        columns=("id", *columns),
        schema=", ".join(f"{name} {kind}" for name, kind in {**_COMMON, "written": "VARCHAR", **gathered}.items()),
        cells=f"""
            SELECT "{PLACE}", "{FAULT}", {f"CASE {nested} END" if nested else "NULL"}, {paper_in(table, cells)}
                {"".join(f", {expression}" for expression in (texts | lists).values())}
            FROM given
        """,
        query=f"""
            SELECT {", ".join(records.columns)}, place, fault,
                coalesce(why, {unknown}) AS why,
                {_outcome("why IS NOT NULL OR corpusid IS NULL", records.omissions)} AS outcome
            FROM (
                SELECT place, fault, why, written, {taken}
                FROM (SELECT *, {_record(columns)} AS record FROM cells)
                {"LEFT JOIN numbers ON numbers.name = written" if with_names else ""}
            )
        """,
        outcomes=(KEPT, BLANK, MALFORMED, *records.omissions),
    )


def _citations(table: CitationTable, cells: Cells, *, with_names: bool) -> Rows:
    numbers = {key: f"{key}_number.corpusid" if with_names else _number(f"cells.{key}") for key in ("citing", "cited")}
    joins = "".join(
        f" LEFT JOIN numbers AS {key}_number ON {key}_number.name = cells.{key}" for key in numbers if with_names
    )
    names = {"citing": table.columns.citing, "cited": table.columns.cited.column}
    wrong = "".join(
        f" WHEN written_{key} IS NOT NULL AND {key} IS NULL"
        f" THEN '{_quotable(names[key])} ' || {_unlike_an_id(f'written_{key}')}"
        for key in numbers
    )
    omissions = {
        LEFT_OUT[NO_CITING]: "citing IS NULL",
        LEFT_OUT[NO_CITED]: "cited IS NULL",
        LEFT_OUT[SELF]: "citing = cited",
    }
    return Rows(
        columns=("citing", "cited"),
        schema=", ".join(
            f"{name} {kind}" for name, kind in {**_COMMON, "citing": "VARCHAR", "cited": "VARCHAR"}.items()
        ),
        cells=f"""
            SELECT place, fault, NULL, citing, unnest(CASE WHEN len(cited) > 0 THEN cited ELSE [NULL] END)
            FROM (
                SELECT "{PLACE}" AS place, "{FAULT}" AS fault, {citing_in(table, cells)} AS citing,
                    {cited_in(table, cells)} AS cited
                FROM given
            )
        """,
        query=f"""
            SELECT NULL::BIGINT AS citationid, citing, cited, 0::UTINYINT AS traits, place, fault, why,
                {_outcome("why IS NOT NULL", omissions)} AS outcome
            FROM (
                SELECT *, CASE {wrong} END AS why FROM (
                    SELECT place, fault, cells.citing AS written_citing, cells.cited AS written_cited,
                        {numbers["citing"]} AS citing, {numbers["cited"]} AS cited
                    FROM cells {joins}
                )
            )
        """,
        outcomes=(KEPT, BLANK, MALFORMED, *omissions),
    )


_COMMON = {"place": "BIGINT", "fault": "VARCHAR", "why": "VARCHAR"}


def _text(table: PaperTable, cells: Cells, key: str) -> Expression:
    name = getattr(table.columns, key)
    return text_in(cells.value(name), table) if name else "NULL"


def _texts(table: PaperTable, cells: Cells, key: str) -> Expression:
    named = getattr(table.columns, key)
    return (
        f"list_transform({cells.items(named, False)}, lambda item: trim({text_in('item', table)}))" if named else "NULL"
    )


def _record(columns: tuple[str, ...]) -> Expression:
    """The cells as the record of a release, of which columns are made; what it lacks is null."""
    if columns == ("abstract",):
        return "{'corpusid': written, 'abstract': abstract}"
    year = f"coalesce(nullif(regexp_extract(year, '{YEAR}', 1), ''), regexp_extract(year, '{YEAR}', 2))"
    authors = ", 'authors': list_transform(authors, lambda name: {'name': name})" if "authors" in columns else ""
    return f"""{{
        'corpusid': written, 'title': title, 'year': TRY_CAST({year} AS SMALLINT), 'venue': venue,
        's2fieldsofstudy': list_transform(fields, lambda name: {{'category': name}}), 'externalids': {{'DOI': doi}},
        'citationcount': NULL::INTEGER, 'referencecount': NULL::INTEGER{authors}
    }}"""


def _outcome(malformed: Expression, omissions: Mapping[str, Expression]) -> Expression:
    """The outcome of a row: 0 where it is kept, 1 blank, 2 malformed, and from 3 on the omissions."""
    conditions = [r"regexp_full_match(fault, '\s*')", f"fault IS NOT NULL OR {malformed}", *omissions.values()]
    outcomes = " ".join(f"WHEN {condition} THEN {number}" for number, condition in enumerate(conditions, start=1))
    return f"(CASE {outcomes} ELSE 0 END)::UTINYINT"


def _number(text: Expression) -> Expression:
    return f"CASE WHEN regexp_full_match({text}, '{DIGITS}') THEN TRY_CAST({text} AS BIGINT) END"


def _unlike_an_id(text: Expression) -> Expression:
    """The end of a sentence on a text that is no id."""
    kind = f"""CASE WHEN {begins_as_list(text)} THEN '{A_LIST}'
        WHEN {is_rounded(text)} OR regexp_full_match({text}, '-?[0-9]*\\.[0-9]+') THEN '{A_DECIMAL}'
        ELSE '{NOT_AN_ID}' END"""
    return f"CASE WHEN {text} IS NULL THEN 'holds no id' ELSE concat('is ', to_json({text}[:60]), ', ', {kind}) END"


def _quotable(name: str) -> str:
    return as_text(name)[1:-1]
