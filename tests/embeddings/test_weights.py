"""Heavier edges are trained on more often, by as much as they are heavier."""

import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cocite.core.errors import InputError
from cocite.embeddings.engines.biggraph.tsv import split_edges
from cocite.embeddings.importing import import_edges
from cocite.embeddings.weights import repetitions


def test_whole_multiples_of_the_smallest_weight_are_repeated_as_often(tmp_path: Path, graphs: SimpleNamespace) -> None:
    pairs = graphs.random(40, 200)
    weights = dict(zip(pairs, (0.5 * (1 + number % 4) for number in range(200)), strict=True))
    edges = [graphs.write(tmp_path / "edges.parquet", pairs, list(weights.values()))]
    chosen = graphs.settings(weights=True, max_repetitions=3)
    import_edges(edges, chosen, directed=False, seed=1, output=tmp_path / "imported")
    files = {"training": tmp_path / "training.tsv", "holdout": tmp_path / "holdout.tsv"}
    split_edges(edges, chosen, directed=False, seed=1, memory_mb=500, threads=1, **files)
    holdout = Counter(graphs.edges(tmp_path / "imported", "holdout"))
    assert set(holdout.values()) == {1}
    training = Counter(graphs.edges(tmp_path / "imported", "training"))
    for (source, target), count in training.items():
        assert count == min(3, 2 * weights[min(source, target), max(source, target)])
    assert training == Counter(graphs.read(files["training"]))
    assert holdout == Counter(graphs.read(files["holdout"]))


def test_a_fraction_is_repeated_by_chance_and_alike_both_ways() -> None:
    """2.25 copies on average: of 40,000 edges a quarter has 3, with a standard deviation of 87."""
    source, target = np.arange(40_000), np.arange(40_000) + 70_000
    weight = np.full(40_000, 4.5, dtype=np.float32)
    there = repetitions(source, target, weight, unit=2.0, most=10, seed=1)
    assert set(there) == {2, 3}
    assert abs((there == 3).sum() - 10_000) < 4 * 87
    assert (repetitions(target, source, weight, unit=2.0, most=10, seed=1) == there).all()
    assert (repetitions(source, target, weight, unit=2.0, most=10, seed=2) != there).any()


def test_an_edge_below_the_unit_counts_once_and_one_above_the_bound_as_often_as_that() -> None:
    weight = np.array([0.1, 100.0], dtype=np.float32)
    assert repetitions(np.array([1, 2]), np.array([3, 4]), weight, unit=2.0, most=7, seed=1).tolist() == [1, 7]


@pytest.mark.parametrize("wrong", [math.nan, -1.0, 0.0, math.inf])
def test_weights_that_are_not_positive_numbers_are_refused(
    tmp_path: Path, graphs: SimpleNamespace, wrong: float
) -> None:
    edges = [graphs.write(tmp_path / "edges.parquet", [(1, 2), (3, 4), (5, 6)], [1.0, wrong, 1.0])]
    with pytest.raises(InputError, match=f"weight of the edge from 3 to 4 is {wrong:g}, but weights: true takes"):
        import_edges(edges, graphs.settings(weights=True), directed=True, seed=1, output=tmp_path / "imported")
    assert not (tmp_path / "imported").exists()
    import_edges(edges, graphs.settings(holdout=0.4), directed=True, seed=1, output=tmp_path / "imported")
