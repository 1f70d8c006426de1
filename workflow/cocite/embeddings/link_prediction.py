"""Link prediction: how far above its negatives a held-out edge scores.

As in PyTorch-BigGraph's evaluation, held-out edges are in batches of 1,000, and each is ranked, on either side, among
the same end of the other edges of its batch and 1,000 papers drawn from all. Its rank is 1 more than the number of
negatives that score at least as high; the AUC is the share of pairs in which the edge scores higher. "Filtered"
measures leave out negatives that have an edge with the other end (Bordes et al., 2013, "Translating embeddings for
modeling multi-relational data"). The losses are PyTorch-BigGraph's (Lerer et al., 2019, section 3.1).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from cocite.config.engine import EdgeLoss, LogisticLoss, RankingLoss
from cocite.core.progress import report
from cocite.core.randomness import generator, priorities
from cocite.embeddings.edges import HOLDOUT, TRAINING, Rows
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.trained import Vectors

NEGATIVES = 1000  # negatives from the batch, and as many from all papers: PyTorch-BigGraph's default for evaluation
MOST_EDGES = 50_000  # held-out edges that are measured at most: enough for a standard error of MRR below .002
HITS = (1, 10, 50)
METRICS = ("loss", "mean_rank", "mrr", *(f"hits_at_{most}" for most in HITS), "wins", "pairs")

LEFT_OUT = -1e9  # a score at which every loss and its gradient are 0

LossOfEdges = Callable[[Tensor, Tensor], Tensor]
Cells = tuple[NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Held-out edges that are ranked among the same candidates, by row: the sources first, then the targets."""

    ends: Rows  # sources and targets, 2 × edges
    candidates: Rows
    """What either end is replaced by, 2 × candidates: the same end of all edges, then papers drawn from all."""
    true: tuple[Cells, Cells]
    """Indices of edges and candidates for which the candidate of an end is a true neighbour of the other end."""

    def __len__(self) -> int:
        """Number of edges."""
        return self.ends.shape[1]


def load_held_out(graph: ImportedFolder, *, seed: int) -> list[Batch]:
    """A seeded sample of at most `MOST_EDGES` held-out edges, in whole batches."""
    papers, held_out = graph.papers(), 0
    chosen, keys = np.empty((2, 0), dtype=np.int64), np.empty(0, dtype=np.uint64)
    for block in graph.edges(HOLDOUT):
        held_out += len(block[0])
        chosen = np.hstack([chosen, np.stack(block)])
        keys = np.append(keys, priorities(seed, "held-out order", *(papers[end] for end in block)))
        first = np.argsort(keys)[:MOST_EDGES]
        chosen, keys = chosen[:, first], keys[first]
    size = min(NEGATIVES, chosen.shape[1])
    batches = chosen.shape[1] // size
    ends = chosen[:, : batches * size].reshape(2, batches, size)
    drawn = generator(seed, "biggraph", "held-out negatives").integers(len(papers), size=(2, batches, NEGATIVES))
    report(f"link prediction is measured on {batches * size:,} of {held_out:,} held-out edges")
    candidates = np.concatenate([ends, np.argsort(papers)[drawn]], axis=2)
    among, sources, targets = _edges_among(graph, len(papers), ends, candidates)
    backwards = among.T.tocsr()
    return [
        Batch(
            ends=ends[:, at],
            candidates=candidates[:, at],
            true=(
                backwards[targets[ends[1, at]]][:, sources[candidates[0, at]]].nonzero(),
                among[sources[ends[0, at]]][:, targets[candidates[1, at]]].nonzero(),
            ),
        )
        for at in range(batches)
    ]


def score_batch(vectors: Vectors, batch: Batch, *, comparator: str, max_norm: float | None) -> list[Tensor]:
    """Scores of the edges, and scores of edges × candidates for the sources and for the targets. `comparator` is dot or
    cos. Vectors longer than `max_norm` are scaled back first, as in training."""

    def prepared(rows: Rows) -> Tensor:
        chosen = torch.from_numpy(vectors.of(rows))
        if comparator == "cos":
            return functional.normalize(chosen)
        return chosen if max_norm is None else torch.renorm(chosen, 2, 0, max_norm)

    sources, targets, other_sources, other_targets = map(prepared, (*batch.ends, *batch.candidates))
    return [(sources * targets).sum(1), targets @ other_sources.T, sources @ other_targets.T]


def edge_loss(chosen: EdgeLoss) -> LossOfEdges:
    """The loss that the settings name."""
    if isinstance(chosen, RankingLoss):
        return partial(ranking, margin=chosen.margin)
    return logistic if isinstance(chosen, LogisticLoss) else softmax


