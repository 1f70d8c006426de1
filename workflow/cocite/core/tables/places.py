"""Paths of the files of each table within the results, the meaning of these paths, and their rows in DuckDB's SQL.

`graph/{graph}/edges/{bucket}.parquet` names the graph that has the edges; the bucket only shards, and is not reported.
The linear maps of a probe share a file, in which each has a name that `name_of_map` makes.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from cocite.core.tables import TABLES, VECTOR, Table
from cocite.core.tables.files import checked_files

SHARDS = ("bucket", "suite")
"""Names that only shard a table and are not reported: buckets of papers, suites of tasks."""
NUMBERS = ("bucket", "seed")
"""Names whose values are whole numbers."""

NORMALISE = "normalise"
"""Metadata of the maps of a probe: `True` if vectors behind them have length 1, as those of the encoder do."""

Place = tuple[tuple[str, str], ...]
"""Names and values in a path, such as (("model", "cocite"), ("seed", "1"))."""


def path_of(results: Path, name: str, /, **values: str | int) -> Path:
    """The file of the table `name`, from its declaration and values for the names in its path: `graph="citation"`.

    Without a value for the bucket, the folder of all buckets. Raises `KeyError` if another value is missing.
    """
    path = TABLES[name].path
    return results / (path if "bucket" in values else path.removesuffix("/{bucket}.parquet")).format(**values)


def files_by_place(
    results: Path, table: Table, keep: Callable[[Mapping[str, str]], bool] = lambda values: True
) -> dict[Place, list[Path]]:
    """The files of a table that `keep` wants, sorted, grouped by what their paths say and their columns do not."""
    pieces = re.split(r"\{(\w+)\}", table.path)
    for at, name in enumerate(pieces):
        value = "[0-9]+" if name in NUMBERS else "[^/]+"
        pieces[at] = f"(?P<{name}>{value})" if at % 2 else re.escape(name)
    pattern = re.compile("".join(pieces))
    places: dict[Place, list[Path]] = {}
    for path in sorted(results.glob(re.sub(r"\{\w+\}", "*", table.path))):
        matched = pattern.fullmatch(path.relative_to(results).as_posix())
        if matched and keep(matched.groupdict()):
            values = matched.groupdict().items()
            place = tuple((name, value) for name, value in values if name not in SHARDS and name not in table.columns)
            places.setdefault(place, []).append(path)
    return places


def rows_of(table: Table, groups: Mapping[Place, list[Path]], named: Callable[[list[Path]], str]) -> str:
    """A query for all rows of a table in checked files; `named` gives the list of some files as SQL."""
    selections = []
    for place, paths in groups.items():
        present = pq.read_schema(checked_files(paths[0], table.name)[0]).names
        columns = [f"{value if value.isdigit() else as_text(value)} AS {name}" for name, value in place]
        for name, column in table.columns.items():
            if name not in present:
                columns.append(f'NULL AS "{name}"')
            else:  # vectors may be of any dimension
                columns.append(f"{name}::FLOAT[] AS {name}" if column.type == VECTOR else f'"{name}"')
        selections.append(f"SELECT {', '.join(columns)} FROM read_parquet({named(paths)}, hive_partitioning = false)")
    return " UNION ALL ".join(selections)


def as_text(value: str) -> str:
    """A text as SQL."""
    return "'" + value.replace("'", "''") + "'"


def as_name(column: str) -> str:
    """The name of a column as SQL."""
    return '"' + column.replace('"', '""') + '"'


class Trained(NamedTuple):
    """How a linear map of a probe was trained."""

    loss: str
    batch_size: int
    seed: int


def name_of_map(trained: Trained) -> str:
    """The name of a map in the file with the maps of a probe."""
    return json.dumps(trained)


def training_of(name: str) -> Trained:
    """How the map of this name was trained, the inverse of `name_of_map`."""
    return Trained(*json.loads(name))
