"""Random papers: what is drawn and picked depends on seed, query and paper, and is as random as it should be."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS

from cocite.core.randomness import priorities
from cocite.triplets.picking import NONE, draw, half_bits, offer, permuted, picks

from .blocks import block, rows_of, sample, unserved

IDS = st.sets(st.integers(0, 400))


@given(st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_each_key_permutes_all_places(papers, key):
    sent_to = [permuted(place, np.uint64(key), half_bits(papers), papers) for place in range(papers)]
    assert sorted(sent_to) == list(range(papers))


def test_first_draws_are_spread_evenly_and_pairs_of_them_too():
    keys = priorities(1, "test", np.arange(12_000))
    first, second = ([permuted(place, key, half_bits(4), 4) for key in keys] for place in (0, 1))
    pairs = Counter(zip(first, second, strict=True))
    assert len(pairs) == 12
    # 1,000 expected of each, with a standard deviation of 30.
    assert all(abs(count - 1000) < 150 for count in pairs.values())


@given(IDS, st.sets(st.integers(0, 400), min_size=1, max_size=4), st.integers(1, 5), st.sampled_from(RELABELLINGS))
def test_draws_are_distinct_papers_with_text_but_not_the_query(ids, queries, count, relabel):
    ids, queries = set(map(relabel, ids)), set(map(relabel, queries))
    papers = draw(block(queries, ids), count, "test").papers
    for query, row in zip(sorted(queries), papers.tolist(), strict=True):
        found = [paper for paper in row if paper != NONE]
        assert len(set(found)) == len(found) == min(papers.shape[1], len(ids - {query}))
        assert set(found) <= ids - {query}


@given(st.lists(st.integers(1, 60)), st.sets(st.integers(1, 60)), st.integers(0, 6), st.sampled_from(RELABELLINGS))
def test_the_picks_are_the_papers_of_smallest_hash_whatever_their_order(offered, refused, count, relabel):
    query, ranks = relabel(5), {relabel(paper): 2 * paper for paper in offered}
    offered, refused = list(map(relabel, offered)), set(map(relabel, refused))
    picked = picks(1, count, 7, "test")
    for paper in offered:
        offer(picked, 0, query, paper, ranks[paper], np.array(sorted(refused), dtype=np.int64))
    allowed = sorted(set(offered) - refused)
    hashes = priorities(7, "test", np.full(len(allowed), query), np.array(allowed, dtype=np.int64)).tolist()
    expected = [paper for _, paper in sorted(zip(hashes, allowed, strict=True))][:count]
    assert picked.papers[0].tolist() == expected + [NONE] * (count - len(expected))
    assert picked.ranks[0].tolist()[: len(expected)] == [ranks[paper] for paper in expected]


def test_few_papers_make_few_random_triplets_and_are_shared_out_between_positives_and_negatives():
    sampled = sample("random", block([1], {1, 2, 3, 4, 5}), per_query=9)
    assert len(rows_of(sampled)) == 2
    assert {paper for row in rows_of(sampled) for paper in row[1:3]} == {2, 3, 4, 5}
    assert sampled.omissions["triplets fewer than asked for, of queries with some"] == 7


def test_each_query_with_a_text_is_near_to_itself_and_far_from_random_papers():
    found = sample("cropping", block(range(20), range(5, 100)), negatives=3, shortest=12, longest=40)
    rows = found.rows.to_pylist()
    assert [row["query"] for row in rows] == list(range(5, 20))
    for row in rows:
        assert row["positives"] == [row["query"]]
        assert len(set(row["negatives"])) == 3
        assert row["query"] not in row["negatives"]
        assert set(row["negatives"]) <= set(range(5, 100))
        assert row["negative_kinds"] == ["easy"] * 3
        assert (row["shortest_span"], row["longest_span"], row["number"]) == (12, 40, 1)
    assert unserved(found, of="an example") == {"no text": 5}


def test_without_negatives_and_without_a_longest_span():
    [row] = sample("cropping", block([7], [7, 8]), negatives=0).rows.to_pylist()
    assert row["negatives"] == []
    assert (row["shortest_span"], row["longest_span"]) == (10, None)
