"""Link prediction: how far above its negatives a held-out edge scores.

The rank of an edge is 1 more than the number of negatives that score at least as high, on either side; it gives mean
rank, MRR and Hits@n, and the two sides are averaged. The AUC is the share of pairs of a batch's edge and a batch's
negative in which the edge scores higher, over all pairs. The loss is the one that is trained on, summed over the
negatives of both sides. All are measured raw and filtered (see `held_out.py`).

A candidate that is the very paper it replaces is the edge itself and no negative. (In PyTorch-BigGraph's evaluation it
counts, as a tie that rounding decides, and the AUC counts each edge once among its negatives, with a score of −10⁹.)
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torchbiggraph.losses import LOSS_FUNCTIONS
from torchbiggraph.model import COMPARATORS

from cocite.embeddings.configuration import GraphEmbeddingSettings
from cocite.embeddings.held_out import Batch
from cocite.embeddings.imported import Rows
from cocite.embeddings.vectors import Vectors

LEFT_OUT = -1e9
HITS = (1, 10, 50)

Scores = dict[str, dict[str, float]]


def measure(vectors: Vectors, batches: Sequence[Batch], settings: GraphEmbeddingSettings) -> Scores:
    """The metrics of table `graph_scores`, by `raw` and `filtered`."""
    loss = loss_function(settings)
    sums = {"raw": np.zeros(len(METRICS)), "filtered": np.zeros(len(METRICS))}
    with torch.no_grad():
        for batch in batches:
            edges, *sides = _score(vectors, batch, settings)
            itself = (
                np.equal.outer(batch.lhs, batch.lhs_candidates),
                np.equal.outer(batch.rhs, batch.rhs_candidates),
            )
            for negatives, same, true in zip(sides, itself, (batch.lhs_true, batch.rhs_true), strict=True):
                negatives[torch.from_numpy(same)] = LEFT_OUT
                sums["raw"] += _measure_side(edges, negatives, loss)
                negatives[true] = LEFT_OUT
                sums["filtered"] += _measure_side(edges, negatives, loss)
    measured = sum(len(batch) for batch in batches)
    return {kind: _averages(sums_, measured) for kind, sums_ in sums.items()}


def loss_function(settings: GraphEmbeddingSettings) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of PyTorch-BigGraph that the settings name."""
    of_name: Callable[..., Callable[[Tensor, Tensor], Tensor]] = LOSS_FUNCTIONS.get_class(settings.loss)
    return of_name(settings.margin) if settings.loss == "ranking" else of_name()


METRICS = ("loss", "mean_rank", "mrr", *(f"hits_at_{most}" for most in HITS), "wins", "pairs")


def _measure_side(edges: Tensor, negatives: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> NDArray[np.float64]:
    """Sums over the edges of a batch, on one side, in the order of `METRICS`."""
    ranks = ((negatives >= edges.unsqueeze(1)).sum(1) + 1).double()
    rising = np.sort(negatives.numpy(), axis=None)
    left_out = int(np.searchsorted(rising, LEFT_OUT, side="right"))
    wins = int(np.searchsorted(rising, edges.numpy()).sum()) - left_out * len(edges)
    pairs = (len(rising) - left_out) * len(edges)
    hits = [float((ranks <= most).sum()) for most in HITS]
    sums = [float(loss(edges, negatives)), float(ranks.sum()), float((1 / ranks).sum()), *hits, wins, pairs]
    return np.array(sums)


def _averages(sums: NDArray[np.float64], edges: int) -> dict[str, float]:
    """Averages over edges and sides; the loss is that of both sides."""
    of = dict(zip(METRICS, sums.tolist(), strict=True))
    wins, pairs = of.pop("wins"), of.pop("pairs")
    loss = of.pop("loss") / edges
    averages = {metric: value / (2 * edges) for metric, value in of.items()}
    return {"loss": loss, **averages, "auc": wins / pairs if pairs else 0.5}


def _score(vectors: Vectors, batch: Batch, settings: GraphEmbeddingSettings) -> list[Tensor]:
    """Scores of the edges, and scores of edges × candidates for the sources and for the targets."""
    compare = COMPARATORS.get_class(settings.comparator)()

    def prepared(rows: Rows) -> Tensor:
        chosen = torch.from_numpy(vectors.of(rows))
        if settings.max_norm is not None:
            # As the training does whenever it looks a vector up.
            functional.embedding(torch.arange(len(rows)), chosen, max_norm=settings.max_norm)
        return compare.prepare(chosen).unsqueeze(0)

    ends = (prepared(rows) for rows in (batch.lhs, batch.rhs, batch.lhs_candidates, batch.rhs_candidates))
    return [scores.squeeze(0) for scores in compare(*ends)]
