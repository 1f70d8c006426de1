"""What it is worth to leave documents of a batch that a graph links with the query out of its negatives, by maps.

    python -m tests.benchmarks masked_negatives results/hci-signals undirected-easy

The folder is that of a run with a probe (experiments/hci-signals.yaml), the set one of its sets. Maps are trained on
all examples of the set by `mnrl`, and scored, as a probe does both. It takes half an hour.
"""

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import torch
from safetensors.torch import save_file
from scipy.sparse import coo_array, csr_array
from tests.benchmarks.measuring import say
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from cocite.config.probes import MapTraining
from cocite.core.tables.places import NORMALISE, Trained, name_of_map
from cocite.encoder.batch import PairIndices
from cocite.encoder.documents import Numbers
from cocite.encoder.losses import MultipleNegativesRanking, _related
from cocite.encoder.probing import Ready, open_ready, train_map
from cocite.evaluation.probes import score_maps, scores_of

TASKS = ("cite", "cocite")
SEEDS = (1, 2, 3)
SIZES = (128, 512)
CITATIONS = ("graph/undirected/edges", "source", "target")
COCITATIONS = ("graph/cocitation/cocitations", "paper", "other")


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


def loss_with(linked: Linked) -> MultipleNegativesRanking:
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


def ready_with(ready: Ready, linked: Linked) -> Ready:
    """The examples, which tell `linked` the documents of each batch."""

    class Telling(Ready):
        def batch(self, numbers: Numbers) -> tuple[Tensor, PairIndices]:
            sides = (self.examples.positives, self.examples.negatives)
            others = [links.documents[links.places_of(numbers)[1]] for links in sides]
            linked.documents = np.unique(np.concatenate([self.examples.queries[numbers], *others]))
            return super().batch(numbers)

    return Telling(examples=ready.examples, vectors=ready.vectors, normalise=ready.normalise)


def graph_of(results: Path, ids: Numbers, table: str, one: str, other: str, least: int = 1) -> csr_array:
    """The edges of a graph between documents with these ids, in both directions, documents × documents."""
    pairs = pl.scan_parquet(results / table / "*.parquet")
    pairs = pairs.filter(pl.col("count") >= least) if least > 1 else pairs
    places = pl.LazyFrame({"id": ids, "place": np.arange(len(ids))})
    found = pairs.join(places, left_on=one, right_on="id").join(places, left_on=other, right_on="id").collect()
    rows, columns = found["place"].to_numpy(), found["place_right"].to_numpy()
    ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    return coo_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(len(ids), len(ids))).tocsr()


def main(results: Path, triplets: str) -> None:
    torch.set_num_threads(1)
    papers = results / "encoder/untrained_minilm/seed-0/papers"
    ready = open_ready(results / f"triplets/{triplets}/examples.parquet", papers, None, normalise=True, seed=1)
    ids = ready.examples.ids
    cited = graph_of(results, ids, *CITATIONS)
    graphs = {
        "nothing": None,
        "cited or citing": cited,
        "and co-cited twice": cited + graph_of(results, ids, *COCITATIONS, least=2),
        "and co-cited": cited + graph_of(results, ids, *COCITATIONS),
    }
    say("| left out | batch | share of the pairs | cited | co-cited |\n|---|---|---|---|---|")
    for size, (name, graph) in product(SIZES, graphs.items()):
        linked = Linked(graph)
        loss, telling = loss_with(linked), ready_with(ready, linked)
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
        say(f"| {name} | {size} | {linked.masked / linked.compared:.1%} | {' | '.join(cells)} |")
