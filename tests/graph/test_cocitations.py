"""Co-citations are what a brute-force count says, whatever the buckets."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from cocite.database import connect
from cocite.files import read_table, write_table
from cocite.graph.cocitations import count_cocitations, merge_cocitations

PAPERS = st.integers(1, 12)
CITATIONS = st.sets(st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1]), max_size=60)
SPLITS = st.dictionaries(PAPERS, st.sampled_from(["train", "validation", "holdout"]), max_size=6)


def counted(folder: Path, citations: set, splits: dict, *, pairs: str, buckets: int) -> dict:
    write_queries(folder / "queries.parquet", splits)
    for bucket in range(buckets):
        write_citations(folder / f"citations/{bucket}.parquet", {c for c in citations if c[0] % buckets == bucket})
        count_cocitations(
            citations=folder / f"citations/{bucket}.parquet",
            queries=folder / "queries.parquet",
            pairs=pairs,
            buckets=buckets,
            memory_mb=500,
            threads=2,
            output=folder / f"counted/{bucket}",
        )
    for bucket in range(buckets):
        merge_cocitations(
            counted=[folder / f"counted/{part}" for part in range(buckets)],
            bucket=bucket,
            memory_mb=500,
            threads=2,
            output=folder / f"cocitations/{bucket}.parquet",
        )
    rows = read_table(folder / "cocitations", "cocitations").to_pylist()
    return {(row["paper"], row["other"]): row["count"] for row in rows}


def write_citations(path: Path, citations: set) -> None:
    rows = sorted(citations)
    columns = {
        "citing": pa.array([row[0] for row in rows], pa.int64()),
        "cited": pa.array([row[1] for row in rows], pa.int64()),
        "influential": pa.array([False] * len(rows), pa.bool_()),
        "intents": pa.array([[]] * len(rows), pa.list_(pa.string())),
    }
    write_table(path, "citations", pa.table(columns))


def write_queries(path: Path, splits: dict) -> None:
    ids = sorted(splits)
    columns = {
        "corpusid": pa.array(ids, pa.int64()),
        "split": pa.array([splits[paper] for paper in ids], pa.string()),
    }
    write_table(path, "queries", pa.table(columns))


def by_hand(citations: set, splits: dict, *, pairs: str) -> dict:
    heldout = {paper for paper, split in splits.items() if split == "holdout"}
    queries = set(splits) - heldout
    references: dict[int, set] = {}
    for citing, cited in citations:
        if citing not in heldout and cited not in heldout:
            references.setdefault(citing, set()).add(cited)
    counts: Counter = Counter()
    for cited in references.values():
        if cited & queries:
            counts.update(
                pair for pair in combinations(sorted(cited), 2) if pairs == "all" or queries.intersection(pair)
            )
    return dict(counts)


@settings(max_examples=25, deadline=None)
@given(CITATIONS, SPLITS, st.sampled_from(["query", "all"]), st.sampled_from([1, 2, 3]))
def test_counts_equal_brute_force(tmp_path_factory, citations, splits, pairs, buckets):
    folder = tmp_path_factory.mktemp("graph")
    assert counted(folder, citations, splits, pairs=pairs, buckets=buckets) == by_hand(citations, splits, pairs=pairs)


def test_two_papers_cited_by_three_are_cocited_three_times(tmp_path):
    citations = {(citing, cited) for citing in (7, 8, 9) for cited in (1, 2)} | {(7, 3)}
    found = counted(tmp_path, citations, {1: "train"}, pairs="query", buckets=2)
    assert found == {(1, 2): 3, (1, 3): 1}


def test_a_heldout_paper_neither_joins_nor_makes_a_pair(tmp_path):
    citations = {(9, 1), (9, 2), (9, 3), (8, 1), (8, 2)}
    found = counted(tmp_path, citations, {1: "train", 3: "holdout", 8: "holdout"}, pairs="all", buckets=2)
    assert found == {(1, 2): 1}


@pytest.fixture(scope="module")
def synergy(shared, tmp_path_factory):
    """The distinct, usable citations of synergy, read without the project's own ingest."""
    with connect(memory_mb=1000, threads=2, spill_to=tmp_path_factory.mktemp("spill")) as db:
        rows = db.sql(f"""
            SELECT DISTINCT citingcorpusid, citedcorpusid
            FROM read_json('{shared}/data/releases/synergy/citations/*.gz', format='newline_delimited')
            WHERE citedcorpusid IS NOT NULL AND citingcorpusid IS NOT NULL
        """).fetchnumpy()
    return rows["citingcorpusid"].astype(np.int64), rows["citedcorpusid"].astype(np.int64)


def test_counts_on_synergy_equal_a_sparse_product(synergy, tmp_path):
    citing, cited = synergy
    queries = set(np.unique(cited)[::20].tolist())
    found = counted(
        tmp_path,
        set(zip(citing.tolist(), cited.tolist(), strict=True)),
        dict.fromkeys(queries, "train"),
        pairs="query",
        buckets=3,
    )
    papers, columns = np.unique(cited, return_inverse=True)
    _, rows = np.unique(citing, return_inverse=True)
    matrix = csr_array((np.ones(len(rows), np.int64), (rows, columns)))
    is_query = np.isin(papers, list(queries))
    product = (matrix[:, is_query].T @ matrix).tocoo()
    left, right = papers[is_query][product.row], papers[product.col]
    expected = {
        (min(a, b), max(a, b)): count
        for a, b, count in zip(left.tolist(), right.tolist(), product.data.tolist(), strict=True)
        if a != b
    }
    assert len(found) > 100_000
    assert found == expected
