"""The held-out edges that link prediction is measured on, with the negatives that each is ranked among.

Held-out edges go in batches of 1,000. Each is ranked, on either side, among the same end of the other edges of its
batch (papers that are drawn as often as they have edges) and 1,000 papers drawn from all, as PyTorch-BigGraph does it
in evaluation. Edges, batches and negatives are drawn by corpus id, from the seed and the graph alone: every model of a
graph is measured on the same, whatever its settings, however its edges were imported and partitioned.

Some negatives are true: the paper that replaces an end has an edge with the other end, to train on or held out.
"Filtered" measures leave those out (Bordes et al., 2013, "Translating embeddings for modeling multi-relational data").
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cocite.embeddings.imported import HOLDOUT, TRAINING, Papers, Rows, edges_of, read_papers
from cocite.ground.progress import report
from cocite.ground.randomness import generator, priorities

NEGATIVES = 1000
"""Negatives from the batch, and as many from all papers: PyTorch-BigGraph's default for evaluation."""
MOST_EDGES = 50_000
"""Held-out edges that are measured at most: enough for a standard error of MRR below .002."""

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


def load_held_out(imported: Path, *, seed: int) -> list[Batch]:
    """A seeded sample of `MOST_EDGES` held-out edges at most, in whole batches."""
    papers = read_papers(imported)
    (lhs, rhs), held_out = _sample(imported, papers, seed)
    size = min(NEGATIVES, len(lhs))
    batches = len(lhs) // size
    lhs, rhs = lhs[: batches * size].reshape(batches, size), rhs[: batches * size].reshape(batches, size)
    drawn = generator(seed, "biggraph", "held-out negatives").integers(len(papers), size=(2, batches, NEGATIVES))
    of_lhs, of_rhs = np.argsort(papers)[drawn]
    report(f"link prediction is measured on {lhs.size:,} of {held_out:,} held-out edges")
    return _with_true_neighbours(imported, len(papers), lhs, rhs, np.hstack([lhs, of_lhs]), np.hstack([rhs, of_rhs]))


def _sample(imported: Path, papers: Papers, seed: int) -> tuple[NDArray[np.int64], int]:
    """The held-out edges of the smallest hashes, in their order, 2 × edges; and the number of all held-out edges."""
    chosen, keys, total = np.empty((2, 0), dtype=np.int64), np.empty(0, dtype=np.uint64), 0
    for block in edges_of(imported, HOLDOUT):
        total += len(block[0])
        chosen = np.hstack([chosen, np.stack(block)])
        new = priorities(seed, "held-out order", *(papers[end] for end in block))
        keys = np.concatenate([keys, new])
        first = np.argsort(keys)[:MOST_EDGES]
        chosen, keys = chosen[:, first], keys[first]
    return chosen, total


def _with_true_neighbours(
    imported: Path, papers: int, lhs: Rows, rhs: Rows, lhs_candidates: Rows, rhs_candidates: Rows
) -> list[Batch]:
    """The batches, from arrays of batches × edges and batches × candidates."""
    graph, sources, targets = _edges_among(imported, papers, lhs, rhs, lhs_candidates, rhs_candidates)
    backwards = graph.T.tocsr()
    return [
        Batch(
            lhs=lhs[at],
            rhs=rhs[at],
            lhs_candidates=lhs_candidates[at],
            rhs_candidates=rhs_candidates[at],
            lhs_true=backwards[targets[rhs[at]]][:, sources[lhs_candidates[at]]].nonzero(),
            rhs_true=graph[sources[lhs[at]]][:, targets[rhs_candidates[at]]].nonzero(),
        )
        for at in range(len(lhs))
    ]


def _edges_among(
    imported: Path, papers: int, lhs: Rows, rhs: Rows, lhs_candidates: Rows, rhs_candidates: Rows
) -> tuple[sparse.csr_array, NDArray[np.int32], NDArray[np.int32]]:
    """The edges that a measured edge can become when an end is replaced, as a matrix; and its rows and columns."""
    is_lhs, is_rhs = _marks(papers, lhs), _marks(papers, rhs)
    sources, targets = _numbers(papers, lhs_candidates), _numbers(papers, rhs_candidates)
    found: list[NDArray[np.int32]] = []
    for side in (TRAINING, HOLDOUT):
        for source, target in edges_of(imported, side):
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
