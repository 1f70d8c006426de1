"""Link prediction on the held-out edges, as PyTorch-BigGraph defines it.

Each held-out edge is scored against edges with one end replaced: by the same end of the other edges of its batch
(which are drawn as often as they have edges) and by papers drawn from all. The rank of the edge among its negatives
gives mean rank, MRR and Hits@n, on either side, and the two are averaged. The loss is the one that is trained on,
with the negatives of the training, so that it compares with the training loss.

The batches and negatives are the same after each epoch. PyTorch-BigGraph pads the last batch with negatives that
score −10⁹, which lifts the AUC; so only whole batches count.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torchbiggraph.batching import process_in_batches
from torchbiggraph.edgelist import EdgeList
from torchbiggraph.eval import RankingEvaluator
from torchbiggraph.graph_storages import EDGE_STORAGES
from torchbiggraph.losses import RankingLossFunction
from torchbiggraph.model import MultiRelationEmbedder, override_model
from torchbiggraph.stats import Stats

from cocite.biggraph.configuration import HOLDOUT
from cocite.randomness import derive_seed, generator

NEGATIVES = 1000
"""Negatives from the batch, and as many from all papers: PyTorch-BigGraph's default for evaluation."""
MOST_EDGES = 50_000
"""Held-out edges that are measured at most: enough for a standard error of MRR below .002."""

NAMES = {"pos_rank": "mean_rank", "mrr": "mrr", "r1": "hits_at_1", "r10": "hits_at_10", "r50": "hits_at_50"}


class HeldOutEvaluator(RankingEvaluator):
    """PyTorch-BigGraph's evaluation, and the loss."""

    def __init__(self, margin: float, negatives: int) -> None:
        super().__init__()
        self.loss = RankingLossFunction(margin)
        self.negatives = negatives

    def process_one_batch(self, model: MultiRelationEmbedder, batch_edges: EdgeList) -> Stats:
        """Sums over the edges of a batch."""
        with torch.no_grad():
            trained = model(batch_edges)
            loss = self.loss(trained.lhs_pos, trained.lhs_neg) + self.loss(trained.rhs_pos, trained.rhs_neg)
        with override_model(model, num_batch_negs=self.negatives, num_uniform_negs=NEGATIVES):
            stats = super().process_one_batch(model, batch_edges)
        stats.metrics["loss"] = float(loss)
        return stats


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The held-out edges that are measured, in whole batches, and the seed of their negatives."""

    edges: Any
    batch: int
    seed: int


def load_held_out(imported: Path, *, seed: int) -> HeldOut:
    """Read the held-out edges in a seeded order, cut to whole batches and to `MOST_EDGES`."""
    edges = EDGE_STORAGES.make_instance(f"file://{imported.resolve() / HOLDOUT}").load_edges(0, 0)
    batch = min(NEGATIVES, len(edges))
    whole = min(len(edges), MOST_EDGES) // batch * batch
    order = generator(seed, "biggraph", "held-out order").permutation(len(edges))[:whole]
    negatives = derive_seed(seed, "biggraph", "held-out negatives")
    return HeldOut(edges=edges[torch.from_numpy(order)], batch=batch, seed=negatives)


def measure(model: MultiRelationEmbedder, held_out: HeldOut, *, margin: float) -> dict[str, float]:
    """The metrics of table `graph_scores`, and `edges`, the number of edges they are averaged over.

    Seeds torch's global generator, which the model draws negatives from.
    """
    torch.manual_seed(held_out.seed)
    evaluator = HeldOutEvaluator(margin, held_out.batch)
    stats = process_in_batches(held_out.batch, model, evaluator, held_out.edges).average()
    scores = {name: stats.metrics[key] for key, name in NAMES.items()}
    return {**scores, "loss": stats.metrics["loss"], "auc": stats.metrics["auc"], "edges": stats.count}
