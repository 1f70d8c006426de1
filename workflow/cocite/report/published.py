"""The report's tables of SciRepEval, SciDocs and MDCR: ours beside published values, in the literature's columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.runs import names_in_order
from cocite.config.tasks import BOTH, WITH_FEW_SHOT
from cocite.report.labels import PUBLISHED, mean_cell, over_seeds, with_mode
from cocite.report.sciaspect import published_values

AVERAGES = Path(__file__).parents[2] / "report" / "published.csv"
"""The published averages of CoCite and others on SciRepEval (CoCite, 2024)."""
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
}
"""Task and metric of each column. The recommendation is left out: its published values are those of another task."""
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
OF_SCIDOCS: dict[str, tuple[float | None, ...]] = {
    "SPECTER": (81.95, 86.44, 83.63, 91.5, 84.46, 92.39, 88.3, 94.88, 88.11, 94.77),
    "SPECTERCL": (81.99, 89.25, 84.53, None, 86.14, None, 89.76, None, 90.26, None),
}
"""Cohan et al., 2020, as the released evaluation gives it; SciAspect, 2023. SciRepEval has the rankings as well."""
VALUES: dict[str, dict[str, tuple[float | None, ...]]] = {
    "scirepeval": {
        model: tuple(dict(zip(SCIDOCS.values(), values, strict=True)).get(column) for column in TASKS.values())
        for model, values in OF_SCIDOCS.items()
    },
    "scidocs": OF_SCIDOCS,
    "mdcr": {
        "SciNCL": (32.57, 58.93, 27.27),
        "BM25": (33.7, None, 28.5),
        "SPECTERCL": published_values("specter-cl", [f"MDCR {measure}" for measure in MDCR]),
    },
}
"""Beside those of SciDocs: Medić & Šnajder, 2022, and SciAspect, 2023."""
COLUMNS: dict[str, dict[str, tuple[str | None, str]]] = {"scirepeval": TASKS, "scidocs": SCIDOCS, "mdcr": MDCR}


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
            "model": row["model"],
            "source": PUBLISHED,
            **{name: f"{row[name]:.1f}" for name in WEIGHTS},
            "average": _checked(row),
            **dict.fromkeys(GROUPS.values(), "–"),
            "values": "25",
        }
        for row in pl.read_csv(AVERAGES).iter_rows(named=True)
    ]


def beside_published(kind: str, scores: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a model, benchmark of the kind and mode, then the published rows; empty without such a benchmark.

    Columns are those that one of our models has a value in; published rows without one in any of them are left out.
    """
    asked = [name for name, entry in configuration["benchmarks"].items() if entry["kind"] == kind]
    own = scores.filter(pl.col("benchmark").is_in(asked))
    if own.is_empty():
        return pl.DataFrame(schema=["model"])
    order = names_in_order(configuration)
    rows = [row for part in own.partition_by("benchmark", "model") for row in _own_rows(part, COLUMNS[kind])]
    published = [
        {"model": model, "source": PUBLISHED}
        | {name: "–" if value is None else f"{value:.1f}" for name, value in zip(COLUMNS[kind], values, strict=True)}
        for model, values in VALUES[kind].items()
    ]
    columns = [name for name in COLUMNS[kind] if any(row[name] != "–" for row in rows)]
    comparable = [row for row in published if any(row[name] != "–" for name in columns)]
    table = pl.DataFrame([*sorted(rows, key=lambda row: order.index(row["model"])), *comparable])
    return table.select("model", "source", *columns)


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


def _checked(means: Mapping[str, float]) -> str:
    """The published average over all values, beside what the averages of the formats give where they contradict it."""
    stated = means["average"]
    computed = sum(weight * means[name] for name, weight in WEIGHTS.items()) / sum(WEIGHTS.values())
    agrees = abs(stated - computed) <= ROUNDING
    return f"{stated:.1f}" if agrees else f"{stated:.1f} (its formats give {computed:.1f})"


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
