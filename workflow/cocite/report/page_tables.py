"""The tables as the page shows them: which cells are numbers, which is the best of its column, which row is a sum.

Cells arrive as text. A cell counts as a number if it begins with one, as “71.0 ± 1.4” does; a deviation
or a remark may follow. Rows that this run scored compete: models, the encoders they come from, BM25 and random vectors
alike, since all had the same documents and the same protocol. Published rows do not, nor do averages over fewer values
than others, nor oracles.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from cocite.config.runs import model_of
from cocite.report.labels import GRAPH_METRICS, PUBLISHED
from cocite.report.map_page import AGREEMENT
from cocite.report.published import REPORTED

NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")
EMPTY = ("–", "", None)
PARTIAL = re.compile(r"\d of \d")

Row = Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The columns of a table in which the best value stands out, and the rows it is chosen among."""

    columns: Callable[[str], bool]
    """Whether a column, by its name, has values that can be ranked."""
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


def shown(
    table: pl.DataFrame, ranking: Ranking | None = None, is_sum: str | None = None, aside: Collection[str] = ()
) -> Shown:
    """A table of text for the page.

    `is_sum` is what the first cell of rows that sum up the others says, and `aside` has models that do not compete.
    """
    rows = table.with_columns(pl.col(pl.Int64).map_elements("{:,}".format, return_dtype=pl.String)).rows(named=True)
    best = [set[str]()] * len(rows) if ranking is None else _best(rows, table.columns, ranking, aside)
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


def _best(rows: Sequence[Row], columns: Sequence[str], ranking: Ranking, aside: Collection[str]) -> list[set[str]]:
    """Of each row, the columns in which no rival is better and at least one is worse."""
    best: list[set[str]] = [set() for _ in rows]
    for column in filter(ranking.columns, columns):
        sign = -1 if column in ranking.lower else 1
        values = {
            place: sign * value
            for place, row in enumerate(rows)
            if ranking.competes(row)
            and model_of(row.get("model") or "") not in aside
            and not PARTIAL.search(row[column] or "")
            and (value := number_in(row[column])) is not None
        }
        for place, value in values.items():
            rivals = [other for at, other in values.items() if at != place and ranking.rivals(rows[place], rows[at])]
            if rivals and value >= max(rivals) and value > min(rivals):
                best[place].add(column)
    return best


def ranking_of(table: str) -> Ranking | None:
    """The ranking of a table of the page, by its name; none where no row is better than another."""
    return next((RANKINGS[kind] for kind in ("tasks", "map") if table.startswith(f"{kind}_")), RANKINGS.get(table))


def _is_score(column: str) -> bool:
    return column not in ("model", "source", "values")  # which say what a row is


def _is_compared(column: str) -> bool:
    """Whether a column of models that differ in one thing only holds scores: those name their benchmark."""
    return column == "validation accuracy" or ": " in column


def _has_all_values(row: Row) -> bool:
    return row.get("source") != PUBLISHED and " of " not in (row.get("values") or "")


def _same_protocol(row: Row, other: Row) -> bool:
    """Whether two rows are of one benchmark and one mode; rows without a mode hold in every mode."""
    (benchmark, _, mode), (others, _, other_mode) = ((each["source"] or "").partition(" (") for each in (row, other))
    return benchmark == others and (mode == other_mode or not mode or not other_mode)


RANKINGS: Mapping[str, Ranking] = {
    **dict.fromkeys(("models", "tasks"), Ranking(columns=_is_score)),
    **dict.fromkeys(
        ("scirepeval_formats", "scirepeval_groups", "scirepeval_tasks", "scidocs", "mdcr", "mdcr_fields"),
        Ranking(columns=_is_score, competes=_has_all_values, rivals=_same_protocol),
    ),
    "reported": Ranking(
        columns=_is_score,
        competes=lambda row: not (row["source"] or "").startswith(REPORTED),
        rivals=lambda row, other: row["source"] == other["source"],
    ),
    **dict.fromkeys(("losses", "difficulties"), Ranking(columns=_is_compared)),
    "map": Ranking(
        columns=lambda column: column in AGREEMENT.values(),
        competes=lambda row: row["source"] != PUBLISHED,
        rivals=lambda row, other: row["label"] == other["label"],
    ),
    "graph_embeddings": Ranking(
        columns=lambda column: column in GRAPH_METRICS.values() and column != "loss",  # losses are of several kinds
        lower=("mean rank",),
        competes=lambda row: row["held-out edges"] not in EMPTY,  # published rows have none
        rivals=lambda row, other: all(row[name] == other[name] for name in ("graph", "held-out edges", "negatives")),
    ),
}
