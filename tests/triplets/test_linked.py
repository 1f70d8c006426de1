"""Papers that share an edge with the query: evenly drawn, drawn by weight, or those of the heaviest edges."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import write_rows

from cocite.triplets.picking import NONE

from .blocks import (
    block,
    rows_of,
    sample,
    sampler,
    unserved,
    write_cocitations,
    write_papers,
    write_queries,
    written_sample,
)

PAPERS = st.integers(1, 14)
PAIRS = st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] < ends[1])
COUNTS = st.dictionaries(PAIRS, st.integers(1, 5), min_size=1, max_size=60)


def picked(given_block, pick, count, required=True):
    """The papers of each query, the first picked first."""
    text_filter = "before" if required else "after"
    papers = sampler("linked", pick=pick, per_query=count, text_filter=text_filter).picks(given_block)[0].papers
    rows = zip(given_block.queries.tolist(), papers.tolist(), strict=True)
    return {query: [paper for paper in row if paper != NONE] for query, row in rows}


@given(COUNTS, st.sets(PAPERS, min_size=1), st.sets(PAPERS), st.integers(1, 5), st.booleans())
def test_the_strongest_are_those_of_the_heaviest_edges(tmp_path, counts, queries, texts, count, required):
    path = write_cocitations(tmp_path / "0.parquet", counts)
    found = picked(block(queries, texts, [path]), "strongest", count, required)
    for query in queries:
        near = {sum(pair) - query: weight for pair, weight in counts.items() if query in pair}
        allowed = {paper: weight for paper, weight in near.items() if not required or paper in texts}
        weights = [near[paper] for paper in found[query]]
        assert weights == sorted(allowed.values(), reverse=True)[:count]
        assert set(found[query]) <= set(allowed)
        assert len(set(found[query])) == len(found[query])


@given(COUNTS, st.sets(PAPERS), st.integers(1, 5))
def test_negatives_share_no_edge_with_the_query(tmp_path, counts, texts, count):
    given_block = block(range(1, 15), texts, [write_cocitations(tmp_path / "0.parquet", counts)])
    for pick in ("evenly", "weighted", "strongest"):
        for query, positive, negative, *more in rows_of(sample("linked", given_block, pick=pick, per_query=count)):
            assert tuple(sorted((query, positive))) in counts
            assert tuple(sorted((query, negative))) not in counts
            assert more == [None, None, "easy"]


@pytest.mark.parametrize(("pick", "shares"), [("evenly", (1 / 3, 1 / 3, 1 / 3)), ("weighted", (0.1, 0.3, 0.6))])
def test_a_first_pick_is_drawn_evenly_or_in_proportion_to_the_weights(tmp_path, pick, shares):
    """Of 4,000 queries with three edges each, of weights 1, 3 and 6."""
    queries = range(10, 4010)
    counts = {(other, query): weight for query in queries for other, weight in ((1, 1), (2, 3), (3, 6))}
    path = write_cocitations(tmp_path / "0.parquet", counts)
    found = picked(block(queries, {1, 2, 3}, [path]), pick, 1)
    drawn = Counter(paper for [paper] in found.values())
    assert [drawn[paper] / 4000 for paper in (1, 2, 3)] == pytest.approx(shares, abs=0.03)


def test_the_strength_of_a_pair_is_its_weight_where_the_graph_has_one(tmp_path):
    rows = [(1, 2, 9, 0.1), (1, 3, 5, 0.2), (1, 4, 1, 0.3)]
    path = write_rows(tmp_path / "0.parquet", "cocitations", "paper other count strength", rows)
    assert picked(block([1], {2, 3, 4}, [path]), "strongest", 2) == {1: [4, 3]}


@pytest.mark.parametrize(
    ("pick", "many", "weigh"), [("weighted", 8, lambda other: other), ("strongest", 5000, lambda _: 1)]
)
def test_a_pick_of_all_edges_holds_each_once(tmp_path, pick, many, weigh):
    path = write_cocitations(tmp_path / "0.parquet", {(1, other): weigh(other) for other in range(2, many + 2)})
    [papers] = picked(block([1], range(2, many + 2), [path]), pick, 5000).values()
    assert sorted(papers) == list(range(2, many + 2))


@pytest.mark.parametrize("pick", ["evenly", "weighted", "strongest"])
def test_a_paper_that_is_cited_and_cites_is_picked_once_by_the_larger_weight(tmp_path, pick):
    rows = [(1, 2, 1.0), (1, 3, 3.0), (2, 1, 4.0), (3, 1, 2.0)]
    path = write_rows(tmp_path / "0.parquet", "edges", "source target weight", rows)
    found = picked(block([1], {2, 3}, [path]), pick, 3)[1]
    assert (found if pick == "strongest" else sorted(found)) == [2, 3]


def test_queries_without_an_edge_are_counted(tmp_path):
    path = write_cocitations(tmp_path / "0.parquet", {(1, 2): 1, (3, 9): 1})
    sampled = sample("linked", block([1, 3, 5], {2, 4, 6}, [path]), per_query=1)
    assert unserved(sampled) == {"no edges": 1, "no edge to a paper with a text": 1}
    assert np.unique(sampled.rows["query"].to_numpy()).tolist() == [1]


@given(COUNTS, st.sets(PAPERS, min_size=1), st.sets(PAPERS, min_size=1), st.sets(PAPERS, max_size=4))
def test_all_links_are_pairs_in_both_directions_and_those_of_validation_queries_validate(
    tmp_path, counts, queries, texts, validation
):
    path = write_cocitations(tmp_path / "0.parquet", counts)
    given = replace(block(queries, texts, [path]), validation=np.array(sorted(validation), dtype=np.int64))
    found = sample("links", given)
    ends = [pair for one, other in counts for pair in ((one, other), (other, one))]
    ours = {(query, paper) for query, paper in ends if query in queries}
    expected = {(q, p) for q, p in ours if p in texts and (q in validation or p not in validation)}
    rows = found.rows.to_pylist()
    assert [(row["query"], row["positives"]) for row in rows] == sorted((q, [p]) for q, p in expected)
    assert all(row["negatives"] == [] for row in rows)
    for query in queries:
        of_query = [row["number"] for row in rows if row["query"] == query]
        assert of_query == list(range(1, 1 + len(of_query)))
    assert found.omissions["links with a paper that has no text or is kept out"] == sum(p not in texts for _, p in ours)
    assert sum(unserved(found, "an example").values()) == len(queries) - len({query for query, _ in expected})


def test_a_share_of_the_links_is_drawn_in_both_directions(tmp_path):
    counts = {(query, paper): 1 for query in range(1, 101) for paper in range(101, 141)}
    given = block(range(1, 141), range(1, 141), [write_cocitations(tmp_path / "0.parquet", counts)])

    def drawn(share):
        rows = sample("links", given, share=share).rows
        return set(zip(rows["query"].to_pylist(), (paper for (paper,) in rows["positives"].to_pylist()), strict=True))

    tenth, half = drawn(0.1), drawn(0.5)
    assert {(other, one) for one, other in tenth} == tenth < half < drawn(1)
    assert 700 < len(tenth) < 900
    assert 3800 < len(half) < 4200


def test_every_paper_with_a_text_is_asked_for_all_its_links(tmp_path):
    counts = {(1, 2): 1, (2, 3): 1, (3, 4): 2, (4, 5): 1}
    path = write_cocitations(tmp_path / "cocitations/0.parquet", counts)
    write_queries(tmp_path, {1: "validation", 4: "train", 5: "holdout"})
    write_papers(tmp_path, range(1, 7))
    table, omissions = written_sample(tmp_path, sampler("links"), [path])
    pairs = {"train": [], "validation": []}
    for row in table.to_pylist():
        pairs[row["split"]].append((row["query"], *row["positives"]))
    assert pairs == {"train": [(2, 3), (3, 2), (3, 4), (4, 3)], "validation": [(1, 2)]}
    assert omissions["pairs that end in a validation query, which validates by them"] == 1
