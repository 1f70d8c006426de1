"""Link prediction: how far above its negatives a held-out edge scores.

Held-out edges go in batches of 1,000. Each is ranked, on either side, among the same end of the other edges of its
batch (papers that are drawn as often as they have edges) and 1,000 papers drawn from all, as PyTorch-BigGraph does it
in evaluation. Edges, batches and negatives are drawn by corpus id, from the seed and the graph alone: every model of a
graph is measured on the same, whatever its engine and settings, however its edges were imported and partitioned.

The rank of an edge is 1 more than the number of negatives that score at least as high, on either side; it gives mean
rank, MRR and Hits@n, and the two sides are averaged. The AUC is the share of pairs of a batch's edge and a batch's
negative in which the edge scores higher, over all pairs. The loss is the one that is trained on, summed over the
negatives of both sides. Some negatives are true: the paper that replaces an end has an edge with the other end, to
train on or held out. "Filtered" measures leave those out (Bordes et al., 2013, "Translating embeddings for modeling
multi-relational data"); "raw" ones do not.

A candidate that is the very paper it replaces is the edge itself and no negative. (In PyTorch-BigGraph's evaluation it
counts, as a tie that rounding decides, and the AUC counts each edge once among its negatives, with a score of −10⁹.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from cocite.embeddings.edges import HOLDOUT, TRAINING, Papers, Rows
from cocite.embeddings.imported import ImportedFolder
from cocite.ground.progress import report
from cocite.ground.randomness import generator, priorities

NEGATIVES = 1000
"""Negatives from the batch, and as many from all papers: PyTorch-BigGraph's default for evaluation."""
MOST_EDGES = 50_000
"""Held-out edges that are measured at most: enough for a standard error of MRR below .002."""
LEFT_OUT = -1e9
HITS = (1, 10, 50)
METRICS = ("loss", "mean_rank", "mrr", *(f"hits_at_{most}" for most in HITS), "wins", "pairs")

