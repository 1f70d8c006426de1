"""The tables as the page shows them: which cells are numbers, which is the best of its column, which row is a sum.

Cells arrive as text. A cell counts as a number if it begins with one, as “71.0 ± 1.4” does. Rows that this run scored
compete: models, the encoders they come from, BM25 and random vectors alike, since all had the same documents and the
same protocol. Published rows do not, nor do averages over fewer values than others, nor oracles.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from cocite.config.benchmarks.holdout import CITATION_CLASSES
from cocite.config.runs import model_of
from cocite.report.labels import GRAPH_METRICS, PUBLISHED
from cocite.report.map_page import AGREEMENT
from cocite.report.published import REPORTED
from cocite.report.scores import QUERIES, recall_of

NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")
EMPTY = ("–", "", None)
PARTIAL = re.compile(r"\d of \d")

Row = Mapping[str, str | None]


class Ranking(NamedTuple):
    """The columns of a table in which the best value is bold, and the rows it is selected from."""

    columns: Callable[[str], bool]
    """Whether a column, by its name, has values that can be ranked."""
    lower: tuple[str, ...] = ()
    """Columns in which the least is the best."""
    rivals: Callable[[Row, Row], bool] = lambda row, other: True
    """Whether two rows can be compared."""
    competes: Callable[[Row], bool] = lambda row: True
    """Whether a row takes part at all."""


class Cell(NamedTuple):
    """A cell of a table on the page."""

    text: str
    is_number: bool
    is_best: bool


class Shown(NamedTuple):
    """A table on the page: its columns, whether they are numeric, its rows, and rows of totals."""

    columns: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sums: tuple[tuple[Cell, ...], ...]


def number_in(text: str | None) -> float | None:
    """The number that a cell begins with; none if it begins with none."""
    found = NUMBER.match(text or "")
    return float(found[0].replace(",", "").replace("−", "-")) if found else None


def shown(
    table: pl.DataFrame, ranking: Ranking | None = None, is_sum: str | None = None, aside: Collection[str] = ()
) -> Shown:
    """A table of text for the page.

    `is_sum` is the first cell of rows that sum up the others; the models in `aside` do not compete.
    """
    rows = table.with_columns(pl.col(pl.Int64).map_elements("{:,}".format, return_dtype=pl.String)).rows(named=True)
    best = [set[str]()] * len(rows) if ranking is None else _best(rows, table.columns, ranking, aside)
    filled = {name: [row[name] for row in rows if row[name] not in EMPTY] for name in table.columns}
    numbers = {name: bool(texts) and None not in map(number_in, texts) for name, texts in filled.items()}

    def cell(text: str | None, is_number: bool, is_best: bool) -> Cell:
        written = "–" if text in EMPTY else str(text)
        return Cell(re.sub(r"^-(?=\d)", "−", written) if is_number else written, is_number, is_best)

    cells = [
        tuple(cell(row[name], numbers[name], name in of_row) for name in table.columns)
        for row, of_row in zip(rows, best, strict=True)
    ]
    return Shown(
        columns=tuple(table.columns),
        numbers=tuple(numbers.values()),
        rows=tuple(row for row in cells if row[0].text != is_sum),
        sums=tuple(row for row in cells if row[0].text == is_sum),
    )


def _best(rows: Sequence[Row], columns: Sequence[str], ranking: Ranking, aside: Collection[str]) -> list[set[str]]:
    """For each row, the columns in which no rival is better and at least one is worse."""
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
    """The ranking of a table of the page, by its name; none if no row is better than another."""
    return next((RANKINGS[kind] for kind in ("tasks", "map") if table.startswith(f"{kind}_")), RANKINGS.get(table))


def _is_score(column: str) -> bool:
    return column not in ("model", "source", "values")  # which identify a row


def _same_protocol(row: Row, other: Row) -> bool:
    """Whether two rows are of one benchmark and one mode; rows without a mode match every mode."""
    (benchmark, _, mode), (others, _, other_mode) = ((each["source"] or "").partition(" (") for each in (row, other))
    return benchmark == others and (mode == other_mode or not mode or not other_mode)


RANKINGS: Mapping[str, Ranking] = {
    **dict.fromkeys(("models", "tasks"), Ranking(_is_score)),
    **dict.fromkeys(
        ("scirepeval_formats", "scirepeval_groups", "scirepeval_tasks", "scidocs", "mdcr", "mdcr_fields"),
        Ranking(
            _is_score,
            competes=lambda row: row.get("source") != PUBLISHED and " of " not in (row.get("values") or ""),
            rivals=_same_protocol,
        ),
    ),
    "popularity": Ranking(
        lambda column: column in map(recall_of, CITATION_CLASSES),
        rivals=lambda row, other: (row["benchmark"], row["task"]) == (other["benchmark"], other["task"]),
    ),
    "by_year": Ranking(
        str.isdecimal,
        competes=lambda row: row["model"] != QUERIES,
        rivals=lambda row, other: (row["benchmark"], row["task"]) == (other["benchmark"], other["task"]),
    ),
    "reported": Ranking(
        _is_score,
        competes=lambda row: not (row["source"] or "").startswith(REPORTED),
        rivals=lambda row, other: row["source"] == other["source"],
    ),
    # Of models that differ in one thing only: columns of scores name their benchmark.
    **dict.fromkeys(
        ("losses", "difficulties"), Ranking(lambda column: column == "validation accuracy" or ": " in column)
    ),
    "map": Ranking(
        lambda column: column in AGREEMENT.values(),
        competes=lambda row: row["source"] != PUBLISHED,
        rivals=lambda row, other: row["label"] == other["label"],
    ),
    "graph_embeddings": Ranking(
        lambda column: column in GRAPH_METRICS.values() and column != "loss",  # losses are of several kinds
        lower=("mean rank",),
        competes=lambda row: row["held-out edges"] not in EMPTY,  # published rows have none
        rivals=lambda row, other: all(row[name] == other[name] for name in ("graph", "held-out edges", "negatives")),
    ),
}
