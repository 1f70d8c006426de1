"""The report says how large the corpus is and how often papers are paired."""

import json
import re

import polars as pl
import pyarrow as pa
import pytest
from tests.papers import papers_table

from cocite.core.tables.files import read_table, write_table
from cocite.report.corpus_statistics import write_corpus_statistics
from cocite.report.figures import draw_pair_counts
from cocite.report.inputs import size_of_corpus


@pytest.fixture
def corpus(tmp_path):
    for bucket, texts in enumerate([{2: ("t", "a"), 4: ("u", None)}, {1: ("v", "b")}]):
        write_table(tmp_path / f"corpus/papers/{bucket}.parquet", "papers", papers_table(texts))
    for bucket, (citing, cited) in enumerate([([2, 4], [1, 1]), ([1], [4])]):
        nothing = {"influential": [False] * len(citing), "intents": pa.array([[]] * len(citing), pa.list_(pa.string()))}
        rows = pa.table({"citing": citing, "cited": cited, **nothing})
        write_table(tmp_path / f"corpus/citations/{bucket}.parquet", "citations", rows)
    queries = pa.table({"corpusid": [1, 2], "split": ["heldout", "train"]})
    write_table(tmp_path / "corpus/queries.parquet", "queries", queries)
    pairs = pa.table({"paper": [1, 1, 2], "other": [2, 4, 4], "count": [1, 3, 1]})
    write_table(tmp_path / "graph/g/cocitations/0.parquet", "cocitations", pairs)
    return tmp_path


def described(results, pairs):
    paths = {"statistics": results / "statistics.parquet", "counts": results / "counts.parquet"}
    write_corpus_statistics(results=results, pairs=json.dumps(pairs), memory_mb=500, threads=1, **paths)
    statistics = read_table(paths["statistics"], "corpus_statistics")
    return pl.DataFrame(statistics), pl.DataFrame(read_table(paths["counts"], "pair_counts"))


def test_papers_texts_citations_and_queries_are_counted(corpus):
    statistics, _ = described(corpus, {"g": "cocitations"})
    assert size_of_corpus(statistics).rows() == [
        ("papers", "3"),
        ("papers with text", "2"),
        ("citations", "3"),
        ("query papers: heldout", "1"),
        ("query papers: train", "1"),
    ]


def test_pairs_are_counted_by_how_often_they_occur(corpus):
    _, counts = described(corpus, {"g": "cocitations"})
    assert counts.select("graph", "count", "pairs").rows() == [("g", 1, 2), ("g", 3, 1)]


def test_pairs_are_drawn_by_how_often_they_occur_at_least(corpus, tmp_path):
    _, counts = described(corpus, {"g": "cocitations"})
    draw_pair_counts(counts, {"g": "cocitations"}, tmp_path / "pairs.svg")
    assert "g (cocitations)" in re.findall(r"<text[^>]*>([^<]+)</text>", (tmp_path / "pairs.svg").read_text())


def test_a_corpus_without_graphs_of_pairs_is_described_as_well(corpus, tmp_path):
    _, counts = described(corpus, {})
    assert len(counts) == 0
    draw_pair_counts(counts, {}, tmp_path / "pairs.svg")
    assert (tmp_path / "pairs.svg").exists()
