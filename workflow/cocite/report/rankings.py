"""In which tables of the page the best value of a column stands out, and which of their rows can be compared.

Rows that this run scored compete: models, the encoders they come from, BM25 and random vectors alike, since all had the
same documents and the same protocol. Published rows do not, nor do averages over fewer values than others.
"""

from collections.abc import Mapping

from cocite.report.best import PUBLISHED, Ranking, Row
from cocite.report.results import GRAPH_METRICS

OF_ROWS = ("model", "source", "values")
"""Columns of the tables of scores that say what a row is."""
SAME_EDGES = ("graph", "held-out edges", "negatives")
LOWER = ("mean rank",)


def ranking_of(table: str) -> Ranking | None:
    """The ranking of a table of the page, by its name; none where no row is better than another."""
    return RANKINGS.get("tasks" if table.startswith("tasks_") else table)


def _is_score(column: str) -> bool:
    return column not in OF_ROWS


def _is_compared(column: str) -> bool:
    """Whether a column of models that differ in one thing only holds scores: those name their benchmark."""
    return column == "validation accuracy" or ": " in column


def _is_graph_metric(column: str) -> bool:
    """Whether a column holds a metric that embeddings with other losses have as well."""
    return column in GRAPH_METRICS.values() and column != "loss"


def _has_all_values(row: Row) -> bool:
    return row.get("source") != PUBLISHED and " of " not in (row.get("values") or "")


def _same_protocol(row: Row, other: Row) -> bool:
    """Whether two rows are of one benchmark and one mode; rows without a mode hold in every mode."""
    (benchmark, mode), (others, other_mode) = (_protocol(each) for each in (row, other))
    return benchmark == others and (mode == other_mode or not mode or not other_mode)


def _protocol(row: Row) -> tuple[str, str]:
    benchmark, _, mode = (row["source"] or "").partition(" (")
    return benchmark, mode


def _same_edges(row: Row, other: Row) -> bool:
    return all(row[name] == other[name] for name in SAME_EDGES)


_SCORES = Ranking(columns=_is_score)
_LITERATURE = Ranking(columns=_is_score, competes=_has_all_values, rivals=_same_protocol)
_COMPARED = Ranking(columns=_is_compared)
RANKINGS: Mapping[str, Ranking] = {
    "models": _SCORES,
    "tasks": _SCORES,
    "scirepeval_formats": _LITERATURE,
    "scirepeval_groups": _LITERATURE,
    "scirepeval_tasks": _LITERATURE,
    "scidocs": _LITERATURE,
    "mdcr": _LITERATURE,
    "losses": _COMPARED,
    "difficulties": _COMPARED,
    "graph_embeddings": Ranking(columns=_is_graph_metric, lower=LOWER, rivals=_same_edges),
}
