"""How well a probe foretells full fine-tuning: Kendall's tau over the pairs of a set and a loss that both have tried.

    python -m tests.benchmarks probe_agreement results/hci-recipe few many

The folder is that of a finished run with models and probes on one encoder and one hold-out, such as that of
experiments/hci-recipe.yaml. Both are scored on the same queries, those that prove. The interval is over queries: they
are drawn again with replacement, the same ones for models and maps.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import kendalltau
from tests.benchmarks.measuring import say

from cocite.config.configuration import Configuration
from cocite.config.probes import described_loss
from cocite.plan.recorded import configuration_of

RESAMPLES = 2000
TASKS = ("cite", "cocite")
Pair = tuple[str, str]
"""The name of a set and its loss in words."""


def main(results: Path, *probes: str) -> None:
    config = configuration_of(results)
    for probe in probes:
        entry = config.probes[probe]
        models = models_on(config, entry.encoder)
        tuned = {pair: of_model(results, entry.benchmark, name) for pair, name in models.items()}
        mapped = {pair: of_maps(results, probe, *pair) for pair in models if pair[0] in entry.triplets}
        compare(probe, models, tuned, {pair: found for pair, found in mapped.items() if not found.is_empty()})


def models_on(config: Configuration, encoder: str) -> dict[Pair, str]:
    """The models that start from an encoder, by what they learn from."""
    return {
        (model.triplets, described_loss(model.loss)): name
        for name, model in config.models.items()
        if model.encoder == encoder and model.triplets and model.loss
    }


def of_model(results: Path, benchmark: str, model: str) -> pl.DataFrame:
    """The average precision of each query by a model, over its seeds."""
    files = sorted((results / "evaluation" / benchmark / "outcomes").glob(f"*/{model}-*.parquet"))
    found = pl.concat([pl.read_parquet(file) for file in files])
    of_task = found.filter(pl.col("metric") == "map", pl.col("task").is_in(TASKS))
    return of_task.group_by("task", query="item").agg(pl.col("value").mean()).sort("task", "query")


def of_maps(results: Path, probe: str, triplets: str, loss: str) -> pl.DataFrame:
    """The same by the maps of a pair, over their seeds and sizes of a batch."""
    found = pl.read_parquet(results / f"evaluation/probe_{probe}/outcomes/{triplets}.parquet")
    test = found.filter(pl.col("part") == "test", pl.col("task").is_in(TASKS), pl.col("loss") == loss)
    return test.group_by("task", "query").agg(pl.col("value").mean()).sort("task", "query")


def compare(
    probe: str, models: Mapping[Pair, str], tuned: Mapping[Pair, pl.DataFrame], mapped: Mapping[Pair, pl.DataFrame]
) -> None:
    """Print both sides of a probe, the best model first, and how their orders agree."""
    pairs = sorted(mapped, key=lambda pair: -mean_of(tuned[pair]))
    say(f"\nProbe {probe}, {len(pairs)} pairs:\n| model | fine-tuned: cited | co-cited | mapped: cited | co-cited |")
    say("|---|---|---|---|---|")
    for pair in pairs:
        cells = [f"{mean_of(side[pair], task):.1f}" for side in (tuned, mapped) for task in TASKS]
        say(f"| `{models[pair]}` | {' | '.join(cells)} |")
    for name, tasks in (("both tasks", TASKS), *((task, (task,)) for task in TASKS)):
        sides = [drawn(side, pairs, tasks) for side in (tuned, mapped)]
        taus = [kendalltau(*values).statistic for values in zip(*sides, strict=True)]
        low, high = np.quantile(taus[1:], [0.025, 0.975])
        say(f"Kendall's tau, {name}: {taus[0]:.2f} ({low:.2f} to {high:.2f})")


def mean_of(found: pl.DataFrame, *tasks: str) -> float:
    """The mean over the queries of each task, and over tasks."""
    means = found.filter(pl.col("task").is_in(tasks or TASKS)).group_by("task").agg(pl.col("value").mean())
    return float(means["value"].mean())  # type: ignore[arg-type]


def drawn(side: Mapping[Pair, pl.DataFrame], pairs: list[Pair], tasks: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """The mean of each pair on all queries, and on draws of them, draws × pairs."""
    of_tasks = []
    for task in tasks:
        values = np.stack([side[pair].filter(pl.col("task") == task)["value"].to_numpy() for pair in pairs])
        queries = values.shape[1]
        counts = np.random.default_rng([7, len(task)]).multinomial(queries, np.full(queries, 1 / queries), RESAMPLES)
        of_tasks.append(np.vstack([values.mean(axis=1), counts @ values.T / queries]))
    return np.mean(of_tasks, axis=0)
