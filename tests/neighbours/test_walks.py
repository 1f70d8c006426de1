"""Neighbours by random walks with restart: their scores by a dense computation, their order, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.neighbours.small import (
    TREE,
    KilledError,
    chances_by_definition,
    degrees_by_definition,
    links_of,
    read_counts,
    read_rows,
    walk,
    walks_by_definition,
    write_edges,
    write_papers,
    written,
)
from tests.triplets.blocks import write_queries
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.embeddings import Links
from cocite.core.adjacency import open_adjacency
from cocite.core.errors import InputError
from cocite.neighbours import walking
from cocite.neighbours.adjacency import build_adjacency
from cocite.neighbours.walking import (
    NOT_LINKED,
    NOT_REACHED,
    chances_around,
    new_push_workspace,
    queries_at_once,
    threads_for,
)

RINGS = {
    (paper, other): float(1 + (paper + other) % 3)
    for paper in range(200)
    for other in ((paper + 1) % 200, (paper * 7) % 200)
    if paper != other
}

GRAPHS = st.dictionaries(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda ends: ends[0] != ends[1]),
    st.sampled_from([0.25, 1.0, 3.0, 10.0]),
    min_size=1,
    max_size=25,
)


@given(GRAPHS, st.booleans(), st.sampled_from([0.05, 0.15, 0.5, 0.9]), st.sampled_from([1e-2, 1e-4, 1e-9]))
def test_no_chance_is_off_by_more_than_tolerance_times_degree(tmp_path, edges, weighted, restart, tolerance):
    graph = open_adjacency(links_of(tmp_path, edges, weighted=weighted))
    degrees, desk = degrees_by_definition(edges, weighted=weighted), new_push_workspace(len(graph.ids))
    for query in graph.ids.tolist():
        true = chances_by_definition(edges, query, restart, weighted=weighted)
        places, chances = chances_around(graph, int(np.searchsorted(graph.ids, query)), restart, tolerance, desk)
        found = dict(zip(graph.ids[places].tolist(), chances.tolist(), strict=True))
        for paper, chance in true.items():
            assert -1e-12 <= chance - found.get(paper, 0.0) <= tolerance * degrees[paper] + 1e-12
        assert not desk.chances.any()
        assert not desk.residuals.any()


@pytest.mark.parametrize("score", ["symmetric", "walk"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("restart", [0.15, 0.6])
def test_neighbours_are_ranked_as_a_dense_computation_ranks_them(tmp_path, score, weighted, restart):
    found = walk(tmp_path, RINGS, {7: "train", 60: "validation"}, weighted=weighted, score=score, restart=restart, k=20)
    asked = {"restart": restart, "score": score, "weighted": weighted}
    expected = [row for query in (7, 60) for row in walks_by_definition(RINGS, query, 20, **asked)]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in expected], rel=1e-6)
    gaps = np.abs(np.diff([row[3] for row in expected]))
    apart = [at for at in range(1, len(expected) - 1) if min(gaps[at - 1], gaps[at]) > 1e-5]
    assert len(apart) > 10
    assert [found[at][:3] for at in apart] == [expected[at][:3] for at in apart]


def test_walks_go_along_edges_either_way_and_a_query_is_not_its_own_neighbour(tmp_path):
    """With β = 1 − restart, visits of 1 and 5 are β/3 of those of 2, of 3 β/3 / (1 − β²/2), and 3 has two edges: its
    score is higher by a factor of 1 / (√2 · (1 − β²/2)), which is 1.1 for β = 0.85 and 0.7 for β = 0.1."""
    assert [row[2] for row in walk(tmp_path, TREE, {2: "train"}, k=4)] == [3, 1, 5, 4]
    found = walk(tmp_path, TREE, {2: "train"}, k=4, restart=0.9)
    assert [row[2] for row in found] == [1, 5, 3, 4]  # 1 and 5 are alike, and the lower id comes first
    assert found[0][3] == found[1][3]


def test_the_unit_of_the_weights_does_not_matter(tmp_path):
    larger = {ends: 64 * weight for ends, weight in RINGS.items()}
    asked = {"splits": {3: "train"}, "k": 50, "weighted": True, "tolerance": 1e-4}
    assert walk(tmp_path, RINGS, **asked) == walk(tmp_path, larger, **asked)


def test_neither_shards_nor_threads_nor_buckets_nor_memory_change_what_is_found(tmp_path):
    splits = dict.fromkeys(range(0, 200, 3), "train")
    asked = {"k": 40, "tolerance": 1e-5}
    whole = walk(tmp_path, RINGS, splits, **asked)
    assert walk(tmp_path, RINGS, splits, threads=3, **asked) == whole
    shards = [walk(tmp_path, RINGS, splits, shard=(shard, 2), threads=2, **asked) for shard in range(2)]
    assert shards == [[row for row in whole if row[0] % 2 == shard] for shard in range(2)]
    for weighted in (False, True):
        asked = {"weighted": weighted, "edges": RINGS}
        once = open_adjacency(links_of(tmp_path / f"{weighted}1", **asked))
        often = open_adjacency(links_of(tmp_path / f"{weighted}3", **asked, buckets=3, memory_mb=0))
        assert all(map(np.array_equal, once, often))


def test_links_are_laid_out_for_as_many_papers_as_there_is_memory_for(tmp_path, monkeypatch):
    monkeypatch.setattr("cocite.neighbours.adjacency.RESERVED_MB", -1)  # leaves 1 MB less what 200 papers take
    monkeypatch.setattr("cocite.neighbours.adjacency.BYTES_OF_PAPER", 4974)  # 4,974 · 201 of 10⁶ bytes leave 226
    few, all_ = (open_adjacency(links_of(tmp_path / str(mb), RINGS, memory_mb=mb)) for mb in (0, 1000))
    assert all(map(np.array_equal, few, all_))
    assert few.degrees.sum() == len(few.others) == 2 * len(RINGS)


def test_a_job_that_is_killed_goes_on_after_its_last_group(tmp_path, monkeypatch):
    splits, asked = dict.fromkeys(range(50), "train"), {"k": 10, "tolerance": 1e-5}
    whole = walk(tmp_path, RINGS, splits, **asked)
    walked: list[int] = []
    once = walking._walk

    def dying(graph, queries, *rest):
        walked.append(int(queries[0]))
        if len(walked) == 3:
            raise KilledError
        return once(graph, queries, *rest)

    monkeypatch.setattr(walking, "_walk", dying)
    monkeypatch.setattr(walking, "QUERIES_SAVED", 20)
    (tmp_path / "neighbours.parquet").unlink()
    with pytest.raises(KilledError):
        walk(tmp_path, RINGS, splits, **asked)
    assert not (tmp_path / "neighbours.parquet").exists()
    assert walk(tmp_path, RINGS, splits, **asked) == whole
    assert walked == [0, 20, 40, 40]
    assert not (tmp_path / "state").exists()


def test_among_papers_with_a_text_only_those_have_a_rank_and_walks_go_through_the_others(tmp_path):
    papers = write_papers(tmp_path, {1: "text", 2: "text", 3: None, 4: "text", 5: None, 8: "text", 77: "text"})
    found = walk(tmp_path, TREE, {2: "train", 3: "train"}, k=2, papers=[papers])
    assert [row[:3] for row in found] == [(2, 1, 1), (2, 2, 4)]


def test_papers_that_are_kept_out_are_not_queries(tmp_path):
    assert {row[0] for row in walk(tmp_path, TREE, {1: "train", 77: "excluded", 78: "holdout"})} == {1}


@pytest.mark.parametrize(
    ("splits", "k", "message"),
    [
        ({2: "holdout"}, 2, "links: contains 1 excluded papers, 2 among them"),
        ({2: "excluded"}, 2, "links: contains 1 excluded papers, 2 among them"),
        ({}, 6, r"walks\.<name>\.k is 6, but .*links contains 7 papers; k must be sm"),
    ],
)
def test_leaks_and_a_k_that_leaves_no_choice_are_refused(tmp_path, splits, k, message):
    with pytest.raises(InputError, match=message):
        walk(tmp_path, TREE, {1: "train", **splits}, k=k)
    assert not (tmp_path / "neighbours.parquet").exists()


def test_links_that_cannot_be_made_or_are_not_there_are_refused(tmp_path):
    for edges, message in (
        ({}, "edges: the graph has no edges; lower its min_count or choose more queries"),
        ({(-1, 2): 1.0}, "contains the corpus id -1; ids must be between 0"),
    ):
        with pytest.raises(InputError, match=message):
            links_of(tmp_path, edges)
    missing = "links: contains no links of papers; `cocite neighbours adjacency` makes it"
    with pytest.raises(InputError, match=missing):
        open_adjacency(tmp_path / "links")


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_weight_that_is_not_positive_is_refused_where_it_counts(tmp_path, weight):
    edges = {(1, 2): weight, (2, 3): 1.0}
    assert len(open_adjacency(links_of(tmp_path, edges)).ids) == 3
    message = r"0\.parquet: contains the weight .*; walks with weighted: true need positive"
    with pytest.raises(InputError, match=message):
        links_of(tmp_path, edges, weighted=True)
    assert len(open_adjacency(tmp_path / "links").ids) == 3


@pytest.mark.parametrize("largest", [2**31, 2**32, 2**53 + 1, 2**63 - 1])
def test_the_largest_ids_are_found(tmp_path, largest):
    edges = {**TREE, (largest, largest - 1): 1.0, (4, largest): 1.0}
    found = walk(tmp_path, edges, {largest: "train"}, k=2)
    assert [row[:3] for row in found] == [(largest, 1, largest - 1), (largest, 2, 4)]


def test_more_memory_takes_more_queries_and_threads_and_too_little_still_one():
    """A query takes 16,000 bytes, a thread 36 bytes a paper."""
    assert queries_at_once(1000, 16.01) == 1000
    assert queries_at_once(1000, 10_000) == walking.QUERIES_SAVED
    assert queries_at_once(1000, -1) == 1
    assert threads_for(8, 10_000_000, 1100) == 3
    assert threads_for(2, 10_000_000, 10_000) == 2
    assert threads_for(8, 10_000_000, -5) == 1


def test_the_commands_lay_links_out_walk_and_count_what_is_not_linked_or_not_reached(tmp_path):
    """8 and 9 have each other alone, so that 8 reaches 1 of 3; 77 and 78 are in no edge, and 77 is in another shard."""
    edges, links = write_edges(tmp_path, TREE, buckets=2), tmp_path / "links"
    queries = write_queries(tmp_path, {8: "train", 2: "validation", 77: "train", 78: "train"})
    memory = ["--memory-mb", "1000"]
    laid = ["adjacency", *edges, "--settings", '{"weighted": false}', *memory, "--output", links]
    walked = ["walk", "--adjacency", links, "--queries", queries, "--settings", '{"k": 3}', "--shard", "0", "2"]
    walked += [
        *memory,
        "--threads",
        "1",
        *(word for name, path in written(tmp_path).items() for word in (f"--{name}", path)),
    ]
    for command in (laid, walked):
        CliRunner().invoke(app, ["neighbours", *map(str, command)], catch_exceptions=False)
    found = read_rows(tmp_path / "neighbours.parquet")
    assert [row[:3] for row in found] == [(2, 1, 3), (2, 2, 1), (2, 3, 5), (8, 1, 9)]
    assert read_counts(tmp_path) == {NOT_LINKED: 1, NOT_REACHED: 2}


def test_the_same_edges_give_the_same_links_whatever_was_there(tmp_path):
    before = links_of(tmp_path, RINGS, weighted=True)
    build_adjacency(write_edges(tmp_path, TREE), Links(weighted=False), memory_mb=1000, output=before)
    assert not (before / "weights.npy").exists()
    assert open_adjacency(before).ids.tolist() == [1, 2, 3, 4, 5, 8, 9]
