"""Edges hold the signal in one shape, and no held-out paper."""

import pyarrow as pa
import pytest

from cocite.files import read_table, write_table
from cocite.graph.edges import edges_of_citations, edges_of_cocitations


def edges(path):
    return [tuple(row.values()) for row in read_table(path, "edges").to_pylist()]


@pytest.fixture
def corpus(tmp_path):
    rows = [(1, 2), (1, 9), (2, 1), (3, 1), (4, 3)]
    write_table(
        tmp_path / "citations.parquet",
        "citations",
        pa.table(
            {
                "citing": [row[0] for row in rows],
                "cited": [row[1] for row in rows],
                "influential": [False] * 5,
                "intents": pa.array([[]] * 5, pa.list_(pa.string())),
            }
        ),
    )
    write_table(tmp_path / "queries.parquet", "queries", pa.table({"corpusid": [4], "split": ["holdout"]}))
    return tmp_path


def made(corpus, *, directed, bucket, buckets):
    edges_of_citations(
        citations=[corpus / "citations.parquet"],
        queries=corpus / "queries.parquet",
        directed=directed,
        bucket=bucket,
        buckets=buckets,
        memory_mb=200,
        threads=1,
        output=corpus / "edges.parquet",
    )
    return edges(corpus / "edges.parquet")


def test_directed_edges_lead_from_citing_to_cited(corpus):
    assert made(corpus, directed=True, bucket=0, buckets=1) == [(1, 2, 1.0), (1, 9, 1.0), (2, 1, 1.0), (3, 1, 1.0)]


def test_papers_that_cite_each_other_have_one_undirected_edge(corpus):
    assert made(corpus, directed=False, bucket=0, buckets=1) == [(1, 2, 1.0), (1, 3, 1.0), (1, 9, 1.0)]


def test_buckets_of_edges_are_by_source(corpus):
    assert made(corpus, directed=True, bucket=0, buckets=2) == [(2, 1, 1.0)]


def test_rare_cocitations_make_no_edge(tmp_path):
    pairs = pa.table({"paper": [1, 1, 2], "other": [2, 3, 3], "count": [1, 4, 2]})
    write_table(tmp_path / "cocitations.parquet", "cocitations", pairs)
    edges_of_cocitations(cocitations=tmp_path / "cocitations.parquet", min_count=2, output=tmp_path / "edges.parquet")
    assert edges(tmp_path / "edges.parquet") == [(1, 3, 4.0), (2, 3, 2.0)]
