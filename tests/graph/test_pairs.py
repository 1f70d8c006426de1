"""Counts and strengths of pairs are what their definitions say, whatever the buckets, the pieces and the signal."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from typing import get_args
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.graph.conftest import pair_counting
from tests.large_ids import RELABELLINGS, as_they_are, spread_over_63_bits

from cocite.config.graphs import SentenceCounting, Strength
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.graph import counting
from cocite.graph import pairs as pairs_module
from cocite.graph.pairs import count_pairs

from .conftest import SENTENCES, count, left_out, shard, write_citations, write_contexts, write_queries

Citations = set[tuple[int, int]]
Strengths = dict[tuple[int, int], tuple[int, float]]


def groups_of(citations: Citations, splits: dict[int, str], signal: str, largest: int | None) -> list[set[int]]:
    """The papers that each paper cites, or that cite each paper, without those that are kept out."""
    kept_out = {paper for paper, split in splits.items() if split in ("holdout", "excluded")}
    groups: dict[int, set[int]] = defaultdict(set)
    for citing, cited in citations:
        group, member = (citing, cited) if signal == "cocitation" else (cited, citing)
        groups[group].add(member)
    left = [members - kept_out for name, members in groups.items() if name not in kept_out]
    return [members for members in left if members and (largest is None or len(members) <= largest)]


def pairs_of(
    citations: Citations, splits: dict[int, str], *, signal: str, pairs: str, strength: str, largest: int | None
) -> Strengths:
    """Count and strength of each pair."""
    queries = {paper for paper, split in splits.items() if split in ("train", "validation")}
    groups = groups_of(citations, splits, signal, largest)
    anchored = [members for members in groups if members & queries]
    counts: Counter = Counter()
    shares: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for members in anchored:
        for pair in combinations(sorted(members), 2):
            if pairs == "all" or queries.intersection(pair):
                counts[pair] += 1
                shares[pair] += Fraction(1, len(members) - 1)
    universe = anchored if pairs == "all" else groups
    occurrences = Counter(paper for members in universe for paper in members)
    measured = {}
    for (one, other), number in counts.items():
        ends = occurrences[one], occurrences[other]
        value = {
            "count": float(number),
            "cosine": number / math.sqrt(ends[0] * ends[1]),
            "jaccard": number / (sum(ends) - number),
            "association": number / (ends[0] * ends[1]),
            "pmi": math.log2(number * len(universe)) - math.log2(ends[0]) - math.log2(ends[1]),
            "fractional": float(shares[one, other]),
        }[strength]
        measured[one, other] = (number, value)
    return measured


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


def citations_in(written):
    """`9>1,2` is paper 9 that cites 1 and 2."""
    groups = [group.split(">") for group in written.split()]
    return {(int(citing), int(paper)) for citing, cited in groups for paper in cited.split(",")}


FOUR = "7>1,2,3 8>1,2 9>1,2 6>2,3,4,5"
KEPT_OUT = "citations by or of papers that are kept out"
ALONE = "queries that no paper cites together with another"
TOO_MANY = {"papers with more references than max_references": 2, "references of such papers": 7}


@pytest.mark.parametrize(
    ("citations", "splits", "asked", "expected", "left"),
    [
        (FOUR, {1: "train"}, {"pairs": "all"}, {(1, 2): 3, (1, 3): 1, (2, 3): 1}, {}),
        (FOUR, {1: "train"}, {"max_references": 2}, {(1, 2): 2}, TOO_MANY),
        ("9>1,2,3 8>1,2", {1: "train", 3: "holdout", 8: "holdout"}, {"pairs": "all"}, {(1, 2): 1}, {KEPT_OUT: 3}),
        ("9>1,2,3 8>1,2", {1: "train", 3: "excluded", 8: "excluded"}, {"pairs": "all"}, {(1, 2): 1}, {KEPT_OUT: 3}),
        ("9>1,2 8>3", {1: "train", 3: "train", 4: "validation"}, {}, {(1, 2): 1}, {ALONE: 2}),
        ("9>1,2", {1: "train", 2**63 - 1: "excluded"}, {}, {(1, 2): 1}, {}),
    ],
    ids=["of papers that cite a query", "max_references", "holdout", "excluded", "alone", "a number that is no paper"],
)
def test_pairs_are_those_of_papers_that_are_asked_for_and_the_others_are_counted(
    tmp_path, citations, splits, asked, expected, left
):
    shard(tmp_path, citations_in(citations), splits, 2)
    found = count(tmp_path, pair_counting(signal="cocitation", **asked), 2)
    assert found == {pair: (number, number) for pair, number in expected.items()}
    assert read_table(tmp_path / "cocitations", "cocitations").column_names == ["paper", "other", "count"]
    assert {reason: number for reason, number in left_out(tmp_path).items() if number} == left


@pytest.fixture
def corpus(tmp_path):
    shard(tmp_path, citations_in(FOUR), {1: "train"}, 2)
    return tmp_path


@pytest.mark.parametrize(("pairs", "further"), [("query", {}), ("all", {(7, 8): (1, 1)})])
def test_the_twins_of_a_query_are_paired_as_it_is(tmp_path, pairs, further):
    shard(tmp_path, citations_in("20>2,7,8 21>2,7 22>1,8 23>3,9"), {1: "train"}, 2)
    write_queries(tmp_path / "queries.parquet", {1: "train", 2: "twin", 3: "twin"}, {2: 1, 3: 5})
    found = count(tmp_path, pair_counting(signal="cocitation", pairs=pairs), 2)
    assert found == {(1, 8): (1, 1), (2, 7): (2, 2), (2, 8): (1, 1)} | further


@pytest.mark.parametrize(
    ("citations", "limit", "message"),
    [
        ("9>1 8>2", {}, r"no pair for the graph, only queries that no paper cites together with another\.$"),
        ("9>1,2,3", {"max_references": 2}, r"with another, among groups of at most 2 papers\.$"),
    ],
)
def test_a_graph_without_a_pair_is_refused_with_its_limit(tmp_path, citations, limit, message):
    shard(tmp_path, citations_in(citations), {1: "train"}, 1)
    with pytest.raises(InputError, match=message):
        count(tmp_path, pair_counting(signal="cocitation", **limit), 1)


def test_a_query_that_is_listed_twice_counts_once(corpus):
    pq.write_table(pa.table({"corpusid": [1, 1, 5], "split": ["train"] * 3}), corpus / "queries.parquet")
    found = count(corpus, pair_counting(signal="cocitation"), 2)
    assert found == {(1, 2): (3, 3), (1, 3): (1, 1), (2, 5): (1, 1), (3, 5): (1, 1), (4, 5): (1, 1)}
    pq.write_table(pa.table({"corpusid": [1, 4444, 4444], "split": ["train"] * 3}), corpus / "queries.parquet")
    count(corpus, pair_counting(signal="cocitation"), 2)
    assert left_out(corpus)[ALONE] == 1


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
    said = rf"{file}\.parquet: contains the corpus id -1; ids must be between 0 and 9,223,"
    with pytest.raises(InputError, match=said):
        count(tmp_path, pair_counting(signal="cocitation"), 1)


@pytest.mark.parametrize("largest", [2**29, 2**31, 2**32, 2**53 + 1, 2**63 - 1])
def test_the_largest_ids_are_counted_and_may_be_excluded(tmp_path, largest):
    shard(tmp_path, {(largest, largest - 1), (largest, 0)}, {largest - 1: "train", largest - 2: "excluded"}, 1)
    assert count(tmp_path, pair_counting(signal="cocitation"), 1) == {(0, largest - 1): (1, 1)}


def pairs_of_sentences(sentences, splits, *, all_pairs, largest):
    """Counts by the definition: a loop over the sentences of papers that are not kept out."""
    kept_out = {paper for paper, split in splits.items() if split in ("holdout", "excluded")}
    queries = {paper for paper, split in splits.items() if split in ("train", "validation")}
    counts: Counter = Counter()
    for citing, cited in sentences:
        members = cited - kept_out
        if citing not in kept_out and members & queries and (largest is None or len(members) <= largest):
            counts.update(pair for pair in combinations(sorted(members), 2) if all_pairs or queries.intersection(pair))
    return counts


@given(SENTENCES, SPLITS, st.booleans(), st.none() | st.integers(2, 4), st.integers(1, 3))
def test_pairs_of_sentences_equal_a_loop_over_them(tmp_path_factory, sentences, splits, all_pairs, largest, buckets):
    folder = tmp_path_factory.mktemp("graph")
    write_queries(folder / "queries.parquet", splits)
    write_contexts(folder, sentences, buckets)
    limit = {"max_papers": largest} if largest else {}
    asked = SentenceCounting(signal="sentence-cocitation", pairs="all" if all_pairs else "query", **limit)
    pairs = pairs_of_sentences(sentences, splits, all_pairs=all_pairs, largest=largest)
    if pairs:
        assert count(folder, asked, buckets) == {pair: (number, number) for pair, number in pairs.items()}
    else:
        with pytest.raises(InputError, match="queries that no sentence cites together with another paper"):
            count(folder, asked, buckets)


def test_a_sentence_counts_once_for_each_paper_that_it_is_of_and_what_is_left_out_is_counted(tmp_path):
    splits = {1: "train", 8: "holdout", 9: "excluded"}
    sentences = [(5, {1, 2}), (6, {1, 2}), (6, {1, 2, 3}), (8, {1, 2}), (7, {1, 9}), (7, {1, 2, 3, 4})]
    write_queries(tmp_path / "queries.parquet", splits)
    write_contexts(tmp_path, sentences, 2)
    asked = SentenceCounting(signal="sentence-cocitation", max_papers=3)
    assert count(tmp_path, asked, 2) == {(1, 2): (3, 3), (1, 3): (1, 1)}
    assert left_out(tmp_path) == {
        "citations by or of papers that are kept out": 3,
        "sentences that cite more papers than max_papers": 1,
        "citations in such sentences": 4,
        "queries that no sentence cites together with another paper": 0,
    }


def spilt(path, counts, pairs_of_a_block):
    """A run with these counts, in blocks."""
    pairs, blocks = sorted(counts), []
    for first in range(0, len(pairs), pairs_of_a_block):
        of_block = pairs[first : first + pairs_of_a_block]
        numbers = np.array([counts[pair] for pair in of_block])
        blocks.append((*np.array(of_block, np.int64).T.copy(), numbers.astype(np.int32), numbers * 2**40))
    counting.spill_run(path, blocks)
    return path


SIDE_BY_SIDE = counting.RUNS_SIDE_BY_SIDE


@pytest.mark.parametrize("number", [1, 2, SIDE_BY_SIDE, SIDE_BY_SIDE + 1, 5 * SIDE_BY_SIDE + 3])
@pytest.mark.parametrize("relabel", RELABELLINGS)
def test_the_counts_of_a_pair_in_many_runs_are_added(tmp_path, number, relabel):
    drawn = np.random.default_rng(number).integers(1, 9, (number, 20, 3)).tolist()
    runs = [{(relabel(one), relabel(one + more)): times for one, more, times in run} for run in drawn]
    expected = sum((Counter(run) for run in runs), Counter())
    merged = counting.merge([spilt(tmp_path / f"{name}.arrow", run, 3) for name, run in enumerate(runs)])
    papers, others, numbers, shares = (np.concatenate(column).tolist() for column in zip(*merged, strict=True))
    assert list(zip(papers, others, numbers, strict=True)) == [(*pair, expected[pair]) for pair in sorted(expected)]
    assert shares == [expected[pair] * 2**40 for pair in sorted(expected)]


def test_no_more_than_the_longer_runs_stay_on_disk(tmp_path):
    runs = [spilt(tmp_path / f"{name}.arrow", {(1, 2 + name): 1}, 1) for name in range(3 * SIDE_BY_SIDE)]
    assert len(next(counting.merge(runs))[0]) > 0
    assert len(list(tmp_path.iterdir())) == 3
