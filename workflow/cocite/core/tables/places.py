"""Where the files of each table lie in a folder of results, and what their paths say beyond their columns.

`graph/{graph}/edges/{bucket}.parquet` names the graph that has the edges; the bucket only shards, and is not reported.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cocite.core.tables import TABLES, Table

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


def _as_expression(path: str) -> str:
    """The path of a table as a regular expression with a group for each name in braces."""
    pieces = re.split(r"\{(\w+)\}", path)
    literal, names = pieces[::2], pieces[1::2]
    groups = [rf"(?P<{name}>{'[0-9]+' if name in NUMBERS else '[^/]+'})" for name in names] + [""]
    return "".join(re.escape(text) + group for text, group in zip(literal, groups, strict=True))
