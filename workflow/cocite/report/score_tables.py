"""The report's tables of scores: averages beside published ones, every task, and what was not scored.

Each is a frame of text; numbers are means, with the standard deviation over seeds behind ± where there are several.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.runs import names_in_order
from cocite.config.tasks import BOTH
from cocite.report.labels import measure, over_seeds

PUBLISHED = Path(__file__).parents[2] / "report" / "published.csv"
"""What was published of CoCite and others on SciRepEval (CoCite, 2024)."""
WEIGHTS = {"classification": 6, "regression": 5, "proximity": 11, "search": 3}
"""How many values of each format the published average is over."""
GROUPS = {"in-train": "in-train", "out-of-train": "out-of-train", "scidocs": "SciDocs"}
ROUNDING = 0.1
"""An average of rounded averages may be off by half a unit of the last digit, and is rounded itself."""


def scirepeval(averages: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a model and mode of each benchmark in SciRepEval's layout, then the published rows.

    `values` tells how many values the average is over, and of how many where a task has no score; the published one is
    over 25. A published average that its own formats contradict stands beside what they give.
    """
    asked = [name for name, entry in configuration["benchmarks"].items() if entry["kind"] == "scirepeval"]
    own = averages.filter(pl.col("benchmark").is_in(asked))
    if own.is_empty():
        return pl.DataFrame(schema=["model"])
    rows = [_own_row(part) for part in own.partition_by("benchmark", "model", "mode", maintain_order=True)]
    order = names_in_order(configuration)
    return pl.DataFrame([*sorted(rows, key=lambda row: order.index(row["model"])), *published_rows()])


def published_rows() -> list[dict[str, str]]:
    """The published averages, as rows of the table."""
    return [
        {
            "model": row["model"],
            "source": "published",
            **{name: f"{row[name]:.1f}" for name in WEIGHTS},
            "average": _checked(row["average"], average_of_formats(row)),
            **dict.fromkeys(GROUPS.values(), "–"),
            "values": "25",
        }
        for row in pl.read_csv(PUBLISHED).iter_rows(named=True)
    ]


def average_of_formats(means: Mapping[str, float]) -> float:
    """The average over all values, from the averages of the formats."""
    return sum(weight * means[name] for name, weight in WEIGHTS.items()) / sum(WEIGHTS.values())


def failures(found: pl.DataFrame) -> pl.DataFrame:
    """One row a benchmark, task, model and seed that has no score because the data make one impossible."""
    order = ["benchmark", "task", "model", "seed", "reason"]
    return found.select(order).sort(order).with_columns(pl.col("seed").cast(pl.String))


def tasks(scores: pl.DataFrame, configuration: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Of each benchmark that has scores, one row a model and one column a metric of a task."""
    keys = ["benchmark", "task", "metric", "mode"]
    order = pl.DataFrame({"model": names_in_order(configuration)}, schema={"model": pl.String})
    cells = over_seeds(scores, [*keys, "model"]).sort(keys)
    names = pl.struct("task", "metric", "mode").map_elements(lambda told: measure(**told), return_dtype=pl.String)
    tables = {}
    for benchmark in configuration["benchmarks"]:
        named = cells.filter(benchmark=benchmark).select("model", "cell", measure=names)
        if len(named):
            wide = named.pivot("measure", index="model", values="cell", maintain_order=True).fill_null("–")
            tables[benchmark] = order.join(wide, on="model", how="inner", maintain_order="left")
    return tables


def incomplete(scores: pl.DataFrame) -> pl.DataFrame:
    """One row a task on which some documents have no vector, or some queries or test documents have no score."""
    counted = scores.group_by("benchmark", "task").agg(pl.col("missing", "documents", "unscored").max())
    return (
        counted.filter((pl.col("missing") > 0) | (pl.col("unscored") > 0))
        .sort("benchmark", "task")
        .select(
            "benchmark",
            "task",
            pl.format("{} of {}", "missing", "documents").alias("documents without a vector"),
            pl.col("unscored").cast(pl.String).alias("left out of the score"),
        )
    )


def _own_row(part: pl.DataFrame) -> dict[str, str]:
    """The row of one model on one benchmark in one mode."""
    first = part.row(0, named=True)
    cells = {
        (row["over"], row["average"]): _cell(row["mean"], row["deviation"], row["runs"])
        for row in part.iter_rows(named=True)
    }
    whole = part.filter(over="all")
    return {
        "model": first["model"],
        "source": first["benchmark"] + ("" if first["mode"] == BOTH else f" ({first['mode']})"),
        **{name: cells.get(("format", name), "–") for name in WEIGHTS},
        "average": cells.get(("all", "all"), "–"),
        **{label: cells.get(("group", name), "–") for name, label in GROUPS.items()},
        "values": _share(whole["values"][0], whole["expected"][0]) if len(whole) else "0",
    }


def _share(found: int, expected: int) -> str:
    return str(found) if found == expected else f"{found} of {expected}"


def _cell(mean: float, deviation: float | None, runs: int) -> str:
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f} ({runs})"


def _checked(stated: float, computed: float) -> str:
    agrees = abs(stated - computed) <= ROUNDING
    return f"{stated:.1f}" if agrees else f"{stated:.1f} (its formats give {computed:.1f})"
