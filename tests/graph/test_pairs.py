"""Counts and strengths of pairs are what their definitions say, whatever the buckets and the pieces."""

from typing import get_args
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.graph.conftest import pair_counting
from tests.large_ids import RELABELLINGS, as_they_are, spread_over_63_bits

from cocite.config.graphs import Strength
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.graph import counting
from cocite.graph import pairs as pairs_module
from cocite.graph.pairs import count_pairs

from .brute_force import pairs_of
from .conftest import count, left_out, shard, write_citations, write_queries

PAPERS = st.integers(1, 14)
CITATIONS = st.sets(st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1]), min_size=1, max_size=80)
SPLITS = st.dictionaries(PAPERS, st.sampled_from(["train", "validation", "holdout", "excluded"]), max_size=6)
IDS = st.sampled_from(RELABELLINGS)
SIGNALS = st.sampled_from(["cocitation", "coupling"])
LIMITS = {"cocitation": "max_references", "coupling": "max_citations"}


def asked_for(signal, pairs, strength, largest):
    limit = {LIMITS[signal]: largest} if largest else {}
    return pair_counting(signal=signal, pairs=pairs, strength=strength, **limit)


def equal_brute_force(folder, citations, splits, relabel, signal, pairs, strength, largest, buckets):
    citations = {(relabel(citing), relabel(cited)) for citing, cited in citations}
    splits = {relabel(paper): split for paper, split in splits.items()}
    expected = pairs_of(citations, splits, signal=signal, pairs=pairs, strength=strength, largest=largest)
    shard(folder, citations, splits, buckets)
    if not expected:
        with pytest.raises(InputError, match="has no pair for the graph"):
            count(folder, asked_for(signal, pairs, strength, largest), buckets)
        return
    found = count(folder, asked_for(signal, pairs, strength, largest), buckets)
    assert {pair: number for pair, (number, _) in found.items()} == {pair: n for pair, (n, _) in expected.items()}
    for pair, (_, value) in expected.items():
        assert found[pair][1] == pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("strength", get_args(Strength))
@settings(max_examples=8)
@example({(1, 2), (3, 2), (4, 2)}, {1: "holdout", 3: "train"}, as_they_are, "coupling", "query", 2, 1)
@example({(2, 1), (2, 3), (2, 4)}, {1: "holdout", 3: "train"}, as_they_are, "cocitation", "query", 2, 1)
@given(
    CITATIONS, SPLITS, IDS, SIGNALS, st.sampled_from(["query", "all"]), st.none() | st.integers(2, 5), st.integers(1, 3)
)
def test_pairs_equal_brute_force(
    tmp_path_factory, strength, citations, splits, relabel, signal, pairs, largest, buckets
):
    folder = tmp_path_factory.mktemp("graph")
    equal_brute_force(folder, citations, splits, relabel, signal, pairs, strength, largest, buckets)


PIECES = {(9, 1), (9, 2), (9, 3), (8, 1), (8, 2), (7, 1), (7, 2)}, {1: "train"}


@settings(max_examples=15)
@given(
    CITATIONS, SPLITS, IDS, SIGNALS, st.sampled_from(["query", "all"]), st.sampled_from(["count", "fractional", "pmi"])
)
@example(*PIECES, as_they_are, "cocitation", "all", "fractional")
@example(*PIECES, spread_over_63_bits, "cocitation", "all", "fractional")
def test_pairs_of_many_small_pieces_equal_brute_force(
    tmp_path_factory, citations, splits, relabel, signal, pairs, strength
):
    folder = tmp_path_factory.mktemp("graph")
    with (
        mock.patch.object(pairs_module, "ROWS_READ", 3),
        mock.patch.object(counting, "RUNS_AT_ONCE", 2),
        mock.patch.object(counting, "PAIRS_AT_ONCE", 1),
    ):
        equal_brute_force(folder, citations, splits, relabel, signal, pairs, strength, None, 2)


@pytest.fixture
def corpus(tmp_path):
    """Papers 7, 8 and 9 cite 1 and 2; 7 cites 3 as well, and 6 cites 2, 3, 4 and 5."""
    citations = {(citing, cited) for citing in (7, 8, 9) for cited in (1, 2)} | {(7, 3)}
    citations |= {(6, cited) for cited in (2, 3, 4, 5)}
    shard(tmp_path, citations, {1: "train"}, 2)
    return tmp_path


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [("query", {(1, 2): (3, 3), (1, 3): (1, 1)}), ("all", {(1, 2): (3, 3), (1, 3): (1, 1), (2, 3): (1, 1)})],
)
def test_all_pairs_are_those_of_the_papers_that_cite_a_query(corpus, pairs, expected):
    assert count(corpus, pair_counting(signal="cocitation", pairs=pairs), 2) == expected
    assert read_table(corpus / "cocitations", "cocitations").column_names == ["paper", "other", "count"]


@pytest.mark.parametrize("split", ["holdout", "excluded"])
def test_a_paper_that_is_kept_out_neither_joins_nor_makes_a_pair(tmp_path, split):
    citations = {(9, 1), (9, 2), (9, 3), (8, 1), (8, 2)}
    shard(tmp_path, citations, {1: "train", 3: split, 8: split}, 2)
    assert count(tmp_path, pair_counting(signal="cocitation", pairs="all"), 2) == {(1, 2): (1, 1)}
    assert left_out(tmp_path)["citations by or of papers that are kept out"] == 3


