"""Every table of CoCite, declared once: what it holds, its primary key, its columns, and where it lies.

The declarations are what `files.py` checks on writing, what `docs/tables.md` is generated from, and what
`results/cocite.duckdb` holds a view of. A table is written in the order of its primary key, so that the check of
uniqueness is a comparison of neighbouring rows; `ordered=False` marks the ones whose order means something else.
"""

import pyarrow as pa

from cocite.core.tables.declarations import corpus, evaluation, graph, report, retrieval, training
from cocite.core.tables.declarations.columns import COUNT, ID, TEXT, VECTOR, Column, Table
from cocite.core.tables.declarations.corpus import PRIMARY_KEYS

__all__ = ["COUNT", "ID", "PRIMARY_KEYS", "TABLES", "TEXT", "VECTOR", "Column", "Table", "empty_schema"]

TABLES = {
    table.name: table for stage in (corpus, graph, training, retrieval, evaluation, report) for table in stage.TABLES
}


def empty_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a table, with `VECTOR` standing for vectors of any dimension."""
    return pa.schema([pa.field(name, column.type, nullable=column.nullable) for name, column in table.columns.items()])
