"""The split leaks nothing and depends on nothing but seed and pair."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.errors import InputError
from cocite.embeddings.engines.biggraph.tsv import split_edges

Pair = tuple[int, int]
Split = Callable[..., list[list[Pair]]]

papers = st.integers(0, 12).map(lambda paper: paper * 1_000_003)


@pytest.fixture
def split(tmp_path: Path, graphs: SimpleNamespace) -> Split:
    """Split a graph given in shards; return the lines of either file."""

    def made(
        *shards: list[Pair], directed: bool, share: float = 0.3, of: str = "pairs", seed: int = 1
    ) -> list[list[Pair]]:
        edges = [graphs.write(tmp_path / f"{at}.parquet", pairs) for at, pairs in enumerate(shards)]
        files = tmp_path / "training.tsv", tmp_path / "holdout.tsv"
        split_edges(
            edges,
            graphs.settings(holdout=share, holdout_of=of),
            directed=directed,
            seed=seed,
            memory_mb=500,
            threads=2,
            training=files[0],
            holdout=files[1],
        )
        return [graphs.read(file) for file in files]

    return made


@given(
    edges=st.sets(st.tuples(papers, papers).filter(lambda edge: edge[0] != edge[1]), min_size=60),
    directed=st.booleans(),
)
def test_no_pair_stands_on_both_sides(split: Split, edges: set[Pair], directed: bool) -> None:
    given_edges = edges if directed else {(min(edge), max(edge)) for edge in edges}
    training, holdout = split(list(given_edges), directed=directed, share=0.49)
    assert not {frozenset(edge) for edge in training} & {frozenset(edge) for edge in holdout}
    expected = given_edges if directed else given_edges | {(target, source) for source, target in given_edges}
    assert sorted(training + holdout) == sorted(expected)


def test_an_undirected_pair_is_followed_by_its_mirror(split: Split, graphs: SimpleNamespace) -> None:
    for side in split(graphs.random(40, 200), directed=False):
        assert side[1::2] == [(target, source) for source, target in side[::2]]


def test_papers_that_cite_each_other_stay_on_one_side(split: Split, graphs: SimpleNamespace) -> None:
    both_ways = [edge for a, b in graphs.random(40, 200) for edge in ((a, b), (b, a))]
    training, holdout = split(both_ways, directed=True)
    assert {(b, a) for a, b in training} == set(training)
    assert {(b, a) for a, b in holdout} == set(holdout)


def test_the_share_of_pairs_is_held_out(split: Split, graphs: SimpleNamespace) -> None:
    """Of 40,000 pairs 5% are 2,000, with a standard deviation of 44."""
    _, holdout = split(graphs.random(400, 40_000), directed=True, share=0.05)
    assert abs(len(holdout) - 2000) < 4 * 44


def test_buckets_change_no_line_and_no_order_but_the_seed_does(split: Split, graphs: SimpleNamespace) -> None:
    pairs = sorted(graphs.random(60, 400))
    one = split(pairs, directed=False)
    assert split(pairs[:150], pairs[150:], directed=False) == one
    assert split(pairs[1::2], pairs[::2], directed=False) == one
    assert set(split(pairs, directed=False, seed=2)[1]) != set(one[1])


def test_a_graph_without_edges_is_refused(split: Split, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no edges"):
        split([], directed=False)
    assert not list(tmp_path.glob("*.tsv"))


def test_a_graph_too_small_to_hold_anything_out_is_refused(split: Split) -> None:
    with pytest.raises(InputError, match="leaves none to hold out with a holdout of 1e-06"):
        split([(1, 2), (3, 4)], directed=False, share=1e-6)


def test_published_hold_out_splits_mirrored_edges_one_by_one(split: Split, graphs: SimpleNamespace) -> None:
    """Of the mirrors of held-out edges, 70% are trained on: 560 of 800, with a standard deviation below 20."""
    pairs = graphs.random(100, 1333)
    training, holdout = split(pairs, directed=False, of="edges")
    assert sorted(training + holdout) == sorted(pairs + [(target, source) for source, target in pairs])
    leaked = {(target, source) for source, target in holdout} & set(training)
    assert abs(len(leaked) / len(holdout) - 0.7) < 0.1
