"""The tables of some results: a list of all, the choice of one, and its first rows."""

import difflib
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa

from cocite.config.stale import configuration_of, configured_in
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES, Table
from cocite.core.tables.places import Place, files_by_place
from cocite.core.tables.sql import as_text
from cocite.core.words import byte_size
from cocite.tools.inspection.answers import Answer, fetched
from cocite.tools.inspection.opening import left_out

WHOLE = 1000
"""More characters than any meaning has."""
PATH_TYPES = {"VARCHAR": "string", "INTEGER": "int32"}
"""DuckDB's types of the columns that come from file paths → their names in the declarations."""


def list_tables(db: duckdb.DuckDBPyConnection, results: Path) -> Answer:
    """Every table that has a view: rows, bytes of its files, columns and meaning.

    Raises `InputError` where there is none.
    """
    rows, configured = [], configured_in(configuration_of(results))
    for name in viewed_tables(db):
        try:
            ((count,),) = db.execute(f"SELECT count(*) FROM {name}").fetchall()
            files = chain.from_iterable(files_by_place(results, TABLES[name], configured).values())
            length = sum(path.stat().st_size for path in files)
            columns = [column for column, *_ in db.execute(f"DESCRIBE {name}").fetchall()]
            rows.append((name, count, length, columns, TABLES[name].description))
        except (duckdb.Error, FileNotFoundError) as error:
            report(left_out(name, error))
    if not rows:
        raise InputError(f"{results} holds no tables yet; start a run, or name the folder of another with --results.")
    return Answer(f"{len(rows)} tables in {results}", ["table", "rows", "bytes", "columns", "meaning"], rows)


def for_people(listing: Answer) -> Answer:
    """The same list with fewer columns and larger units."""
    rows = [
        (name, f"{count:,}", byte_size(length, ".3g"), f"{meaning}\n({', '.join(columns)})")
        for name, count, length, columns, meaning in listing.rows
    ]
    return Answer(listing.heading, ["table", "rows", "size", "what it holds (its columns)"], rows, WHOLE)


def columns_of(db: duckdb.DuckDBPyConnection, table: Table) -> Answer:
    """The columns of a table's view with types and meanings; the first ones come from the paths of its files."""
    rows = [
        (name, _kind(table.columns[name].type), table.columns[name].meaning)
        if name in table.columns
        else (name, PATH_TYPES.get(kind, kind.lower()), f"the {name} whose table it is")
        for name, kind, *_ in db.execute(f"DESCRIBE {table.name}").fetchall()
    ]
    return Answer(f"{table.name}: {table.description}", ["column", "type", "meaning"], rows, WHOLE)


def first_rows(db: duckdb.DuckDBPyConnection, results: Path, table: Table, of: str | None, limit: int) -> Answer:
    """The first rows of a table: of all graphs, embeddings and so on, or of one."""
    places = places_of(results, table, of)
    columns, rows = fetched(db.execute(f"SELECT * FROM {table.name} WHERE {condition(places)} LIMIT {limit}"))
    heading = f"{'Its first rows' if rows else 'It has no rows'}{' of ' + described(places[0]) if of else ''}"
    return Answer(heading, columns, rows)


def _kind(type_: pa.DataType) -> str:
    """A type in short."""
    return f"list of {type_.value_type}" if pa.types.is_list(type_) else str(type_)


def named_table(results: Path, name: str) -> Table:
    """The table of this name. Raises `InputError` that says which there are where these results have none."""
    configured = configured_in(configuration_of(results))
    if name in TABLES and files_by_place(results, TABLES[name], configured):
        return TABLES[name]
    if name in TABLES and files_by_place(results, TABLES[name]):
        raise InputError(f"{results} holds table {name} only for entries that its configuration no longer has.")
    there = [table.name for table in TABLES.values() if files_by_place(results, table, configured)]
    if name in TABLES:
        raise InputError(f"{results} holds no table {name} yet; there are {', '.join(there) or 'none at all'}.")
    close = difflib.get_close_matches(name.lower(), TABLES, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(there) or 'none at all'}."
    raise InputError(f"{results} holds no table {name}; {hint}")


def viewed_tables(db: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of the tables that have a view, in the order of the stages."""
    views = db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT temporary").fetchall()
    return [name for name in TABLES if (name,) in views]


def places_of(results: Path, table: Table, of: str | None) -> list[Place]:
    """The places of a table that `of` names: a graph, for example, or model/seed; without it, all places.

    Raises `InputError` that lists the choices where none has this name.
    """
    places = list(files_by_place(results, table, configured_in(configuration_of(results))))
    chosen = [place for place in places if of is None or of in (_label(place), *(value for _, value in place))]
    if not chosen:
        raise InputError(f"There is no table {table.name} of {of!r}; --of can be {_choices(places)}.")
    return chosen


def one_place(results: Path, table: Table, of: str | None) -> Place:
    """The one place that `of` names. Raises `InputError` that lists the choices where there are several."""
    chosen = places_of(results, table, of)
    if len(chosen) > 1:
        raise InputError(f"There are several tables {table.name}: choose one with --of {_choices(chosen)}.")
    return chosen[0]


def condition(places: list[Place]) -> str:
    """An SQL condition that the rows of these places meet."""
    each = (" AND ".join(f'"{name}" = {as_text(value)}' for name, value in place) for place in places)
    return " OR ".join(of_place or "true" for of_place in each)


def described(place: Place) -> str:
    """The place in words, as printed after the name of a table."""
    return ", ".join(f"{name} {value}" for name, value in place)


def _label(place: Place) -> str:
    return "/".join(value for _, value in place)


def _choices(places: list[Place]) -> str:
    names = [_label(place) for place in places if place]
    return " or ".join(names) or "left out: there is only one"
