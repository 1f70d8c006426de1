"""Where the files of each table lie in a folder of results, what their paths say, and their rows in DuckDB's SQL.

`graph/{graph}/edges/{bucket}.parquet` names the graph that has the edges; the bucket only shards, and is not reported.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from cocite.core.tables import TABLES, VECTOR, Table
from cocite.core.tables.files import checked_files

SHARDS = ("bucket", "suite")
"""Names that only shard a table and are not reported: buckets of papers, suites of tasks."""
NUMBERS = ("bucket", "seed")
"""Names whose values are whole numbers."""

Place = tuple[tuple[str, str], ...]
"""Names and values in a path, such as (("model", "cocite"), ("seed", "1"))."""


def path_of(results: Path, name: str, /, **values: str | int) -> Path:
    """The file of the table `name`, from its declaration and values for the names in its path: `graph="citation"`.

    Without a value for the bucket, the folder of all buckets. Raises `KeyError` where another value is missing.
    """
    path = TABLES[name].path
    return results / (path if "bucket" in values else path.removesuffix("/{bucket}.parquet")).format(**values)


def files_by_place(
    results: Path, table: Table, keep: Callable[[Mapping[str, str]], bool] = lambda values: True
) -> dict[Place, list[Path]]:
    """The files of a table under `results`, sorted, grouped by what their paths say and their columns do not.

    `keep` decides by the names and values in a path whether its file is wanted.
    """
    pattern = re.compile(_as_expression(table.path))
    places: dict[Place, list[Path]] = {}
    for path in sorted(results.glob(re.sub(r"\{\w+\}", "*", table.path))):
        matched = pattern.fullmatch(path.relative_to(results).as_posix())
        if matched and keep(matched.groupdict()):
            values = matched.groupdict().items()
            place = tuple((name, value) for name, value in values if name not in SHARDS and name not in table.columns)
            places.setdefault(place, []).append(path)
    return places


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


def _as_expression(path: str) -> str:
    """The path of a table as a regular expression with a group for each name in braces."""
    pieces = re.split(r"\{(\w+)\}", path)
    literal, names = pieces[::2], pieces[1::2]
    groups = [rf"(?P<{name}>{'[0-9]+' if name in NUMBERS else '[^/]+'})" for name in names] + [""]
    return "".join(re.escape(text) + group for text, group in zip(literal, groups, strict=True))


def _column(table: Table, name: str, present: list[str]) -> str:
    """A column as the view has it: vectors of any dimension, null where an optional one is not there."""
    if name not in present:
        return f'NULL AS "{name}"'
    return f"{name}::FLOAT[] AS {name}" if table.columns[name].type == VECTOR else f'"{name}"'
