"""What probes of a finished run tell: how well they foretell full fine-tuning, and what else the maps can learn.

python -m tests.benchmarks probe_agreement results/hci-recipe few many
python -m tests.benchmarks masked_negatives results/hci-signals undirected-easy
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import torch
from safetensors.torch import save_file
from scipy.sparse import coo_array, csr_array
from scipy.stats import kendalltau
from tests.benchmarks.measuring import say, say_header, say_row
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from cocite.config.configuration import Configuration
from cocite.config.loss import Loss
from cocite.config.probes import MapTraining, described_loss
from cocite.core.tables.places import NORMALISE, Trained, name_of_map
from cocite.encoder.batch import PairIndices
from cocite.encoder.documents import Numbers
from cocite.encoder.losses import MultipleNegativesRanking, _related
from cocite.encoder.probing import Ready, open_ready, train_map
from cocite.evaluation.probes import score_maps, scores_of
from cocite.plan.recorded import configuration_of

RESAMPLES = 2000
TASKS = ("cite", "cocite")
Pair = tuple[str, str]
"""The name of a set and its loss in words."""
SEEDS, SIZES = (1, 2, 3), (128, 512)
CITATIONS = ("graph/undirected/edges", "source", "target")
COCITATIONS = ("graph/cocitation/cocitations", "paper", "other")


def probe_agreement(results: Path, *probes: str) -> None:
    """How well a probe foretells full fine-tuning: Kendall's tau over the pairs of a set and a loss that both tried.

    The folder is that of a finished run with models and probes on one encoder and one hold-out, such as that of
    experiments/hci-recipe.yaml. Both are scored on the same queries, those that prove. The interval is over queries:
    they are drawn again with replacement, the same ones for models and maps.
    """
    config = configuration_of(results)
    for probe in probes:
        entry = config.probes[probe]
        models = _models_on(config, entry.encoder)
        tuned = {pair: _of_model(results, entry.benchmark, name) for pair, name in models.items()}
        mapped = {pair: _of_maps(results, probe, *pair) for pair in models if pair[0] in entry.triplets}
        _compare(probe, models, tuned, {pair: found for pair, found in mapped.items() if not found.is_empty()})


def _models_on(config: Configuration, encoder: str) -> dict[Pair, str]:
    """The models that start from an encoder, by what they learn from."""
    return {
        (model.triplets, described_loss(model.loss)): name
        for name, model in config.models.items()
        if model.encoder == encoder and model.triplets and model.loss
    }


def _of_model(results: Path, benchmark: str, model: str) -> pl.DataFrame:
    """The average precision of each query by a model, over its seeds."""
    files = sorted((results / "evaluation" / benchmark / "outcomes").glob(f"*/{model}-*.parquet"))
    found = pl.concat([pl.read_parquet(file) for file in files])
    return _mean_of_queries(found.filter(pl.col("metric") == "map").rename({"item": "query"}))


def _of_maps(results: Path, probe: str, triplets: str, loss: str) -> pl.DataFrame:
    """The same by the maps of a pair, over their seeds and sizes of a batch."""
    found = pl.read_parquet(results / f"evaluation/probe_{probe}/outcomes/{triplets}.parquet")
    return _mean_of_queries(found.filter(pl.col("part") == "test", pl.col("loss") == loss))


def _mean_of_queries(found: pl.DataFrame) -> pl.DataFrame:
    of_task = found.filter(pl.col("task").is_in(TASKS))
    return of_task.group_by("task", "query").agg(pl.col("value").mean()).sort("task", "query")


def _compare(
    probe: str, models: Mapping[Pair, str], tuned: Mapping[Pair, pl.DataFrame], mapped: Mapping[Pair, pl.DataFrame]
) -> None:
    """Print both sides of a probe, the best model first, and how their orders agree."""
    pairs = sorted(mapped, key=lambda pair: -_mean_of(tuned[pair]))
    say(f"\nProbe {probe}, {len(pairs)} pairs:")
    say_header("model", "fine-tuned: cited", "co-cited", "mapped: cited", "co-cited")
    for pair in pairs:
        say_row(
            f"`{models[pair]}`", *(f"{_mean_of(side[pair], task):.1f}" for side in (tuned, mapped) for task in TASKS)
        )
    for name, tasks in (("both tasks", TASKS), *((task, (task,)) for task in TASKS)):
        sides = [_drawn(side, pairs, tasks) for side in (tuned, mapped)]
        taus = [kendalltau(*values).statistic for values in zip(*sides, strict=True)]
        low, high = np.quantile(taus[1:], [0.025, 0.975])
        say(f"Kendall's tau, {name}: {taus[0]:.2f} ({low:.2f} to {high:.2f})")


def _mean_of(found: pl.DataFrame, *tasks: str) -> float:
    """The mean over the queries of each task, and over tasks."""
    means = found.filter(pl.col("task").is_in(tasks or TASKS)).group_by("task").agg(pl.col("value").mean())
    return float(means["value"].mean())  # type: ignore[arg-type]


def _drawn(side: Mapping[Pair, pl.DataFrame], pairs: list[Pair], tasks: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """The mean of each pair on all queries, and on draws of them, draws × pairs."""
    of_tasks = []
    for task in tasks:
        values = np.stack([side[pair].filter(pl.col("task") == task)["value"].to_numpy() for pair in pairs])
        queries = values.shape[1]
        counts = np.random.default_rng([7, len(task)]).multinomial(queries, np.full(queries, 1 / queries), RESAMPLES)
        of_tasks.append(np.vstack([values.mean(axis=1), counts @ values.T / queries]))
    return np.mean(of_tasks, axis=0)


class Linked:
    """Which documents of the batch at hand a graph links with which of its queries."""

    def __init__(self, graph: csr_array | None) -> None:
        self.graph = graph
        self.documents = np.empty(0, dtype=np.int64)
        """The numbers of the documents of the batch, by their places in it."""
        self.masked = self.compared = 0

    def mask(self, queries: Tensor, others: Tensor) -> Tensor:
        """By places in the batch, queries × others."""
        found = torch.zeros(len(queries), len(others), dtype=torch.bool)
        if self.graph is not None:
            rows, columns = (self.documents[places.numpy()] for places in (queries, others))
            found = torch.from_numpy(self.graph[rows][:, columns].toarray())
        self.masked, self.compared = self.masked + int(found.sum()), self.compared + found.numel()
        return found


def _loss_with(linked: Linked) -> MultipleNegativesRanking:
    """`mnrl` over what is not linked."""

    class Masked(MultipleNegativesRanking):
        def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
            query, positive = batch.positives.T
            candidates = torch.cat([positive, batch.negatives[:, 1]])
            known = _related(query, batch.positives, len(vectors))[:, candidates] | linked.mask(query, candidates)
            directions = normalize(vectors, dim=1)
            against = (directions[query] @ directions[candidates].T).masked_fill(known, -torch.inf)
            own = (directions[query] * directions[positive]).sum(dim=1, keepdim=True)
            return cross_entropy(self.scale * torch.cat([own, against], dim=1), torch.zeros_like(query))

    return Masked(kind="mnrl")


def _ready_with(ready: Ready, linked: Linked) -> Ready:
    """The examples, which tell `linked` the documents of each batch."""

    class Telling(Ready):
        def batch(self, numbers: Numbers, loss: Loss) -> tuple[Tensor, PairIndices]:
            sides = (self.examples.positives, self.examples.negatives)
            others = [links.documents[links.places_of(numbers)[1]] for links in sides]
            linked.documents = np.unique(np.concatenate([self.examples.queries[numbers], *others]))
            return super().batch(numbers, loss)

    return Telling(examples=ready.examples, vectors=ready.vectors, normalise=ready.normalise)


def _graph_of(results: Path, ids: Numbers, table: str, one: str, other: str, least: int = 1) -> csr_array:
    """The edges of a graph between documents with these ids, in both directions, documents × documents."""
    pairs = pl.scan_parquet(results / table / "*.parquet")
    pairs = pairs.filter(pl.col("count") >= least) if least > 1 else pairs
    places = pl.LazyFrame({"id": ids, "place": np.arange(len(ids))})
    found = pairs.join(places, left_on=one, right_on="id").join(places, left_on=other, right_on="id").collect()
    rows, columns = found["place"].to_numpy(), found["place_right"].to_numpy()
    ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    return coo_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(len(ids), len(ids))).tocsr()


def masked_negatives(results: Path, triplets: str) -> None:
    """What it is worth to leave documents of a batch that a graph links with the query out of its negatives, by maps.

    The folder is that of a run with a probe (experiments/hci-signals.yaml), the set one of its sets. Maps are trained
    on all examples of the set by `mnrl`, and scored, as a probe does both. It takes half an hour.
    """
    torch.set_num_threads(1)
    papers = results / "encoder/untrained_minilm/seed-0/papers"
    ready = open_ready(results / f"triplets/{triplets}/examples.parquet", papers, None, normalise=True, seed=1)
    ids = ready.examples.ids
    cited = _graph_of(results, ids, *CITATIONS)
    graphs = {
        "nothing": None,
        "cited or citing": cited,
        "and co-cited twice": cited + _graph_of(results, ids, *COCITATIONS, least=2),
        "and co-cited": cited + _graph_of(results, ids, *COCITATIONS),
    }
    say_header("left out", "batch", "share of the pairs", "cited", "co-cited")
    for size, (name, graph) in product(SIZES, graphs.items()):
        linked = Linked(graph)
        loss, telling = _loss_with(linked), _ready_with(ready, linked)
        settings = MapTraining(losses=("mnrl",), batch_sizes=(size,))
        maps = {
            name_of_map(Trained("mnrl", size, seed)): train_map(telling, loss, size, settings, seed=seed)
            for seed in SEEDS
        }
        with TemporaryDirectory() as folder:
            save_file(maps, Path(folder, "maps"), {NORMALISE: str(True)})
            outcomes = Path(folder, "outcomes.parquet")
            asked = {"tables": results / "evaluation/holdout", "tasks": ",".join(TASKS)}
            score_maps(Path(folder, "maps"), vectors=papers, **asked, output=outcomes)
            scores = next(found for point, found in scores_of({name: outcomes}, 1).items() if point.loss == "mnrl")
        of_tasks = [scores["test", task] for task in TASKS]
        cells = [f"{found.value:.2f} ± {found.deviation:.2f}" for found in of_tasks]
        say_row(name, size, f"{linked.masked / linked.compared:.1%}", *cells)
