"""The published results of several objectives (Parisot and Zavrel, 2022), with those of this run beside them.

A published row stands for a model of experiments/objectives.yaml.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from cocite.config.baselines import beside_models
from cocite.config.benchmarks import tasks_of
from cocite.config.benchmarks.beir import PUBLISHED, task_of
from cocite.config.runs import untrained
from cocite.report.labels import over_seeds
from cocite.report.matched import beside_results
from cocite.report.sciaspect import own_average

SEARCHES: Mapping[str, tuple[str, ...]] = {
    "BEIR nDCG@10": tuple(task_of(dataset).name for dataset in PUBLISHED),
    "ICLR2022 nDCG@10": (task_of("iclr2022").name,),
}
"""The tasks that a measure is the plain mean over."""
METRIC = "ndcg_cut_10"
SCIDOCS = "SciDocs"
BEIR, ICLR = SEARCHES
MEASURES = (BEIR, SCIDOCS, ICLR)


def objectives(scores: pl.DataFrame, averages: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a published result, then one for each further model, with two columns a measure.

    A task that several benchmarks have counts in the first of them. Empty where none has any of the tasks.
    """
    asked = _benchmarks(configuration)
    if not asked:
        return pl.DataFrame(schema=["published result"])
    shown = [*configuration["models"], *untrained(configuration), *beside_models(configuration)]
    places = pl.DataFrame(list(asked.items()), schema=["task", "benchmark"], orient="row")
    found = scores.filter(metric=METRIC).join(places, on=["task", "benchmark"])
    scidocs = next((name for name, entry in configuration["benchmarks"].items() if entry["kind"] == "scidocs"), "")

    def own(measure: str, model: str) -> str | None:
        return _own(measure, model, found, averages, scidocs)

    return beside_results("objectives", MEASURES, own, configuration, shown)


def _benchmarks(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The first benchmark that has each of the tasks."""
    asked = {task for tasks in SEARCHES.values() for task in tasks}
    found: dict[str, str] = {}
    for name, entry in configuration["benchmarks"].items():
        for task in tasks_of(entry):
            if task.name in asked:
                found.setdefault(task.name, name)
    return found


def _own(measure: str, model: str, scores: pl.DataFrame, averages: pl.DataFrame, scidocs: str) -> str | None:
    """What a model of this run has of a measure; none where it was not scored."""
    if measure == SCIDOCS:
        return own_average(averages.filter(benchmark=scidocs, model=model, over="all", average="all"))
    tasks = SEARCHES[measure]
    found = scores.filter(pl.col("model") == model, pl.col("task").is_in(tasks))
    if found.is_empty():
        return None
    runs = found.group_by("model", "seed", "evaluation_seed").agg(pl.col("value").mean())
    cell, there = str(over_seeds(runs, ["model"])["cell"].item()), found["task"].n_unique()
    return cell if there == len(tasks) else f"{cell} ({there} of {len(tasks)} datasets)"
