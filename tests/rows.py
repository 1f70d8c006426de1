"""Rows of any declared table, as tuples."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_table


def table_of(table: str, columns: str, rows: Iterable[tuple]) -> pa.Table:
    """Rows as a table with some of the columns that are declared under a name, given as words."""
    schema, names = empty_schema(TABLES[table]), columns.split()
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(found, schema=pa.schema([(name, schema.field(name).type) for name in names]))


def write_rows(path: Path, table: str, columns: str, rows: Iterable[tuple]) -> Path:
    """Write rows, as `table_of` has them; return where."""
    write_table(path, table, table_of(table, columns, rows))
    return path
