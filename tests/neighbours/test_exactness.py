"""What is found is exact, to the last bit, however it is searched."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS
from tests.neighbours.small_searches import Row, by_definition, search

from cocite.neighbours import nearest, searching, vectors

METRICS = ["cosine", "l2", "inner_product"]


def in_blocks_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks so small that pools overflow and are cut down in small searches as well."""
    for module in (searching, nearest, vectors):
        monkeypatch.setattr(module, "BLOCK", size)


@given(
    drawn=st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=4, max_size=90),
    metric=st.sampled_from(METRICS),
    block=st.integers(1, 30),
    row_group=st.integers(1, 100),
    relabel=st.sampled_from(RELABELLINGS),
    data=st.data(),
)
def test_the_result_is_that_of_the_definition(tmp_path, monkeypatch, drawn, metric, block, row_group, relabel, data):
    in_blocks_of(block, monkeypatch)
    k = data.draw(st.integers(1, len(drawn) - 2))
    placed = {relabel(10 * at): [float(value) for value in vector] for at, vector in enumerate(drawn)}
    found = search(tmp_path, placed, dict.fromkeys(placed, "train"), metric=metric, k=k, row_group=row_group)
    assert found == [row for query in placed for row in by_definition(placed, query, metric, k)]


@given(
    seed=st.integers(0, 10**6),
    metric=st.sampled_from(METRICS),
    scale=st.sampled_from([1e-35, 1e-25, 1e-6, 1.0, 1e6]),
    spread=st.sampled_from([0.0, 1.0, 8.0]),
)
def test_no_paper_is_missed_for_rounding_whatever_the_lengths(tmp_path, monkeypatch, seed, metric, scale, spread):
    """Vectors crowd around two points, with lengths up to e^±`spread` apart: most distances are near ties."""
    in_blocks_of(8, monkeypatch)
    rng = np.random.default_rng(seed)
    near = rng.normal(size=(2, 24))[rng.integers(0, 2, 80)] + 1e-6 * rng.normal(size=(80, 24))
    drawn = (scale * near * np.exp(spread * rng.uniform(-1, 1, (80, 1)))).astype(np.float32)
    placed = {paper: drawn[paper].tolist() for paper in range(80)}
    found = search(tmp_path, placed, dict.fromkeys(range(0, 80, 9), "train"), metric=metric, k=20)
    every = {query: by_definition(placed, query, metric, 79) for query in range(0, 80, 9)}
    distances = {(row[0], row[2]): row[3] for rows in every.values() for row in rows}
    own = [distances[row[0], row[2]] for row in found]
    nearest = [row[3] for rows in every.values() for row in rows[:20]]
    assert len(found) == len(nearest)
    for expected in (own, nearest):
        np.testing.assert_allclose([row[3] for row in found], expected, rtol=1e-6, atol=1e-14)


def test_a_tie_at_the_last_rank_is_cut_by_corpus_id_however_many_share_it(tmp_path):
    shared = {paper: [1.0, 0.0] for paper in range(100, 9000)} | {7: [0.0, 0.0], 9999: [0.0, 1.0]}
    assert [row[2] for row in search(tmp_path, shared, {7: "train"}, k=3)] == [100, 101, 102]


@pytest.mark.parametrize("near", [True, False])
def test_a_guess_from_papers_that_are_nearer_than_others_misses_none(tmp_path, monkeypatch, near):
    """The first fifty of each five hundred, which the guess is made from, are the nearest of all, or the farthest."""
    in_blocks_of(50, monkeypatch)
    passes = []
    search_all = searching._search
    monkeypatch.setattr(searching, "_search", lambda *args: passes.append(1) or search_all(*args))
    lengths = {paper: 1.0 + (paper % 500 if near else 499 - paper % 500) for paper in range(1, 2500)}
    line = {0: [0.0]} | {paper: [length] for paper, length in lengths.items()}
    found = search(tmp_path, line, {0: "train"}, k=400, row_group=500)
    assert found == by_definition(line, 0, "l2", 400)
    assert len(passes) == (2 if near else 1)


@pytest.fixture(scope="module")
def crowded():
    """20 crowds of papers whose distances differ in the last digits."""
    rng = np.random.default_rng(5)
    near = rng.normal(size=(20, 48))
    return {paper: list(near[paper % 20] + 1e-6 * rng.normal(size=48)) for paper in range(1500)}


@pytest.mark.parametrize("metric", METRICS)
def test_blocks_groups_shards_and_threads_change_no_bit(tmp_path, monkeypatch, crowded, metric):
    splits = dict.fromkeys(range(0, 1500, 10), "train")

    def again(**options: object) -> list[Row]:
        return search(tmp_path, crowded, splits, metric=metric, k=70, **options)

    whole = again(threads=2)
    assert all(a[3] <= b[3] for a, b in pairwise(whole) if a[0] == b[0])
    assert again(threads=1, row_group=333) == whole
    assert sorted(again(shard=(0, 20)) + again(shard=(10, 20))) == whole
    in_blocks_of(50, monkeypatch)
    monkeypatch.setattr(nearest, "TILE", 7)
    monkeypatch.setattr(searching, "queries_at_once", lambda *_: 31)
    assert again(threads=2) == whole