@pytest.mark.parametrize(("pairs", "further"), [("query", {}), ("all", {(7, 8): (1, 1)})])
def test_the_twins_of_a_query_are_paired_as_it_is(tmp_path, pairs, further):
    shard(tmp_path, {(20, 2), (20, 7), (20, 8), (21, 2), (21, 7), (22, 1), (22, 8), (23, 3), (23, 9)}, {1: "train"}, 2)
    write_queries(tmp_path / "queries.parquet", {1: "train", 2: "twin", 3: "twin"}, {2: 1, 3: 5})
    found = count(tmp_path, pair_counting(signal="cocitation", pairs=pairs), 2)
    assert found == {(1, 8): (1, 1), (2, 7): (2, 2), (2, 8): (1, 1)} | further


def test_a_number_that_is_no_paper_may_be_excluded_whatever_its_size(tmp_path):
    shard(tmp_path, {(9, 1), (9, 2)}, {1: "train", 2**63 - 1: "excluded"}, 1)
    assert count(tmp_path, pair_counting(signal="cocitation"), 1) == {(1, 2): (1, 1)}


def test_papers_with_too_many_references_are_dropped_and_counted(corpus):
    found = count(corpus, pair_counting(signal="cocitation", max_references=2), 2)
    assert found == {(1, 2): (2, 2)}
    dropped = left_out(corpus)
    assert dropped["papers with more references than max_references"] == 2
    assert dropped["references of such papers"] == 7


def test_a_query_that_is_cited_alone_is_counted(tmp_path):
    shard(tmp_path, {(9, 1), (9, 2), (8, 3)}, {1: "train", 3: "train", 4: "validation"}, 2)
    assert count(tmp_path, pair_counting(signal="cocitation"), 2) == {(1, 2): (1, 1)}
    assert left_out(tmp_path)["queries that no paper cites together with another"] == 2


@pytest.mark.parametrize(
    ("citations", "limit", "message"),
    [
        (
            {(9, 1), (8, 2)},
            {},
            r"no pair for the graph, only queries that no paper cites together with another\.$",
        ),
        ({(9, 1), (9, 2), (9, 3)}, {"max_references": 2}, r"with another, among groups of at most 2 papers\.$"),
    ],
)
def test_a_graph_without_a_pair_is_refused_with_its_limit(tmp_path, citations, limit, message):
    shard(tmp_path, citations, {1: "train"}, 1)
    with pytest.raises(InputError, match=message):
        count(tmp_path, pair_counting(signal="cocitation", **limit), 1)


def test_a_query_that_is_listed_twice_counts_once(corpus):
    pq.write_table(pa.table({"corpusid": [1, 1, 5], "split": ["train"] * 3}), corpus / "queries.parquet")
    found = count(corpus, pair_counting(signal="cocitation"), 2)
    assert found == {(1, 2): (3, 3), (1, 3): (1, 1), (2, 5): (1, 1), (3, 5): (1, 1), (4, 5): (1, 1)}
    pq.write_table(pa.table({"corpusid": [1, 4444, 4444], "split": ["train"] * 3}), corpus / "queries.parquet")
    count(corpus, pair_counting(signal="cocitation"), 2)
    assert left_out(corpus)["queries that no paper cites together with another"] == 1


def test_a_bucket_that_is_missing_is_refused(corpus):
    (corpus / "citations/1.parquet").unlink()
    with pytest.raises(InputError, match=r"citations/1\.parquet does not exist"):
        count(corpus, pair_counting(signal="cocitation"), 2)


def test_too_few_buckets_are_refused(corpus):
    tables, written = [corpus / "citations/0.parquet"], {"output": corpus / "0", "omissions": corpus / "omissions"}
    asked = {"bucket": 0, "buckets": 2, "memory_mb": 500}
    with pytest.raises(InputError, match="there are 2 buckets, but 1 are given"):
        count_pairs(tables, corpus / "queries.parquet", pair_counting(signal="cocitation"), **asked, **written)


@pytest.mark.parametrize("place", ["citing", "cited", "query"])
def test_a_negative_id_is_refused_and_its_file_is_named(tmp_path, place):
    ids = {"citing": 9, "cited": 1, "query": 1, place: -1}
    write_citations(tmp_path / "citations/0.parquet", {(ids["citing"], ids["cited"]), (ids["citing"], 2)})
    write_queries(tmp_path / "queries.parquet", {ids["query"]: "train"})
    file = "queries" if place == "query" else "citations/0"
    with pytest.raises(
        InputError, match=rf"{file}\.parquet: contains the corpus id -1; ids must be between 0 and 9,223,"
    ):
        count(tmp_path, pair_counting(signal="cocitation"), 1)


@pytest.mark.parametrize("largest", [2**29, 2**31, 2**32, 2**53 + 1, 2**63 - 1])
def test_the_largest_ids_are_counted(tmp_path, largest):
    shard(tmp_path, {(largest, largest - 1), (largest, 0)}, {largest - 1: "train"}, 1)
    assert count(tmp_path, pair_counting(signal="cocitation"), 1) == {(0, largest - 1): (1, 1)}
