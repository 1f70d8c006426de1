"""The report's tables of SciRepEval, SciDocs and MDCR: ours beside published values, in the literature's columns."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from cocite.config.benchmarks.mdcr import Mdcr
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.runs import names_in_order
from cocite.config.tasks import BOTH, WITH_FEW_SHOT
from cocite.report.labels import PUBLISHED, mean_cell, over_seeds, with_mode
from cocite.report.matched import read_published

WEIGHTS = {"classification": 6, "regression": 5, "proximity": 11, "search": 3}
"""How many values of each format the published average is over."""
GROUPS = {"in-train": "in-train", "out-of-train": "out-of-train", "scidocs": "SciDocs"}
ROUNDING = 0.1
"""An average of rounded averages may be off by half a unit of the last digit, and is rounded itself."""
SCIDOCS: dict[str, tuple[str | None, str]] = {
    "MAG F1": ("mag", "f1_macro"),
    "MeSH F1": ("mesh", "f1_macro"),
    **{
        f"{label} {measure}": (f"scidocs_{name}", metric)
        for label, name in (("view", "view"), ("read", "read"), ("cite", "cite"), ("co-cite", "cocite"))
        for measure, metric in (("MAP", "map"), ("nDCG", "ndcg"))
    },
    "recommendation nDCG": ("recomm", "ndcg_adjusted"),
    "recommendation P@1": ("recomm", "P_1_adjusted"),
}
"""Task and metric of each column."""
LABELS = {
    "f1": "F1",
    "f1_macro": "F1",
    "kendall_tau": "τ",
    "map": "MAP",
    "ndcg": "nDCG",
    "P_5": "P@5",
    "P_10": "P@10",
}
TASKS: dict[str, tuple[str | None, str]] = {
    f"{task.name} {LABELS[metric]}": (task.name, metric) for task in SCIREPEVAL for metric in task.metrics
}
"""The 25 values of SciRepEval's average, and the four of reviewer matching, which is not in it."""
MDCR: dict[str, tuple[str | None, str]] = {"MAP": (None, "map"), "nDCG": (None, "ndcg"), "recall@5": (None, "recall_5")}
"""The metric of each column; the column holds its plain mean over the fields."""
FIELDS_OF_MDCR: dict[str, tuple[str | None, str]] = {task.test: (task.name, "map") for task in Mdcr.declared}
"""The task of each field, by MAP."""
COLUMNS: dict[str, dict[str, tuple[str | None, str]]] = {
    "scirepeval": TASKS,
    "scidocs": SCIDOCS,
    "mdcr": MDCR,
    "mdcr_fields": FIELDS_OF_MDCR,
}
"""The columns of each table."""


