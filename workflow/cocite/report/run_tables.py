"""The report's tables of the run itself: how large the corpus is, what was trained, and what each rule took."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from cocite.ground.words import clock_time
from cocite.report.costs import SNAKEMAKE

OF_ALL = "all together"


def size_of_corpus(statistics: pl.DataFrame) -> pl.DataFrame:
    """The table `corpus_statistics` as it is read."""
    return statistics.select("measure", pl.col("value").map_elements("{:,}".format, return_dtype=pl.String))


def trained_models(configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a model: what it learns from, what it starts from, and how it is trained."""
    rows = [
        {
            "model": name,
            "triplets": entry["triplets"],
            "sampler": configuration["triplets"][entry["triplets"]]["sampler"],
            "sampled from": _source(configuration["triplets"][entry["triplets"]]),
            "encoder": entry["encoder"],
            "loss": entry["loss"],
            "weights that learn": entry["trainable"],
            "epochs": str(entry["epochs"]),
            "training seeds": ", ".join(map(str, entry["seeds"])),
        }
        for name, entry in configuration["models"].items()
    ]
    return pl.DataFrame(rows) if rows else pl.DataFrame(schema=["model"])


def costs_of_rules(costs: pl.DataFrame, seconds_at_work: float) -> pl.DataFrame:
    """The table `costs` as it is read, the rule that took the longest first and all of them together last.

    Jobs ran side by side, and beside Snakemake: together they took `seconds_at_work`, which is less than their sum.
    """
    of_rules = pl.col("rule") != SNAKEMAKE
    of_all = costs.select(
        rule=pl.lit(OF_ALL),
        jobs=pl.col("jobs").filter(of_rules).sum(),
        seconds=pl.lit(seconds_at_work),
        longest_seconds=pl.col("longest_seconds").filter(of_rules).max(),
        cpu_seconds=pl.col("cpu_seconds").sum(),
        peak_mb=pl.col("peak_mb").max(),
    )
    rows = pl.concat([costs.select(of_all.columns).sort("seconds", "rule", descending=[True, False]), of_all])
    return rows.select(
        "rule",
        pl.col("jobs").map_elements("{:,}".format, return_dtype=pl.String),
        _duration("seconds").alias("time"),
        _duration("longest_seconds").alias("longest job"),
        _duration("cpu_seconds").alias("processor time"),
        pl.col("peak_mb").map_elements("{:,.0f}".format, return_dtype=pl.String).alias("largest memory, MB"),
    )


def _duration(column: str) -> pl.Expr:
    return pl.col(column).map_elements(clock_time, return_dtype=pl.String)


def _source(triplets: Mapping[str, Any]) -> str:
    """What a set of triplets is sampled from, by name."""
    for key in ("embedding", "graph", "of"):
        if key in triplets:
            named = triplets[key]
            return named if isinstance(named, str) else ", ".join(named)
    return "–"
