"""Which of several: a table that exists for each graph, embedding, set of triplets or model."""

from pathlib import Path

import duckdb

from cocite.configured import configuration_of
from cocite.errors import InputError
from cocite.inspection.opening import views_command
from cocite.places import Place, files_by_place
from cocite.tables import TABLES, Table


def viewed_table(db: duckdb.DuckDBPyConnection, results: Path, name: str) -> Table:
    """The table of this name. Raises `InputError` that names all there are where it has no view."""
    views = viewed_tables(db)
    if name in views:
        return TABLES[name]
    if name in TABLES and files_by_place(results, TABLES[name]):
        raise InputError(f"Table {name} was made after the views were; `{views_command(results)}` adds it.")
    raise InputError(f"{results} holds no table {name}; there are {', '.join(views)}.")


def viewed_tables(db: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of the tables that have a view, in the order of the stages."""
    views = {name for (name,) in db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}
    return [name for name in TABLES if name in views]


def places_of(results: Path, table: Table, of: str | None) -> list[Place]:
    """The places of a table that `of` names: a name such as that of a graph, or model/seed; all without it.

    Raises `InputError` that names the choices where there is none of this name.
    """
    places = list(files_by_place(results, table, configuration_of(results)))
    chosen = [place for place in places if of is None or of in (_label(place), *(value for _, value in place))]
    if not chosen:
        raise InputError(f"There is no table {table.name} of {of!r}; --of can be {_choices(places)}.")
    return chosen


def one_place(results: Path, table: Table, of: str | None) -> Place:
    """The one place that is meant. Raises `InputError` that names the choices where several could be."""
    chosen = places_of(results, table, of)
    if len(chosen) > 1:
        raise InputError(f"There are several tables {table.name}: choose one with --of {_choices(chosen)}.")
    return chosen[0]


def condition(places: list[Place]) -> str:
    """What is true of the rows of these places, as SQL."""
    return " OR ".join(" AND ".join(f"{name} = '{value}'" for name, value in place) or "true" for place in places)


def described(place: Place) -> str:
    """The place in words, to stand behind the name of a table."""
    return ", ".join(f"{name} {value}" for name, value in place)


def _label(place: Place) -> str:
    return "/".join(value for _, value in place)


def _choices(places: list[Place]) -> str:
    names = [_label(place) for place in places if place]
    return " or ".join(names) or "left out: there is only one"
