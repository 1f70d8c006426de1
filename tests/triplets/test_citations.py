"""SPECTER's sampling holds its definition on any citation graph."""

import numpy as np
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.files import write_table
from cocite.triplets.citations import CitationSettings, sample_from_citations

PAPERS = st.integers(1, 14)
CITATIONS = st.sets(st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1]), min_size=1, max_size=70)


def write_edges(folder, citations):
    rows = sorted(citations)
    columns = {
        "source": pa.array([row[0] for row in rows], pa.int64()),
        "target": pa.array([row[1] for row in rows], pa.int64()),
        "weight": pa.array([1.0] * len(rows), pa.float32()),
    }
    write_table(folder / "0.parquet", "edges", pa.table(columns))
    return folder


def sample(folder, asked, *, pool=None, per_query=5, easy=3, seed=1):
    queries = pl.DataFrame({"query": sorted(asked), "split": ["train"] * len(asked)})
    chosen = CitationSettings(per_query=per_query, easy=easy)
    return sample_from_citations(folder, queries, np.arange(1, 15) if pool is None else pool, chosen, seed)


@settings(max_examples=40, deadline=None)
@given(CITATIONS, st.sets(PAPERS, min_size=1))
def test_positives_are_cited_and_hard_negatives_are_two_citations_away(tmp_path_factory, citations, asked):
    folder = write_edges(tmp_path_factory.mktemp("edges"), citations)
    cites = {paper: {cited for citing, cited in citations if citing == paper} for paper in range(1, 15)}
    triplets = sample(folder, asked).triplets
    assert not triplets.select("query", "negative").is_duplicated().any()
    for row in triplets.iter_rows(named=True):
        query, positive, negative = row["query"], row["positive"], row["negative"]
        assert positive in cites[query]
        assert negative not in cites[query] | {query}
        if row["negative_kind"] == "hard":
            assert any(negative in cites[cited] for cited in cites[query])


def test_a_query_with_many_citations_has_two_hard_and_three_easy_negatives(tmp_path):
    citations = {(1, cited) for cited in range(2, 9)} | {(2, 10), (2, 11), (3, 12)}
    triplets = sample(write_edges(tmp_path, citations), {1}).triplets
    assert sorted(triplets["negative_kind"]) == ["easy", "easy", "easy", "hard", "hard"]
    assert triplets["positive"].n_unique() == 5


def test_a_query_that_cites_nothing_is_counted(tmp_path):
    sampled = sample(write_edges(tmp_path, {(1, 2), (2, 3)}), {1, 13})
    assert sampled.omissions["queries that cite no paper with text"] == 1
    assert set(sampled.triplets["query"]) == {1}


def test_cited_papers_without_text_are_no_positives(tmp_path):
    sampled = sample(write_edges(tmp_path, {(1, 2), (1, 3), (2, 4)}), {1}, pool=np.array([1, 3, 4, 9, 10]))
    assert set(sampled.triplets["positive"]) == {3}
    assert sampled.omissions["citations of queries to papers without text"] == 1


def test_a_querys_triplets_do_not_depend_on_other_queries(tmp_path):
    citations = {(query, query + step) for query in (1, 2, 3) for step in (1, 2, 3)} | {(4, 7), (5, 8), (6, 9)}
    folder = write_edges(tmp_path, citations)
    together = sample(folder, {1, 2, 3}).triplets.filter(pl.col("query") == 2)
    assert together.equals(sample(folder, {2}).triplets)
