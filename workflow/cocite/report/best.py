"""The tables as the page shows them: which cells are numbers, which is the best of its column, which row is a sum.

Cells are text when they come here. A cell counts as a number if it begins with one, as “71.0 ± 1.4” does; behind it may
be a deviation or a remark.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")
EMPTY = ("–", "", None)
PARTIAL = re.compile(r"\d of \d")
PUBLISHED = "published"

Row = Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """In which columns of a table the best value stands out, and among which rows."""

    columns: Callable[[str], bool]
    """Whether a column, by its name, has values of which one is the best."""
    lower: tuple[str, ...] = ()
    """Columns in which the least is the best."""
    rivals: Callable[[Row, Row], bool] = lambda row, other: True
    """Whether two rows can be compared."""
    competes: Callable[[Row], bool] = lambda row: True
    """Whether a row takes part at all."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of a table on the page."""

    text: str
    is_number: bool
    is_best: bool


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A table on the page."""

    columns: tuple[str, ...]
    numbers: tuple[bool, ...]
    """Whether a column holds numbers."""
    rows: tuple[tuple[Cell, ...], ...]
    sums: tuple[tuple[Cell, ...], ...] = ()
    """Rows that sum up the others, and stay below them however they are sorted."""


def number_in(text: str | None) -> float | None:
    """The number that a cell begins with; none where it begins with none."""
    found = NUMBER.match(text or "")
    return float(found[0].replace(",", "").replace("−", "-")) if found else None


def shown(table: pl.DataFrame, ranking: Ranking | None = None, is_sum: str | None = None) -> Shown:
    """A table of text for the page; `is_sum` is what the first cell of rows that sum up the others says."""
    rows = table.with_columns(pl.col(pl.Int64).map_elements("{:,}".format, return_dtype=pl.String)).rows(named=True)
    best = [set[str]()] * len(rows) if ranking is None else _best(rows, table.columns, ranking)
    numbers = {name: _holds_numbers([row[name] for row in rows]) for name in table.columns}
    cells = [
        tuple(_cell(row[name], numbers[name], name in of_row) for name in table.columns)
        for row, of_row in zip(rows, best, strict=True)
    ]
    return Shown(
        columns=tuple(table.columns),
        numbers=tuple(numbers.values()),
        rows=tuple(row for row in cells if row[0].text != is_sum),
        sums=tuple(row for row in cells if row[0].text == is_sum),
    )


def _holds_numbers(cells: Sequence[str | None]) -> bool:
    filled = [cell for cell in cells if cell not in EMPTY]
    return bool(filled) and all(number_in(cell) is not None for cell in filled)


def _cell(text: str | None, is_number: bool, is_best: bool) -> Cell:
    written = "–" if text in EMPTY else str(text)
    return Cell(text=re.sub(r"^-(?=\d)", "−", written) if is_number else written, is_number=is_number, is_best=is_best)


def _best(rows: Sequence[Row], columns: Sequence[str], ranking: Ranking) -> list[set[str]]:
    """Of each row, the columns in which no rival is better and at least one is worse."""
    best: list[set[str]] = [set() for _ in rows]
    for column in filter(ranking.columns, columns):
        sign = -1 if column in ranking.lower else 1
        values = {
            place: sign * value
            for place, row in enumerate(rows)
            if ranking.competes(row)
            and not PARTIAL.search(row[column] or "")
            and (value := number_in(row[column])) is not None
        }
        for place, value in values.items():
            rivals = [other for at, other in values.items() if at != place and ranking.rivals(rows[place], rows[at])]
            if rivals and value >= max(rivals) and value > min(rivals):
                best[place].add(column)
    return best
