"""Which edges PyTorch-BigGraph trains on, and how often: it trains all alike, so a heavier edge is there more often.

An edge of weight w is expected w / u times, where u is the weight of one repetition, at least once and at most
`max_repetitions` times: the whole part for sure, and once more with the probability of the fraction. The draw depends
on a hash of the seed and the pair, so both directions of a pair are repeated alike. As a batch is a draw among all
copies, the expected gradient is that of a loss in which each edge counts by its repetitions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.config.edges import EdgeSettings
from cocite.embeddings.edges import EdgeBlock, Papers, Weights, blocks_of_edges, held_out, mirrored
from cocite.ground.errors import InputError
from cocite.ground.progress import report
from cocite.ground.randomness import priorities


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Some edges, each with the number of the copy that it is: 0, 1, …"""

    source: Papers
    target: Papers
    copy: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of edges, each copy counted."""
        return len(self.source)


def divide(
    source: Papers,
    target: Papers,
    weight: Weights,
    settings: EdgeSettings,
    *,
    directed: bool,
    unit: float,
    seed: int,
) -> tuple[Edges, Edges]:
    """The edges to train on, repeated by their weight, and those held out, once each.

    An undirected edge is followed by its mirror; otherwise edges keep their order. `unit` is the weight of one copy.
    """
    if not directed:
        source, target, weight = *mirrored(source, target), np.repeat(weight, 2)
    kept = ~held_out(source, target, share=settings.holdout, of=settings.holdout_of, seed=seed)
    copies = np.ones(int(kept.sum()), dtype=np.int64)
    if settings.weights:
        copies = repetitions(
            source[kept], target[kept], weight[kept], unit=unit, most=settings.max_repetitions, seed=seed
        )
    return (
        Edges(source=np.repeat(source[kept], copies), target=np.repeat(target[kept], copies), copy=_numbers(copies)),
        Edges(source=source[~kept], target=target[~kept], copy=np.zeros(int((~kept).sum()), dtype=np.int64)),
    )


def unit_of(edges: Sequence[Path], given: float | None, most: int) -> float:
    """The weight of one repetition: the one given, or the smallest of the graph.

    Raises `InputError` for weights that are not positive numbers. The log says how many edges stand at either bound.
    """
    smallest = min((float(block[2].min()) for block in _checked(edges)), default=1.0)
    unit = given or smallest
    lighter, heavier, total = 0, 0, 0
    for *_, weight in blocks_of_edges(edges):
        share = weight.astype(np.float64) / unit
        lighter, heavier, total = lighter + (share < 1).sum(), heavier + (share > most).sum(), total + len(weight)
    report(
        f"an edge is repeated once for each {unit:g} of its weight; of {total:,} edges {lighter:,} have less and count "
        f"once, {heavier:,} have more than {most} times as much and count {most} times"
    )
    return unit


def repetitions(
    source: Papers,
    target: Papers,
    weight: Weights,
    *,
    unit: float,
    most: int,
    seed: int,
) -> NDArray[np.int64]:
    """How often each edge is trained on, 1 … `most`; the same for both directions of a pair."""
    expected = np.clip(weight.astype(np.float64) / unit, 1, most)
    whole = np.floor(expected)
    drawn = priorities(seed, "repetitions", np.minimum(source, target), np.maximum(source, target))
    return whole.astype(np.int64) + (drawn < ((expected - whole) * 2.0**64).astype(np.uint64))


def _checked(edges: Sequence[Path]) -> Iterator[EdgeBlock]:
    for source, target, weight in blocks_of_edges(edges):
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
        if len(wrong):
            at = wrong[0]
            raise InputError(
                f"{edges[0].parent}: the weight of the edge from {source[at]} to {target[at]} is {weight[at]:g}, but "
                "weights: true takes positive numbers; choose another strength for the graph, or weights: false."
            )
        yield source, target, weight


def _numbers(copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, … n − 1 for each n."""
    firsts = np.cumsum(copies) - copies
    return np.arange(copies.sum()) - np.repeat(firsts, copies)
