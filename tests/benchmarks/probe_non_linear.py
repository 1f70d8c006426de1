"""Whether probes with a non-linear map foretell full fine-tuning better than those with a linear one.

    python -m tests.benchmarks probe_non_linear results/synergy-recipe pairs

The map adds B gelu(A h) to a vector h: A has a quarter of the dimension as its rows, drawn at random, and B begins with
zeros. Sets, losses, batches, epochs and seeds are those of the probe, and so is the comparison that is printed. The
encoder's vectors must be scaled to length 1.
"""

from itertools import product
from pathlib import Path

import polars as pl
import torch
from tests.benchmarks.probe_agreement import TASKS, compare, models_on, of_model
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import gelu, normalize

from cocite.config.loss import Loss
from cocite.config.probes import MapTraining, described_loss
from cocite.encoder.probing import LARGEST_NORM, Ready, open_ready, schedule_of
from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.probes import asked_of
from cocite.evaluation.ranking import by_distance, rank_candidates
from cocite.evaluation.scored import Vectors
from cocite.plan.recorded import configuration_of


def main(results: Path, probe: str) -> None:
    config = configuration_of(results)
    entry = config.probes[probe]
    untrained = results / f"encoder/untrained_{entry.encoder}/seed-0"
    models = models_on(config, entry.encoder)
    mapped = {}
    for triplets, loss in product(entry.triplets, entry.losses):
        examples = results / f"triplets/{triplets}/examples.parquet"
        ready = open_ready(examples, untrained / "papers", entry.examples, normalise=True, seed=config.run_seed)
        found = [
            scored(results / "evaluation" / entry.benchmark, untrained, entry.benchmark, weights)
            for weights in (trained(ready, loss, entry, seed) for seed in entry.seeds)
        ]
        means = pl.concat(found).group_by("task", "query").agg(pl.col("value").mean()).sort("task", "query")
        mapped[triplets, described_loss(loss)] = means
    tuned = {pair: of_model(results, entry.benchmark, name) for pair, name in models.items() if pair in mapped}
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
    """The average precision of each query by mapped vectors, as maps of a probe are scored."""
    documents = pl.read_parquet(untrained / f"embeddings/{benchmark}.parquet")
    mapped = bent(torch.from_numpy(documents["vector"].to_numpy().copy()), *weights).numpy()
    vectors = Vectors({document: row for row, document in enumerate(documents["document"])}, mapped)
    similarity = by_distance(vectors)
    found = []
    for task, judgements in asked_of(tables, "test", TASKS).items():
        values = measure_rankings(judgements, rank_candidates(judgements, similarity, vectors.rows), ["map"])["map"]
        found += [{"task": task, "query": query, "value": value} for query, value in values.items()]
    return pl.DataFrame(found).sort("task", "query")
