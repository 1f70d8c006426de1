"""Every table of CoCite, declared once: its contents, primary key, columns and path.

`files.py` checks tables against these declarations on writing; the site's page of tables and the views of
`results/cocite.duckdb` are generated from them. A table is written in the order of its primary key, so that uniqueness
is checked by comparing neighbouring rows, unless it is unordered.
"""

import pyarrow as pa

from cocite.core.tables.columns import COUNT, ID, TEXT, VECTOR, Column, Table
from cocite.core.tables.declarations import corpus, evaluation, graph, report, retrieval, training
from cocite.core.tables.declarations.corpus import PRIMARY_KEYS

__all__ = ["COUNT", "ID", "PRIMARY_KEYS", "TABLES", "TEXT", "VECTOR", "Column", "Table", "empty_schema"]

TABLES = {
    table.name: table for stage in (corpus, graph, training, retrieval, evaluation, report) for table in stage.TABLES
}


def empty_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a table, with `VECTOR` standing for vectors of any dimension."""
    return pa.schema([pa.field(name, column.type, nullable=column.nullable) for name, column in table.columns.items()])
