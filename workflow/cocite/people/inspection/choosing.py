"""Which of several: a table that exists for each graph, embedding, set of triplets or model."""

import difflib
from pathlib import Path

import duckdb

from cocite.config.stale import configuration_of, configured_in
from cocite.ground.errors import InputError
from cocite.tables import TABLES, Table
from cocite.tables.places import Place, files_by_place
from cocite.tables.sql import as_text


def named_table(results: Path, name: str) -> Table:
    """The table of this name. Raises `InputError` that says which there are where these results have none."""
    config = configuration_of(results)
    if name in TABLES and files_by_place(results, TABLES[name], configured_in(config)):
        return TABLES[name]
    if name in TABLES and files_by_place(results, TABLES[name]):
        raise InputError(f"{results} holds table {name} only of entries that its configuration does not have any more.")
    there = [table.name for table in TABLES.values() if files_by_place(results, table, configured_in(config))]
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
    """The places of a table that `of` names: a name such as that of a graph, or model/seed; all without it.

    Raises `InputError` that names the choices where there is none of this name.
    """
    places = list(files_by_place(results, table, configured_in(configuration_of(results))))
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
    each = (" AND ".join(f'"{name}" = {as_text(value)}' for name, value in place) for place in places)
    return " OR ".join(of_place or "true" for of_place in each)


def described(place: Place) -> str:
    """The place in words, to stand behind the name of a table."""
    return ", ".join(f"{name} {value}" for name, value in place)


def _label(place: Place) -> str:
    return "/".join(value for _, value in place)


def _choices(places: list[Place]) -> str:
    names = [_label(place) for place in places if place]
    return " or ".join(names) or "left out: there is only one"
