"""The rows of a table as a query of DuckDB, whatever files they are in."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from cocite.core.tables import VECTOR, Table
from cocite.core.tables.files import checked_files
from cocite.core.tables.places import Place


def rows_of(table: Table, groups: Mapping[Place, list[Path]], named: Callable[[list[Path]], str]) -> str:
    """A query for all rows of a table; `named` gives the list of some files as SQL.

    Raises `InputError` where the first file of a group, which has its columns, is missing, broken or another table.
    """
    selections = []
    for place, paths in groups.items():
        literals = "".join(f"{value if value.isdigit() else as_text(value)} AS {name}, " for name, value in place)
        present = pq.read_schema(checked_files(paths[0], table.name)[0]).names
        columns = ", ".join(_column(table, name, present) for name in table.columns)
        selections.append(f"SELECT {literals}{columns} FROM read_parquet({named(paths)})")
    return " UNION ALL ".join(selections)


def as_text(value: str) -> str:
    """A text as SQL."""
    return "'" + value.replace("'", "''") + "'"


def as_name(column: str) -> str:
    """The name of a column as SQL."""
    return '"' + column.replace('"', '""') + '"'


def _column(table: Table, name: str, present: list[str]) -> str:
    """A column as the view has it: vectors of any dimension, null where an optional one is not there."""
    if name not in present:
        return f'NULL AS "{name}"'
    return f"{name}::FLOAT[] AS {name}" if table.columns[name].type == VECTOR else f'"{name}"'
