"""Tasks that mteb has as well: what this run reached on them, beside what others reported.

Reported scores stand in this table and in no other: no mean, figure or test of the run counts them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.baselines import reported_on
from cocite.config.runs import names_in_order
from cocite.report.labels import metric_in_words, over_seeds
from cocite.report.results import nothing_of, read

REPORTED = "reported"
"""How the source of a row begins that this run did not measure."""
REVISION = 8
"""Letters of a revision that are shown."""


def read_reported(results: Path, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """The scores that others reported, on all benchmarks."""
    found = [
        read(results, "reported_scores", benchmark=benchmark, baseline=name)
        for benchmark in configuration["benchmarks"]
        for name in reported_on(configuration, benchmark)
    ]
    return pl.concat([nothing_of("reported_scores"), *found])


def beside_reported(scores: pl.DataFrame, reported: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a model and benchmark, then one a baseline whose scores were reported; one column a task.

    The tasks are those with a reported score, by the metric that was reported. Empty where there are none.
    """
    if reported.is_empty():
        return pl.DataFrame(schema=["model"])
    labels = pl.format("{} {}", "mteb_task", pl.col("metric").map_elements(metric_in_words, return_dtype=pl.String))
    labelled = reported.with_columns(column=labels)
    asked = labelled.select("benchmark", "task", "metric", "column").unique()
    measured = scores.join(asked, on=["benchmark", "task", "metric"])
    ours = over_seeds(measured, ["model", "benchmark", "column"]).rename({"benchmark": "source"})
    theirs = labelled.select(
        "column", model="baseline", source=_source(), cell=pl.col("value").round(1).cast(pl.String)
    )
    wide = [
        rows.pivot("column", index=["model", "source"], values="cell", aggregate_function="first")
        for rows in (ours, theirs)
        if len(rows)
    ]
    order = {name: place for place, name in enumerate(names_in_order(configuration))}
    benchmarks = {name: place for place, name in enumerate(configuration["benchmarks"])}
    rows = pl.concat(wide, how="diagonal").to_dicts()
    rows.sort(key=lambda row: (row["source"] not in benchmarks, order[row["model"]], benchmarks.get(row["source"], 0)))
    columns = sorted(set(asked["column"]))
    return pl.DataFrame(rows).select("model", "source", *columns).fill_null("–")


def _source() -> pl.Expr:
    """That a row was reported, of which model and revision where the files say so."""
    revision = pl.col("mteb_revision").str.head(REVISION).fill_null("")
    known = pl.format("{}: {} {}", pl.lit(REPORTED), "mteb_model", revision).str.strip_chars_end()
    return pl.when(pl.col("mteb_model").is_null()).then(pl.lit(REPORTED)).otherwise(known)