Cells = tuple[NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Held-out edges that are ranked among the same candidates; all by row."""

    lhs: Rows
    """Sources."""
    rhs: Rows
    """Targets."""
    lhs_candidates: Rows
    """What the sources are replaced by: the sources themselves, then papers drawn from all."""
    rhs_candidates: Rows
    """What the targets are replaced by."""
    lhs_true: Cells
    """Edges and candidates, as indices, where the candidate for the source is a true neighbour of the target."""
    rhs_true: Cells
    """The same where the candidate for the target is a true neighbour of the source."""

    def __len__(self) -> int:
        """Number of edges."""
        return len(self.lhs)


def load_held_out(graph: ImportedFolder, *, seed: int) -> list[Batch]:
    """A seeded sample of `MOST_EDGES` held-out edges at most, in whole batches."""
    papers = graph.papers()
    (lhs, rhs), held_out = _sample(graph, papers, seed)
    size = min(NEGATIVES, len(lhs))
    batches = len(lhs) // size
    lhs, rhs = lhs[: batches * size].reshape(batches, size), rhs[: batches * size].reshape(batches, size)
    drawn = generator(seed, "biggraph", "held-out negatives").integers(len(papers), size=(2, batches, NEGATIVES))
    of_lhs, of_rhs = np.argsort(papers)[drawn]
    report(f"link prediction is measured on {lhs.size:,} of {held_out:,} held-out edges")
    return _with_true_neighbours(graph, len(papers), lhs, rhs, np.hstack([lhs, of_lhs]), np.hstack([rhs, of_rhs]))


def measure(
    batches: Sequence[Batch], score: Callable[[Batch], Sequence[Tensor]], loss: Callable[[Tensor, Tensor], Tensor]
) -> dict[str, Any]:
    """The metrics of table `graph_scores`, by `raw` and `filtered`, and the number of `edges`; the log says them too.

    `score` gives the scores of the edges of a batch, and scores of edges × candidates for the sources and for the
    targets. `loss` is that of scores of edges and of edges × negatives, summed.
    """
    sums = {"raw": np.zeros(len(METRICS)), "filtered": np.zeros(len(METRICS))}
    with torch.no_grad():
        for batch in batches:
            edges, *sides = score(batch)
            itself = (
                np.equal.outer(batch.lhs, batch.lhs_candidates),
                np.equal.outer(batch.rhs, batch.rhs_candidates),
            )
            for negatives, same, true in zip(sides, itself, (batch.lhs_true, batch.rhs_true), strict=True):
                negatives[torch.from_numpy(same)] = LEFT_OUT
                sums["raw"] += _measure_side(edges, negatives, loss)
                negatives[true] = LEFT_OUT
                sums["filtered"] += _measure_side(edges, negatives, loss)
    measured = sum(map(len, batches))
    scores = {kind: _averages(sums_, measured) for kind, sums_ in sums.items()}
    for kind, values in scores.items():
        shown = ", ".join(f"{name} {values[name]:.3f}" for name in ("loss", "mrr", "hits_at_10", "auc"))
        report(f"  link prediction, {kind}: {shown}")
    return {**scores, "edges": measured}


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


def _sample(graph: ImportedFolder, papers: Papers, seed: int) -> tuple[NDArray[np.int64], int]:
    """The held-out edges of the smallest hashes, in their order, 2 × edges; and the number of all held-out edges."""
    chosen, keys, total = np.empty((2, 0), dtype=np.int64), np.empty(0, dtype=np.uint64), 0
    for block in graph.edges(HOLDOUT):
        total += len(block[0])
        chosen = np.hstack([chosen, np.stack(block)])
        new = priorities(seed, "held-out order", *(papers[end] for end in block))
        keys = np.concatenate([keys, new])
        first = np.argsort(keys)[:MOST_EDGES]
        chosen, keys = chosen[:, first], keys[first]
    return chosen, total


def _with_true_neighbours(
    graph: ImportedFolder, papers: int, lhs: Rows, rhs: Rows, lhs_candidates: Rows, rhs_candidates: Rows
) -> list[Batch]:
    """The batches, from arrays of batches × edges and batches × candidates."""
    among, sources, targets = _edges_among(graph, papers, lhs, rhs, lhs_candidates, rhs_candidates)
    backwards = among.T.tocsr()
    return [
        Batch(
            lhs=lhs[at],
            rhs=rhs[at],
            lhs_candidates=lhs_candidates[at],
            rhs_candidates=rhs_candidates[at],
            lhs_true=backwards[targets[rhs[at]]][:, sources[lhs_candidates[at]]].nonzero(),
            rhs_true=among[sources[lhs[at]]][:, targets[rhs_candidates[at]]].nonzero(),
        )
        for at in range(len(lhs))
    ]


def _edges_among(
    graph: ImportedFolder, papers: int, lhs: Rows, rhs: Rows, lhs_candidates: Rows, rhs_candidates: Rows
) -> tuple[sparse.csr_array, NDArray[np.int32], NDArray[np.int32]]:
    """The edges that a measured edge can become when an end is replaced, as a matrix; and its rows and columns."""
    is_lhs, is_rhs = _marks(papers, lhs), _marks(papers, rhs)
    sources, targets = _numbers(papers, lhs_candidates), _numbers(papers, rhs_candidates)
    found: list[NDArray[np.int32]] = []
    for side in (TRAINING, HOLDOUT):
        for source, target in graph.edges(side):
            replaced_lhs = (sources[source] >= 0) & is_rhs[target]
            replaced_rhs = is_lhs[source] & (targets[target] >= 0)
            chosen = replaced_lhs | replaced_rhs
            found.append(np.stack([sources[source[chosen]], targets[target[chosen]]]))
    rows, columns = np.hstack(found)
    shape = (int(sources.max()) + 1, int(targets.max()) + 1)
    return sparse.coo_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=shape).tocsr(), sources, targets


def _marks(papers: int, rows: Rows) -> NDArray[np.bool_]:
    marks = np.zeros(papers, dtype=bool)
    marks[rows] = True
    return marks


def _numbers(papers: int, rows: Rows) -> NDArray[np.int32]:
    """0, 1, … for each of the rows, −1 for all others."""
    numbers = np.full(papers, -1, dtype=np.int32)
    distinct = np.unique(rows)
    numbers[distinct] = np.arange(len(distinct))
    return numbers
