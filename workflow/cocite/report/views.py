"""`cocite.duckdb`: a view over every table of the results, for whoever wants to look inside.

A view unites all files of a table. What a file's path tells beyond its columns (the graph, the model, the seed)
becomes columns in front; buckets do not.
"""

from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from cocite.configured import configuration_of
from cocite.files import atomic_path
from cocite.places import Place, files_by_place
from cocite.tables import TABLES, VECTOR, Table


def write_views(results: Path, output: Path) -> list[str]:
    """Write a DuckDB file with a view for each table that has files under `results`; return their names.

    Files of entries that the configuration of the last run does not have are left out.
    """
    made, config = [], configuration_of(results)
    with atomic_path(output) as temporary, duckdb.connect(temporary) as database:
        for table in TABLES.values():
            files = files_by_place(results, table, config)
            if files:
                database.execute(f"CREATE VIEW {table.name} AS {_union(table, files)}")
                comment = table.description.replace("'", "''")
                database.execute(f"COMMENT ON VIEW {table.name} IS '{comment}'")
                made.append(table.name)
    return made


def _union(table: Table, groups: dict[Place, list[Path]]) -> str:
    selections = []
    for told, paths in groups.items():
        literals = "".join(f"{_literal(value)} AS {name}, " for name, value in told)
        files = ", ".join(_text(str(path.resolve())) for path in paths)
        columns = ", ".join(_column(table, name, pq.read_schema(paths[0]).names) for name in table.columns)
        selections.append(f"SELECT {literals}{columns} FROM read_parquet([{files}])")
    return " UNION ALL ".join(selections)


def _column(table: Table, name: str, present: list[str]) -> str:
    """A column as the view has it: vectors of any dimension, null where an optional one is not there."""
    if name not in present:
        return f'NULL AS "{name}"'
    return f"{name}::FLOAT[] AS {name}" if table.columns[name].type == VECTOR else f'"{name}"'


def _literal(value: str) -> str:
    return value if value.isdigit() else _text(value)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
