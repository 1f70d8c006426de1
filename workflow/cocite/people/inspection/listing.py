"""All tables of some results, and the first rows of one."""

from pathlib import Path

import duckdb
import pyarrow as pa

from cocite.config.stale import configuration_of, configured_in
from cocite.ground.errors import InputError
from cocite.ground.progress import report
from cocite.ground.words import byte_size
from cocite.people.inspection.answers import Answer
from cocite.people.inspection.choosing import condition, described, places_of, viewed_tables
from cocite.people.inspection.opening import left_out
from cocite.tables import TABLES, Table
from cocite.tables.places import files_by_place

WHOLE = 1000
"""Characters that are more than any meaning has."""
TOLD = {"VARCHAR": "string", "INTEGER": "int32"}
"""Types of what the files' paths tell, as DuckDB calls them and as the declarations do."""


def list_tables(db: duckdb.DuckDBPyConnection, results: Path) -> Answer:
    """Every table that has a view: rows, bytes of its files, columns and meaning.

    Raises `InputError` where there is none.
    """
    rows = []
    for name in viewed_tables(db):
        try:
            rows.append(_told(db, results, TABLES[name]))
        except (duckdb.Error, FileNotFoundError) as error:
            report(left_out(name, error))
    if not rows:
        raise InputError(f"{results} holds no tables yet; start a run, or name the folder of another with --results.")
    columns = ["table", "rows", "bytes", "columns", "meaning"]
    return Answer(heading=f"{len(rows)} tables in {results}", columns=columns, rows=rows)


def for_people(listing: Answer) -> Answer:
    """The list of the tables in fewer columns and larger units."""
    rows = [
        (name, f"{count:,}", byte_size(length, ".3g"), f"{meaning}\n({', '.join(columns)})")
        for name, count, length, columns, meaning in listing.rows
    ]
    columns = ["table", "rows", "size", "what it holds (its columns)"]
    return Answer(heading=listing.heading, columns=columns, rows=rows, shown=WHOLE)


def columns_of(db: duckdb.DuckDBPyConnection, table: Table) -> Answer:
    """The columns of a table's view with their types and meanings; those in front are told by the files' paths."""
    rows = [
        (name, _kind(table.columns[name].type), table.columns[name].meaning)
        if name in table.columns
        else (name, TOLD.get(kind, kind.lower()), f"the {name} whose table it is")
        for name, kind, *_ in db.execute(f"DESCRIBE {table.name}").fetchall()
    ]
    return Answer(
        heading=f"{table.name}: {table.description}", columns=["column", "type", "meaning"], rows=rows, shown=WHOLE
    )


def first_rows(db: duckdb.DuckDBPyConnection, results: Path, table: Table, of: str | None, limit: int) -> Answer:
    """The first rows of a table, of all its graphs, embeddings, … or of one."""
    places = places_of(results, table, of)
    found = db.execute(f"SELECT * FROM {table.name} WHERE {condition(places)} LIMIT {limit}")
    columns, rows = [name for name, *_ in found.description], found.fetchall()
    heading = f"{'Its first rows' if rows else 'It has no rows'}{' of ' + described(places[0]) if of else ''}"
    return Answer(heading=heading, columns=columns, rows=rows)


def _told(db: duckdb.DuckDBPyConnection, results: Path, table: Table) -> tuple[str, int, int, list[str], str]:
    ((rows,),) = db.execute(f"SELECT count(*) FROM {table.name}").fetchall()
    length = sum(
        path.stat().st_size
        for files in files_by_place(results, table, configured_in(configuration_of(results))).values()
        for path in files
    )
    columns = [name for name, *_ in db.execute(f"DESCRIBE {table.name}").fetchall()]
    return table.name, rows, length, columns, table.description


def _kind(type_: pa.DataType) -> str:
    """A type in short."""
    return f"list of {type_.value_type}" if pa.types.is_list(type_) else str(type_)
