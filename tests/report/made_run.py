"""A run that never ran, of any size: its configuration, its scores and the tables that follow from them."""

import copy
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from tests.configurations import recorded

from cocite.config.benchmarks.beir import PUBLISHED
from cocite.config.configuration import resolve
from cocite.config.runs import runs_that_rank_alone, scored_runs
from cocite.config.tasks import BOTH
from cocite.core.randomness import generator
from cocite.core.tables import TABLES, empty_schema

SETS = {"near": {"sampler": "neighbours", "embedding": "dot", "k_positive": 10, "k_negative": 80}}
KINDS = ("holdout", "scirepeval", "scidocs", "mdcr", "beir", "s2and")


def configuration_of(models: int, seeds: int, kinds: tuple[str, ...] = KINDS) -> Any:
    """A resolved configuration with so many models, seeds and benchmarks, about Semantic Scholar."""
    losses = ("triplet", "infonce", "cosent", "angle", "mnrl", "supcon")
    config = {
        "release": "2026-01-06",
        "corpus": {"source": "s2"},
        "queries": {"holdout": 100},
        "graphs": {"cocitation": {"signal": "cocitation"}},
        "embeddings": {"dot": {"graph": "cocitation", "dimension": 32, "neighbours": {"k": 100}}},
        "triplets": SETS,
        "encoders": {"base": {"model": "someone/encoder", "revision": 40 * "0"}},
        "models": {
            f"model-{number:02}": {"triplets": "near", "encoder": "base", "loss": losses[number % len(losses)]}
            | {"seeds": list(range(1, seeds + 1))}
            for number in range(models)
        },
        "benchmarks": {kind: {"kind": kind, "folder": ".", "mode": "both"} for kind in kinds}
        | ({"holdout": {"kind": "holdout"}} if "holdout" in kinds else {}),
    }
    with TemporaryDirectory() as folder:
        if "beir" in kinds:
            config["benchmarks"]["beir"]["folder"] = folder
            for path in product(PUBLISHED, ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")):
                file = Path(folder, *path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        return resolve(copy.deepcopy(config))


def provenance_of(configuration: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The provenance of a run with this configuration."""
    machine = {"processor": "Some Processor", "cores": 4, "memory_mb": 16_000, "gpus": []}
    recorded = {"release": "2026-01-06", "readmes": {}, "versions": {"python": "3.11"}, "machine": machine}
    return {"configuration": configuration, **recorded, **more}


def scores_of(configuration: Mapping[str, Any]) -> pl.DataFrame:
    """A score of every run on every metric of every task, in both modes where a task has two."""
    rows = []
    draw = generator(1, "scores")
    configuration = recorded(configuration)
    for benchmark, entry in configuration.benchmarks.items():
        runs = scored_runs(configuration, benchmark)
        alone = runs_that_rank_alone(configuration)
        scored = [(task, run) for suite, tasks in entry.suites.items() for task in tasks for run in runs[suite]]
        for task, run in scored:
            if run in alone and not task.is_ranking:
                continue
            model, seed = run.rsplit("-", 1)
            keys = {"model": model, "seed": int(seed), "benchmark": benchmark, "task": task.name, "evaluation_seed": 1}
            counts = {"documents": 900, "missing": 0, "scored": 100, "unscored": 0}
            for metric in task.metrics:
                for mode in ("compat", "correct") if task.is_supervised else (BOTH,):
                    of_metric = {"metric": metric, "mode": mode, "format": task.format}
                    rows.append({**keys, **of_metric, "value": float(draw.uniform(20, 90)), **counts})
    return pl.DataFrame(rows, schema=pl.DataFrame(empty_schema(TABLES["scores"]).empty_table()).schema)


def comparisons_of(scores: pl.DataFrame) -> pl.DataFrame:
    """A comparison of any two models on every metric of every task."""
    keys = ["benchmark", "task", "metric", "mode"]
    scored = scores.select(*keys, "model").unique()
    paired = scored.join(scored.rename({"model": "other"}), on=keys).filter(pl.col("model") < pl.col("other"))
    paired = paired.sort(*keys, "model", "other")
    difference = generator(1, "differences").normal(0, 5, size=len(paired))
    return paired.with_columns(
        items=pl.lit(100),
        difference=pl.Series(difference),
        low=pl.Series(difference - 3),
        high=pl.Series(difference + 3),
        wide_low=pl.Series(difference - 4),
        wide_high=pl.Series(difference + 5),
        p_value=pl.Series(np.where(np.abs(difference) > 3, 0.01, 0.5)),
        p_adjusted=pl.Series(np.where(np.abs(difference) > 6, 0.01, 0.5)),
        detectable=pl.lit(2.5),
    )


def task_comparisons_of(comparisons: pl.DataFrame) -> pl.DataFrame:
    """Any two models over the tasks of each benchmark, and over all."""
    named = comparisons.with_columns(over="benchmark", mode=pl.lit(BOTH))
    rows = pl.concat([named, named.with_columns(over=pl.lit("all benchmarks"))])
    pairs = rows.group_by("over", "mode", "model", "other").agg(
        pl.col("task").n_unique().cast(pl.Int64).alias("tasks"), pl.col("difference", "low", "high").mean()
    )
    several = pairs.filter(pl.col("tasks") > 1).sort("over", "mode", "model", "other")
    return several.with_columns(
        least_p_value=2.0 ** (1 - pl.col("tasks")),
        p_adjusted=pl.when(pl.col("difference").abs() > 2).then(0.01).otherwise(0.5),
    )


def curve(*measured: tuple[int, float, float], seed: int = 1) -> pl.DataFrame:
    """The validation of a training, from steps with the loss and the accuracy."""
    rows = [
        (seed, step, f"validation_{name}", value)
        for step, loss, accuracy in measured
        for name, value in (("loss", loss), ("accuracy", accuracy))
    ]
    return pl.DataFrame(rows, ["seed", "step", "metric", "value"], orient="row")


def curves_of(configuration: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """The validation of every seed of every model."""
    draw = generator(1, "curves")
    return {
        name: pl.concat(
            curve(*((step, *draw.uniform(size=2)) for step in (10, 20, 30, 40)), seed=s) for s in entry.seeds
        )
        for name, entry in recorded(configuration).models.items()
    }
