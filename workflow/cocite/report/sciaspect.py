"""The matrix of SciAspect's published results (SciAspect, 2023), with those of this run beside them.

A published row stands for a model of experiments/aspects.yaml, in the space in which it was scored.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from cocite.config.lineage import sets_of
from cocite.config.runs import model_of, scored_models
from cocite.report.labels import mean_cell
from cocite.report.matched import beside_results

MEASURES: Mapping[str, tuple[str, tuple[str, str]]] = {
    "SciDocs": ("scidocs", ("all", "all")),
    "SciRepEval": ("scirepeval", ("all", "all")),
    "MDCR MAP": ("mdcr", ("metric", "map")),
    "MDCR nDCG": ("mdcr", ("metric", "ndcg")),
    "MDCR recall@5": ("mdcr", ("metric", "recall_5")),
}
"""The kind of benchmark and the average that each measure is."""
SAMPLERS = {"aspects", "undirected"}
"""The samplers of SciAspect's models."""


def matrix(averages: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a published result, then one for each further model of this kind, with two columns a measure.

    Ours are in the mode of the published protocol where it was scored, on the first benchmark of each kind. Empty
    without such a model or without any of the benchmarks.
    """
    models, benchmarks = _models(configuration), _benchmarks(configuration)
    if not models or not benchmarks:
        return pl.DataFrame(schema=["published result"])

    def own(measure: str, model: str) -> str | None:
        kind, (over, average) = MEASURES[measure]
        return own_average(averages.filter(benchmark=benchmarks.get(kind, ""), model=model, over=over, average=average))

    return beside_results("aspects", list(MEASURES), own, configuration, models)


def _models(configuration: Mapping[str, Any]) -> list[str]:
    """The models that learn from examples as SciAspect's do, each in its spaces."""
    sampler = {name: entry["sampler"] for name, entry in configuration["triplets"].items()}
    models = configuration["models"].items()
    learns = {name for name, entry in models if SAMPLERS.issuperset(sampler[each] for each in sets_of(entry))}
    return [name for name in scored_models(configuration) if model_of(name) in learns]


def _benchmarks(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The first benchmark of each kind that the matrix is about."""
    kinds = {kind for kind, _ in MEASURES.values()}
    named = reversed(configuration["benchmarks"].items())
    return {entry["kind"]: name for name, entry in named if entry["kind"] in kinds}


def own_average(found: pl.DataFrame) -> str | None:
    """Mean and deviation of an average, and over how many values it is if some are lacking."""
    if found.is_empty():
        return None
    first = found.sort("mode").row(0, named=True)  # compat comes before correct.
    cell = mean_cell(first["mean"], first["deviation"])
    lacks = first["expected"] is not None and first["values"] < first["expected"]
    return f"{cell} ({first['values']} of {first['expected']} values)" if lacks else cell