def scirepeval(averages: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a model and mode of each benchmark in SciRepEval's layout, then the published rows.

    `values` is the number of values that the average is over, and of how many where a task has no score; the published
    average is over 25. A published average that its own formats contradict stands beside what they give.
    """
    asked = [name for name, entry in configuration["benchmarks"].items() if entry["kind"] == "scirepeval"]
    own = averages.filter(pl.col("benchmark").is_in(asked))
    if own.is_empty():
        return pl.DataFrame(schema=["model"])
    rows = [_row_of_averages(part) for part in own.partition_by("benchmark", "model", "mode", maintain_order=True)]
    order = names_in_order(configuration)
    return pl.DataFrame([*sorted(rows, key=lambda row: order.index(row["model"])), *published_rows()])


def published_rows() -> list[dict[str, str]]:
    """The published averages, as rows of the table."""
    return [
        {
            "model": _referenced(row),
            "source": PUBLISHED,
            **{name: row[name] for name in WEIGHTS},
            "average": _checked(row),
            **{label: row[label] or "–" for label in GROUPS.values()},
            "values": "25",
        }
        for row in read_published("scirepeval_averages").iter_rows(named=True)
    ]


def beside_published(table: str, scores: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row per model, benchmark of the table's kind and mode, then the published rows.

    Empty without such a benchmark. Columns are those that one of our models has a value in; published rows without
    one in any of them are left out.
    """
    kind = table.partition("_")[0]
    benchmarks = [name for name, entry in configuration["benchmarks"].items() if entry["kind"] == kind]
    own = scores.filter(pl.col("benchmark").is_in(benchmarks))
    if own.is_empty():
        return pl.DataFrame(schema=["model"])
    order = names_in_order(configuration)
    rows = [row for part in own.partition_by("benchmark", "model") for row in _own_rows(part, COLUMNS[table])]
    published = [
        {"model": _referenced(row), "source": PUBLISHED, **{name: row.get(name) or "–" for name in COLUMNS[table]}}
        for row in _published(table).iter_rows(named=True)
    ]
    columns = [name for name in COLUMNS[table] if any(row[name] != "–" for row in rows)]
    comparable = [row for row in published if any(row[name] != "–" for name in columns)]
    all_rows = pl.DataFrame([*sorted(rows, key=lambda row: order.index(row["model"])), *comparable])
    return all_rows.select("model", "source", *columns)


def _published(table: str) -> pl.DataFrame:
    """The published rows of a table, with a column for each of its own."""
    if table == "scirepeval":
        return read_published("scirepeval_tasks")
    if table == "scidocs":
        return read_published("scidocs")
    by_field = read_published("mdcr")
    if table == "mdcr":
        return by_field.filter(field="mean")
    return by_field.pivot("field", index=["model", "reference"], values="MAP")


def _referenced(row: Mapping[str, str]) -> str:
    """The name of a published model with the table that its values are from."""
    return f"{row['model']} [{row['reference']}]"


def _row_of_averages(part: pl.DataFrame) -> dict[str, str]:
    """The row of one model on one benchmark in one mode."""
    first = part.row(0, named=True)
    cells = {
        (row["over"], row["average"]): mean_cell(row["mean"], row["deviation"])
        + ("" if row["deviation"] is None else f" ({row['runs']})")
        for row in part.iter_rows(named=True)
    }
    [(found, expected)] = part.filter(over="all").select("values", "expected").rows() or [(0, 0)]
    return {
        "model": first["model"],
        "source": with_mode(first["benchmark"], first["mode"]),
        **{name: cells.get(("format", name), "–") for name in WEIGHTS},
        "average": cells.get(("all", "all"), "–"),
        **{label: cells.get(("group", name), "–") for name, label in GROUPS.items()},
        "values": "0" if not found else str(found) if found == expected else f"{found} of {expected}",
    }


def _checked(row: Mapping[str, str]) -> str:
    """The published average over all values, with what the averages of the formats give if they contradict it."""
    formats = {name: float(row[name].partition(" ")[0]) for name in WEIGHTS}
    computed = sum(weight * formats[name] for name, weight in WEIGHTS.items()) / sum(WEIGHTS.values())
    agrees = abs(float(row["average"].partition(" ")[0]) - computed) <= ROUNDING
    return row["average"] if agrees else f"{row['average']} (its formats give {computed:.1f})"


def _own_rows(part: pl.DataFrame, columns: Mapping[str, tuple[str | None, str]]) -> list[dict[str, str]]:
    """A row for each mode of one model on one benchmark; rankings are the same in each."""
    first = part.row(0, named=True)
    modes = sorted(set(part["mode"]) - {BOTH}) or [BOTH]
    return [
        {
            "model": first["model"],
            "source": with_mode(first["benchmark"], mode),
            **{name: _cell(part.filter(pl.col("mode").is_in([mode, BOTH])), *of) for name, of in columns.items()},
        }
        for mode in modes
    ]


def _cell(scores: pl.DataFrame, task: str | None, metric: str) -> str:
    """Mean and deviation over the seeds of a metric of a task, few-shot stages included where there are some.

    Without a task, of its plain mean over all tasks.
    """
    of_metric = scores.filter(pl.col("metric").is_in([metric, metric + WITH_FEW_SHOT]))
    found = (of_metric if task is None else of_metric.filter(task=task)).with_columns(metric_of=pl.lit(metric))
    runs = found.group_by("metric_of", "seed", "evaluation_seed").agg(pl.col("value").mean())
    return "–" if runs.is_empty() else str(over_seeds(runs, ["metric_of"])["cell"].item())
