"""The published ablations of SPECTER (2020) and SciNCL (2022), with those of this run beside them.

A published row stands for a model of experiments/ablations.yaml. The average of a format is over all metrics of
its tasks.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from cocite.config.runs import untrained
from cocite.config.tasks import BOTH
from cocite.report.labels import over_seeds
from cocite.report.matched import beside_results, model_with_settings_of, read_published
from cocite.report.sciaspect import own_average

FORMATS: Mapping[str, tuple[str, ...]] = {
    "CLS": ("mag", "mesh"),
    "USR": ("scidocs_view", "scidocs_read"),
    "CITE": ("scidocs_cite", "scidocs_cocite"),
    "REC": ("recomm",),
}
"""The tasks of SPECTER's formats: classification, user activity, citations, recommendation."""
VALUES = {"CLS": 2, "USR": 4, "CITE": 4, "REC": 2}
"""How many values each of them is over."""
SCIDOCS = "SciDocs"


def ablations(scores: pl.DataFrame, averages: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a published result, then one for each further model, with two columns a measure.

    Empty where no model has the settings of a published one, or SciDocs in its own layout is not among the benchmarks.
    """
    scidocs = next((name for name, entry in configuration["benchmarks"].items() if entry["kind"] == "scidocs"), None)
    published = read_published("ablations").rows(named=True)
    if scidocs is None or not any(model_with_settings_of(row, configuration) for row in published):
        return pl.DataFrame(schema=["published result"])

    def own(measure: str, model: str) -> str | None:
        if measure == SCIDOCS:
            return own_average(averages.filter(benchmark=scidocs, model=model, over="all", average="all"))
        return _own(measure, scores.filter(benchmark=scidocs, model=model))

    further = [*configuration["models"], *untrained(configuration)]
    return beside_results("ablations", (*FORMATS, SCIDOCS), own, configuration, further)


def _own(measure: str, scores: pl.DataFrame) -> str | None:
    """What a model of this run has of a format, in the published mode where it was scored; none without any value."""
    found = scores.filter(pl.col("task").is_in(FORMATS[measure]))
    if found.is_empty():
        return None
    modes = sorted(set(found["mode"]) - {BOTH})[:1]  # compat comes before correct
    found = found.filter(pl.col("mode").is_in([*modes, BOTH]))
    runs = found.group_by("model", "seed", "evaluation_seed").agg(pl.col("value").mean())
    cell, there = str(over_seeds(runs, ["model"])["cell"].item()), found.select("task", "metric").n_unique()
    return cell if there == VALUES[measure] else f"{cell} ({there} of {VALUES[measure]} values)"
