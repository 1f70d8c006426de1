"""Whether probes with a non-linear map foretell full fine-tuning better than those with a linear one.

    python -m tests.benchmarks.probe_non_linear results/synergy-recipe pairs

The map adds B gelu(A h) to a vector h: A has a quarter of the dimension as its rows, drawn at random, and B begins with
zeros. Sets, losses, batches, epochs and seeds are those of the probe, and so is the comparison that is printed. The
encoder's vectors must be scaled to length 1.
"""

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
import yaml
from tests.benchmarks.probe_agreement import TASKS, compare, of_model
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import gelu, normalize

from cocite.config.entries import as_json
from cocite.config.loss import Loss
from cocite.config.probes import MapTraining, described_loss
from cocite.config.settings import entry_of
from cocite.encoder.probing import LARGEST_NORM, Ready, open_ready, schedule_of


def main(results: Path, probe: str) -> None:
    """Print the MAP of each pair by the models and by non-linear maps, and tau with its interval."""
    config = yaml.safe_load((results / "configuration.yaml").read_text())
    entry = config["probes"][probe]
    settings = entry_of(entry, MapTraining)
    untrained = results / f"encoder/untrained_{entry['encoder']}/seed-0"
    models = {
        (model["triplets"], described_loss(model["loss"])): name
        for name, model in config["models"].items()
        if model.get("encoder") == entry["encoder"] and "triplets" in model and "loss" in model
    }
    mapped = {}
    for triplets, loss in product(entry["triplets"], settings.losses):
        examples = results / f"triplets/{triplets}/examples.parquet"
        ready = open_ready(examples, untrained / "papers", settings.examples, normalise=True, seed=config["seed"])
        found = [
            scored(results / "evaluation" / entry["benchmark"], untrained, entry["benchmark"], bent)
            for bent in (trained(ready, loss, settings, seed) for seed in settings.seeds)
        ]
        means = pl.concat(found).group_by("task", "query").agg(pl.col("value").mean()).sort("task", "query")
        mapped[triplets, described_loss(as_json(loss))] = means
    tuned = {pair: of_model(results, entry["benchmark"], name) for pair, name in models.items() if pair in mapped}
    compare(f"{probe}, non-linear", models, tuned, {pair: mapped[pair] for pair in tuned})


def trained(ready: Ready, loss: Loss, settings: MapTraining, seed: int) -> tuple[Tensor, Tensor]:
    """A and B after the steps of a probe's map."""
    dimension = ready.vectors.shape[1]
    draw = torch.Generator().manual_seed(seed)
    inner = Parameter(torch.randn(dimension // 4, dimension, generator=draw))
    outer = Parameter(torch.zeros(dimension, dimension // 4))
    optimiser = torch.optim.AdamW([inner, outer], lr=settings.lr, weight_decay=0.0)
    schedule = schedule_of(ready, loss, settings.batch_sizes[0], settings, seed)
    for step in range(1, schedule.steps + 1):
        optimiser.param_groups[0]["lr"] = schedule.learning_rate(step)
        for chosen in schedule.batches_of(step):
            vectors, compared = ready.batch(chosen.numbers)
            loss(bent(vectors, inner, outer), compared).backward()
        torch.nn.utils.clip_grad_norm_([inner, outer], LARGEST_NORM)
        optimiser.step()
        optimiser.zero_grad()
    return inner.detach(), outer.detach()


def bent(vectors: Tensor, inner: Tensor, outer: Tensor) -> Tensor:
    """Vectors as the map makes them, of length 1."""
    return normalize(vectors + gelu(vectors @ inner.T) @ outer.T, dim=1)


def scored(tables: Path, untrained: Path, benchmark: str, weights: tuple[Tensor, Tensor]) -> pl.DataFrame:
    """The average precision of each query by mapped vectors, candidates ranked by their distance."""
    documents = pl.read_parquet(untrained / f"embeddings/{benchmark}.parquet")
    vectors = bent(torch.from_numpy(documents["vector"].to_numpy().copy()), *weights).numpy()
    place = dict(zip(documents["document"], range(len(documents)), strict=True))
    rows: list[dict[str, Any]] = []
    judged = pl.read_parquet(tables / "judgements.parquet").filter(pl.col("task").is_in(TASKS))
    for (task, query), candidates in judged.group_by("task", "query"):
        relevant = candidates["relevance"].to_numpy()
        others = vectors[[place[candidate] for candidate in candidates["candidate"]]]
        hits = relevant[np.argsort(np.linalg.norm(others - vectors[place[query]], axis=1), kind="stable")] > 0
        precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        rows.append({"task": task, "query": query, "value": 100 * precisions[hits].mean()})
    return pl.DataFrame(rows).sort("task", "query")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
