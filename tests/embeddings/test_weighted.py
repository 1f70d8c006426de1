"""Weights that the import keeps: beside their edges, in multiples of their mean."""

import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.checkpoints import fingerprint_of
from cocite.core.errors import InputError
from cocite.embeddings import importing
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.importing import import_edges
from cocite.embeddings.weights import Mean

Edge = tuple[int, int]
SIDES = ("training", "holdout")
POSITIVE = st.floats(2**-149, float(np.finfo(np.float32).max)).map(np.float32).map(float)


def uneven(count: int) -> list[float]:
    """Weights over six orders of magnitude."""
    return [float(weight) for weight in np.float32(10 ** np.random.default_rng(3).uniform(-3, 3, count))]


def weights_of(imported: Path, side: str, graphs: SimpleNamespace) -> dict[Edge, float]:
    """The weight that stands beside each edge, by the corpus ids of its papers."""
    weights = [float(weight) for *_, block in ImportedFolder(imported).weighted_edges(side) for weight in block]
    return dict(zip(graphs.edges(imported, side), weights, strict=True))


@pytest.mark.parametrize(("directed", "partitions"), [(False, 1), (True, 1), (False, 3)])
def test_each_edge_has_its_own_weight_as_a_multiple_of_the_mean_of_the_edges_to_train_on(
    tmp_path: Path, graphs: SimpleNamespace, directed: bool, partitions: int
) -> None:
    pairs, weights = graphs.random(60, 500), uneven(500)
    imported = graphs.imported(
        tmp_path, pairs, edge_weights=weights, directed=directed, weighted=True, partitions=partitions
    )
    given = dict(zip(pairs, weights, strict=True))
    mean = np.mean([given[min(edge), max(edge)] for edge in graphs.edges(imported, "training")])
    found = {side: weights_of(imported, side, graphs) for side in SIDES}
    assert sum(map(len, found.values())) == 500 * (1 if directed else 2)
    for edge, weight in [*found["training"].items(), *found["holdout"].items()]:
        assert weight == pytest.approx(given[min(edge), max(edge)] / mean, rel=1e-6)
    assert np.mean(list(found["training"].values())) == pytest.approx(1, rel=1e-6)


def test_both_directions_of_a_pair_weigh_alike(tmp_path: Path, graphs: SimpleNamespace) -> None:
    imported = graphs.imported(tmp_path, graphs.random(60, 500), edge_weights=uneven(500), weighted=True)
    for side in SIDES:
        found = weights_of(imported, side, graphs)
        assert found == {(target, source): weight for (source, target), weight in found.items()}


def test_a_weight_above_the_bound_counts_as_much_as_the_bound(tmp_path: Path, graphs: SimpleNamespace) -> None:
    pairs, weights = graphs.random(60, 500), uneven(500)
    whole, cut = (
        weights_of(
            graphs.imported(tmp_path / name, pairs, edge_weights=weights, weighted=True, **bound), "training", graphs
        )
        for name, bound in (("whole", {}), ("cut", {"max_weight": 1.5}))
    )
    assert max(whole.values()) > 1.5
    assert cut == {edge: min(weight, 1.5) for edge, weight in whole.items()}


@pytest.mark.parametrize("partitions", [1, 2])
def test_weights_change_neither_the_edges_nor_their_order(
    tmp_path: Path, graphs: SimpleNamespace, partitions: int
) -> None:
    pairs, weights = graphs.random(60, 500), uneven(500)
    without, weighted = (
        graphs.imported(tmp_path / str(kept), pairs, edge_weights=weights, weighted=kept, partitions=partitions)
        for kept in (False, True)
    )
    for side in SIDES:
        assert graphs.edges(without, side) == graphs.edges(weighted, side)
        assert [weight for *_, weight in ImportedFolder(without).weighted_edges(side)] == [None] * partitions**2
    with h5py.File(weighted / "training/edges_0_0.h5") as file:
        assert {name: data.dtype for name, data in file.items()} == {
            **dict.fromkeys(("lhs", "rel", "rhs"), np.int64),
            "weight": np.float32,
        }
        assert len(file["weight"]) == len(file["lhs"])


def test_neither_buckets_nor_blocks_nor_piles_change_a_weight(
    tmp_path: Path, graphs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, weights = graphs.random(60, 400), uneven(400)
    buckets = [graphs.write(tmp_path / f"{at}.parquet", pairs[at::3], weights[at::3]) for at in range(3)]
    one = [graphs.write(tmp_path / "one.parquet", pairs, weights)]

    def imported(name: str, edges: list[Path]) -> str:
        import_edges(edges, graphs.settings(weighted=True), directed=False, seed=1, output=tmp_path / name)
        return fingerprint_of([tmp_path / name])

    expected = imported("whole", one)
    assert imported("buckets", buckets) == expected
    monkeypatch.setattr(importing, "BLOCK_ROWS", 7)
    monkeypatch.setattr(importing, "EDGES_IN_PILE", 50)
    assert imported("piles", buckets) == expected


def test_the_unit_of_the_weights_does_not_matter(tmp_path: Path, graphs: SimpleNamespace) -> None:
    """A power of two changes no digit of a float, so that the files are the same to the byte."""
    pairs, weights = graphs.random(60, 400), uneven(400)
    one, other = (
        graphs.imported(tmp_path / str(unit), pairs, edge_weights=[unit * weight for weight in weights], weighted=True)
        for unit in (1, 64)
    )
    assert fingerprint_of([one / "training"]) == fingerprint_of([other / "training"])


@pytest.mark.parametrize("wrong", [math.nan, -1.0, 0.0, math.inf])
def test_weights_that_are_not_positive_numbers_are_refused(
    tmp_path: Path, graphs: SimpleNamespace, wrong: float
) -> None:
    said = f"weight of the edge from 3 to 4 is {wrong:g}, but weighted: true takes positive numbers; .* weighted: false"
    with pytest.raises(InputError, match=said):
        graphs.imported(tmp_path, [(1, 2), (3, 4), (5, 6)], edge_weights=[1.0, wrong, 1.0], weighted=True)
    assert not (tmp_path / "imported").exists()


@given(st.lists(st.lists(POSITIVE, max_size=20)), st.lists(POSITIVE, min_size=1, max_size=20))
def test_a_mean_is_the_exact_one_rounded_once(some: list[list[float]], last: list[float]) -> None:
    blocks = [*some, last]
    mean, every = Mean(), [Fraction(weight) for block in blocks for weight in block]
    for block in blocks:
        mean.add(np.array(block, dtype=np.float32))
    assert float(mean) == float(sum(every) / len(every))
