"""The edges of a graph, in blocks of arrays: the hold-out for link prediction, and the effect of weights.

Whether an edge is held out depends only on a hash of the seed and its papers, so all embeddings of a graph are measured
on the same. With `holdout_of: edges`, as published, the mirror of nearly every held-out edge is trained on, which lifts
a graph without any structure from an AUC of .5 to one of .97. `weights` repeats an edge of weight w by w / u times on
average, where u is the weight of one repetition. `weighted` divides weights by the mean of the edges to train on, so
that the learning rate means the same as without weights; `max_weight` bounds them after the division.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.config.engine import EdgeSettings
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.randomness import priorities
from cocite.core.tables.files import open_table

BLOCK_ROWS = 1_000_000
BITS_OF_FLOAT32, LOWEST_EXPONENT, HIGHEST_EXPONENT = 24, -148, 128  # exponents are as `numpy.frexp` gives them

Papers = NDArray[np.int64]
Weights = NDArray[np.float32]
Rows = NDArray[np.int64]
EdgeBlock = tuple[Papers, Papers, Weights]
ImportedBlock = tuple[Rows, Rows, Weights | None]  # rows of sources and targets, and weights if the import keeps them

TRAINING, HOLDOUT = "training", "holdout"  # the edges to train on, and those that link prediction is measured on


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Edges with the number of each copy (0, 1, …), and their weights if they are kept."""

    source: Papers
    target: Papers
    copy: NDArray[np.int64]
    weight: Weights | None

    def __len__(self) -> int:
        """Number of edges, each copy counted."""
        return len(self.source)


def blocks_of_edges(edges: Sequence[Path], rows: int = BLOCK_ROWS) -> Iterator[EdgeBlock]:
    """Sources, targets and weights of all buckets, at most `rows` at a time."""
    for path in edges:
        with open_table(path, "edges") as file:
            for batch in file.iter_batches(rows, columns=["source", "target", "weight"]):
                source, target, weight = (column.to_numpy() for column in batch.columns)
                yield source, target, weight


def held_out(source: Papers, target: Papers, *, share: float, of: str, seed: int) -> NDArray[np.bool_]:
    """Whether each edge is held out; with `of` pairs the same for both directions of a pair."""
    ends = (np.minimum(source, target), np.maximum(source, target)) if of == "pairs" else (source, target)
    return priorities(seed, "holdout" if of == "pairs" else "holdout of edges", *ends) < np.uint64(share * 2**64)


def check_sides(graph: Path, share: float, training: int, holdout: int) -> None:
    """Raise `InputError` if there is nothing to train on or nothing to measure on."""
    edges = training + holdout
    if edges == 0:
        raise InputError(f"{graph}: the graph has no edges; lower its min_count or choose more queries.")
    if 0 in (training, holdout):
        none = f"leaves none to {'hold out' if training else 'train on'} with a holdout of {share}"
        raise InputError(f"{graph}: a graph of {edges} edges {none}; use a larger graph or another share.")


def divide(
    source: Papers, target: Papers, weight: Weights, settings: EdgeSettings, *, directed: bool, unit: float, seed: int
) -> tuple[Edges, Edges]:
    """The edges to train on, repeated by their weight, and those held out, once each. Edges keep their order, and an
    undirected edge is followed by its mirror. `unit` is the weight of one copy."""
    if not directed:
        source, target = (np.stack(ends, axis=1).ravel() for ends in ((source, target), (target, source)))
        weight = np.repeat(weight, 2)
    kept = ~held_out(source, target, share=settings.holdout, of=settings.holdout_of, seed=seed)
    copies = np.ones(len(source), dtype=np.int64)
    if settings.weights:
        most = settings.max_repetitions
        copies[kept] = repetitions(source[kept], target[kept], weight[kept], unit=unit, most=most, seed=seed)

    def of(side: NDArray[np.bool_]) -> Edges:
        times = copies[side]
        copy = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        ends = {"source": np.repeat(source[side], times), "target": np.repeat(target[side], times)}
        return Edges(**ends, copy=copy, weight=weight[side] if settings.weighted else None)

    return of(kept), of(~kept)


def unit_of(edges: Sequence[Path], settings: EdgeSettings) -> float:
    """The weight of one repetition: the one given, or the smallest of the graph; the log counts edges at the bounds.
    Raises `InputError` for weights that are not positive numbers."""
    if not settings.weights:
        return 1.0
    smallest = min((float(block[2].min()) for block in with_positive_weights(edges, "weights")), default=1.0)
    unit, lighter, heavier, total = settings.weight_unit or smallest, 0, 0, 0
    most = settings.max_repetitions
    for *_, weight in blocks_of_edges(edges):
        share = weight.astype(np.float64) / unit
        lighter, heavier, total = lighter + (share < 1).sum(), heavier + (share > most).sum(), total + len(weight)
    bounds = f"{lighter:,} have less and count once, {heavier:,} have over {most} times as much and count {most} times"
    report(f"an edge is repeated once for each {unit:g} of its weight; of {total:,} edges {bounds}")
    return unit


def repetitions(
    source: Papers, target: Papers, weight: Weights, *, unit: float, most: int, seed: int
) -> NDArray[np.int64]:
    """How often each edge is trained on, 1 … `most`; the same for both directions of a pair."""
    expected = np.clip(weight.astype(np.float64) / unit, 1, most)
    whole = np.floor(expected)
    drawn = priorities(seed, "repetitions", np.minimum(source, target), np.maximum(source, target))
    return whole.astype(np.int64) + (drawn < ((expected - whole) * 2.0**64).astype(np.uint64))


class Mean:
    """The mean of many weights: their exact sum, whatever the order and the blocks, rounded once."""

    def __init__(self) -> None:
        self._sums, self._count = np.zeros(HIGHEST_EXPONENT - LOWEST_EXPONENT + 1, dtype=np.int64), 0

    def add(self, weight: Weights) -> None:
        """Add at most 2^29 weights: their mantissas, as integers, are summed for each exponent."""
        mantissas, exponents = np.frexp(weight)
        integers = mantissas.astype(np.float64) * 2**BITS_OF_FLOAT32
        sums = np.bincount(exponents - LOWEST_EXPONENT, weights=integers, minlength=len(self._sums))
        self._sums += sums.astype(np.int64)
        self._count += len(weight)

    def __float__(self) -> float:
        """The mean of all weights, at least one."""
        total = sum(part << place for place, part in enumerate(self._sums.tolist()))
        return float(Fraction(total, self._count << (BITS_OF_FLOAT32 - LOWEST_EXPONENT)))


def relative(blocks: Iterable[ImportedBlock], mean: Mean, most: float | None) -> Iterator[ImportedBlock]:
    """Edges with their weights in multiples of the mean, at most `most`; edges without weights as they are."""
    bound = np.inf if most is None else most
    for lhs, rhs, weight in blocks:
        multiples = None if weight is None else np.minimum(weight / np.float64(mean), bound).astype(np.float32)
        yield lhs, rhs, multiples


def with_positive_weights(edges: Sequence[Path], key: str, rows: int = BLOCK_ROWS) -> Iterator[EdgeBlock]:
    """The edges in blocks. Raises `InputError`, which names the edge and the key, if a weight is not positive."""
    for source, target, weight in blocks_of_edges(edges, rows):
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
        if len(wrong):
            at = wrong[0]
            found = f"the weight of the edge from {source[at]} to {target[at]} is {weight[at]:g}"
            remedy = f"{key}: true takes positive numbers; choose another strength for the graph, or {key}: false"
            raise InputError(f"{edges[0].parent}: {found}, but {remedy}.")
        yield source, target, weight
