"""Where the files of each table lie in a folder of results, and what their paths tell beyond their columns.

`graph/{graph}/edges/{bucket}.parquet` tells of which graph the edges are; the bucket only shards and is not told.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cocite.tables import Table

SHARDS = ("bucket", "suite")
"""What only shards a table, and is not told: buckets of papers, suites of tasks."""
NUMBERS = ("bucket", "seed")

Place = tuple[tuple[str, str], ...]
"""Names and values that a path tells, such as (("model", "cocite"), ("seed", "1"))."""


def files_by_place(
    results: Path, table: Table, keep: Callable[[Mapping[str, str]], bool] = lambda told: True
) -> dict[Place, list[Path]]:
    """The files of a table under `results`, sorted, grouped by what their paths tell and their columns do not.

    `keep` is asked about each path: whether files of which it tells this are wanted.
    """
    pattern = re.compile(_as_expression(table.path))
    places: dict[Place, list[Path]] = {}
    for path in sorted(results.glob(re.sub(r"\{\w+\}", "*", table.path))):
        matched = pattern.fullmatch(path.relative_to(results).as_posix())
        if matched and keep(matched.groupdict()):
            told = {name: value for name, value in matched.groupdict().items() if name not in SHARDS}
            place = tuple((name, value) for name, value in told.items() if name not in table.columns)
            places.setdefault(place, []).append(path)
    return places


def _as_expression(path: str) -> str:
    """The path of a table as a regular expression with a group for each name in braces."""
    pieces = re.split(r"\{(\w+)\}", path)
    literal, names = pieces[::2], pieces[1::2]
    groups = [rf"(?P<{name}>{'[0-9]+' if name in NUMBERS else '[^/]+'})" for name in names] + [""]
    return "".join(re.escape(text) + group for text, group in zip(literal, groups, strict=True))
