"""The edges of a graph, as blocks of arrays, and which of them are held out to measure link prediction on.

Held out are, by `holdout_of`,

pairs   unordered pairs of papers, in both directions. Nothing leaks. Two papers that cite each other stay on one side.
edges   single edges, after they are mirrored, as CoCite and SciNCL published it. The mirror of nearly every held-out
        edge is trained on, which alone lifts a graph without any structure from an AUC of .5 to one of .97.

Whether an edge is held out depends on a hash of the seed and its papers alone, so all embeddings of a graph are
measured on the same edges, however the graph is cut into buckets.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.randomness import priorities
from cocite.core.tables.files import open_table

BLOCK_ROWS = 1_000_000

Papers = NDArray[np.int64]
Weights = NDArray[np.float32]
Rows = NDArray[np.int64]
EdgeBlock = tuple[Papers, Papers, Weights]
ImportedBlock = tuple[Rows, Rows, Weights | None]
"""Rows of sources and targets, and the weights of the edges where the import keeps them."""

TRAINING, HOLDOUT = "training", "holdout"
"""The sides of a graph: the edges to train on, and those that link prediction is measured on."""


def blocks_of_edges(edges: Sequence[Path], rows: int = BLOCK_ROWS) -> Iterator[EdgeBlock]:
    """Sources, targets and weights of all buckets, so many `rows` at a time at most."""
    for path in edges:
        with open_table(path, "edges") as file:
            for batch in file.iter_batches(rows, columns=["source", "target", "weight"]):
                source, target, weight = (batch.column(name).to_numpy() for name in ("source", "target", "weight"))
                yield source, target, weight


def held_out(source: Papers, target: Papers, *, share: float, of: str, seed: int) -> NDArray[np.bool_]:
    """Whether each edge is held out; with `of` pairs the same for both directions of a pair."""
    ends = (np.minimum(source, target), np.maximum(source, target)) if of == "pairs" else (source, target)
    return priorities(seed, "holdout" if of == "pairs" else "holdout of edges", *ends) < np.uint64(share * 2**64)


def mirrored(source: Papers, target: Papers) -> tuple[Papers, Papers]:
    """Each edge followed by its mirror, so that the order of edges does not depend on the size of a batch."""
    return np.stack([source, target], axis=1).ravel(), np.stack([target, source], axis=1).ravel()


def check_sides(graph: Path, share: float, training: int, holdout: int) -> None:
    """Raise `InputError` if there is nothing to train on or nothing to measure on."""
    if training + holdout == 0:
        raise InputError(f"{graph}: the graph has no edges; lower its min_count or choose more queries.")
    if 0 in (training, holdout):
        side = "train on" if training == 0 else "hold out"
        raise InputError(
            f"{graph}: a graph of {training + holdout} edges leaves none to {side} with a holdout of {share}; "
            "it takes a larger graph or another share."
        )