def ranking(edges: Tensor, negatives: Tensor, *, margin: float) -> Tensor:
    """Sum over the negatives of max(0, negative − edge + margin)."""
    return (negatives - edges.unsqueeze(1) + margin).clamp_min(0).sum(1)


def logistic(edges: Tensor, negatives: Tensor) -> Tensor:
    """Binary cross-entropy of the edge, plus the mean of those of its negatives."""
    return functional.softplus(-edges) + functional.softplus(negatives).mean(1)


def softmax(edges: Tensor, negatives: Tensor) -> Tensor:
    """Cross-entropy of the edge among its negatives."""
    return functional.softplus(torch.logsumexp(negatives, 1) - edges)


def measure(batches: Sequence[Batch], score: Callable[[Batch], Sequence[Tensor]], loss: LossOfEdges) -> dict[str, Any]:
    """The metrics of table `graph_scores`, by `raw` and `filtered`, and the number of `edges`; some are logged. `score`
    gives what `score_batch` gives. `loss` is that of scores of edges and of edges × negatives, summed."""
    sums = {"raw": np.zeros(len(METRICS)), "filtered": np.zeros(len(METRICS))}
    with torch.no_grad():
        for batch in batches:
            edges, *sides = score(batch)
            for negatives, end, candidates, true in zip(sides, batch.ends, batch.candidates, batch.true, strict=True):
                negatives[torch.from_numpy(np.equal.outer(end, candidates))] = LEFT_OUT
                sums["raw"] += _measure_side(edges, negatives, loss)
                negatives[true] = LEFT_OUT
                sums["filtered"] += _measure_side(edges, negatives, loss)
    measured = sum(map(len, batches))
    scores: dict[str, Any] = {"edges": measured}
    for kind, of_kind in sums.items():
        of = dict(zip(METRICS, of_kind.tolist(), strict=True))
        summed, wins, pairs = (of.pop(name) for name in ("loss", "wins", "pairs"))
        averages = {metric: value / (2 * measured) for metric, value in of.items()}  # over edges and sides
        scores[kind] = {"loss": summed / measured, **averages, "auc": wins / pairs if pairs else 0.5}
        shown = ", ".join(f"{name} {scores[kind][name]:.3f}" for name in ("loss", "mrr", "hits_at_10", "auc"))
        report(f"  link prediction, {kind}: {shown}")
    return scores


def _measure_side(edges: Tensor, negatives: Tensor, loss: LossOfEdges) -> NDArray[np.float64]:
    """Sums over the edges of a batch, on one side, in the order of `METRICS`."""
    ranks = ((negatives >= edges.unsqueeze(1)).sum(1) + 1).double()
    rising = np.sort(negatives.numpy(), axis=None)
    left_out = int(np.searchsorted(rising, LEFT_OUT, side="right"))
    wins = int(np.searchsorted(rising, edges.numpy()).sum()) - left_out * len(edges)
    pairs = (len(rising) - left_out) * len(edges)
    hits = [float((ranks <= most).sum()) for most in HITS]
    sums = [float(loss(edges, negatives)), float(ranks.sum()), float((1 / ranks).sum()), *hits, wins, pairs]
    return np.array(sums)


def _edges_among(
    graph: ImportedFolder, papers: int, ends: Rows, candidates: Rows
) -> tuple[sparse.csr_array, NDArray[np.int32], NDArray[np.int32]]:
    """The edges that a measured edge can become when an end is replaced, as a matrix; and its rows and columns. `ends`
    are 2 × batches × edges, `candidates` 2 × batches × candidates."""
    is_source, is_target = np.zeros((2, papers), dtype=bool)
    is_source[ends[0]] = is_target[ends[1]] = True
    sources, targets = numbers = np.full((2, papers), -1, dtype=np.int32)
    for of_side, rows in zip(numbers, map(np.unique, candidates), strict=True):
        of_side[rows] = np.arange(len(rows))
    found: list[NDArray[np.int32]] = []
    for side in (TRAINING, HOLDOUT):
        for source, target in graph.edges(side):
            replaced_source = (sources[source] >= 0) & is_target[target]
            replaced_target = is_source[source] & (targets[target] >= 0)
            chosen = replaced_source | replaced_target
            found.append(np.stack([sources[source[chosen]], targets[target[chosen]]]))
    rows, columns = np.hstack(found)
    shape = (int(sources.max()) + 1, int(targets.max()) + 1)
    return sparse.coo_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=shape).tocsr(), sources, targets
