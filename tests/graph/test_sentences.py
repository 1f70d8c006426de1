"""Papers that one sentence cites are paired as often as there are such sentences."""

from collections import Counter
from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.config.graphs import SentenceCounting
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.core.written_ids import text_id

from .conftest import count, left_out, write_queries

PAPERS = st.integers(1, 12)
SENTENCES = st.lists(st.tuples(PAPERS, st.sets(PAPERS, min_size=1, max_size=5)), min_size=1, max_size=30)
SPLITS = st.dictionaries(PAPERS, st.sampled_from(["train", "validation", "holdout", "excluded"]), max_size=6)


def write_contexts(folder, sentences, buckets):
    """Write sentences, each the number of its place in the list, into buckets by the citing paper."""
    for bucket in range(buckets):
        rows = sorted(
            (citing, text_id(f"sentence {number}", None, is_query=True), sorted(cited), f"sentence {number}")
            for number, (citing, cited) in enumerate(sentences)
            if citing % buckets == bucket
        )
        names = {"citing": pa.int64(), "context": pa.int64(), "cited": pa.list_(pa.int64()), "sentence": pa.string()}
        table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=pa.schema(names))
        write_table(folder / f"contexts/{bucket}.parquet", "contexts", table)


def expected(sentences, splits, *, all_pairs, largest):
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
    pairs = expected(sentences, splits, all_pairs=all_pairs, largest=largest)
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
