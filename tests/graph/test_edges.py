"""Edges hold the signal in one shape, and no paper that is kept out."""

import math

import pyarrow as pa
import pytest

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.graph.edges import edges_of_citations, edges_of_pairs

from .conftest import left_out, shard, shard_by_cited


def edges(path):
    return [(row["source"], row["target"], row["weight"]) for row in read_table(path, "edges").to_pylist()]


def made(folder, *, directed, buckets=1):
    """The edges of papers of whom 4, which cites, is held out, and 6, which is cited, is excluded."""
    citations = {(1, 2), (1, 6), (1, 9), (2, 1), (3, 1), (4, 3), (7, 3), (9, 7)}
    shard(folder, citations, {4: "holdout", 6: "excluded"}, buckets)
    shard_by_cited(folder, buckets)
    for bucket in range(buckets):
        edges_of_citations(
            citations=folder / f"citations/{bucket}.parquet",
            by_cited=None if directed else folder / f"citations_by_cited/{bucket}.parquet",
            queries=folder / "queries.parquet",
            bucket=bucket,
            buckets=buckets,
            memory_mb=300,
            threads=1,
            output=folder / f"edges/{bucket}.parquet",
        )
    return sorted(edges(folder / "edges"))


def weighed(folder, columns, *, min_count=1):
    write_table(folder / "cocitations.parquet", "cocitations", pa.table(columns))
    edges_of_pairs(
        pairs=folder / "cocitations.parquet",
        table="cocitations",
        min_count=min_count,
        output=folder / "edges.parquet",
        omissions=folder / "omissions" / "0.parquet",
    )
    return edges(folder / "edges.parquet")


@pytest.mark.parametrize("buckets", [1, 3])
def test_directed_edges_lead_from_citing_to_cited(tmp_path, buckets):
    expected = [(1, 2, 1.0), (1, 9, 1.0), (2, 1, 1.0), (3, 1, 1.0), (7, 3, 1.0), (9, 7, 1.0)]
    assert made(tmp_path, directed=True, buckets=buckets) == expected


def test_directed_edges_alone_have_the_intents_of_their_citations(tmp_path):
    intents = {(1, 2): ["background", "result"], (2, 1): [], (4, 3): ["result"]}
    shard(tmp_path, intents, {4: "holdout"}, 1, intents=intents)
    shard_by_cited(tmp_path, 1)
    for by_cited in (None, tmp_path / "citations_by_cited/0.parquet"):
        paths = {"citations": tmp_path / "citations/0.parquet", "by_cited": by_cited, "output": tmp_path / "edges"}
        numbers = {"bucket": 0, "buckets": 1, "memory_mb": 300, "threads": 1}
        edges_of_citations(queries=tmp_path / "queries.parquet", **paths, **numbers)
        rows = read_table(tmp_path / "edges", "edges").to_pylist()
        if by_cited is None:
            found = {(row["source"], row["target"]): row["intents"] for row in rows}
            assert found == {(1, 2): ["background", "result"], (2, 1): []}
        else:
            assert [set(row) for row in rows] == [{"source", "target", "weight"}]


@pytest.mark.parametrize("buckets", [1, 2, 3])
def test_papers_that_cite_each_other_have_one_undirected_edge(tmp_path, buckets):
    expected = [(1, 2, 1.0), (1, 3, 1.0), (1, 9, 1.0), (3, 7, 1.0), (7, 9, 1.0)]
    assert made(tmp_path, directed=False, buckets=buckets) == expected


def test_buckets_of_edges_are_by_source(tmp_path):
    made(tmp_path, directed=False, buckets=2)
    assert edges(tmp_path / "edges" / "1.parquet") == [
        (1, 2, 1.0),
        (1, 3, 1.0),
        (1, 9, 1.0),
        (3, 7, 1.0),
        (7, 9, 1.0),
    ]
    assert edges(tmp_path / "edges" / "0.parquet") == []


def test_rare_pairs_make_no_edge_and_are_counted(tmp_path):
    pairs = {"paper": [1, 1, 2], "other": [2, 3, 3], "count": [1, 4, 2]}
    assert weighed(tmp_path, pairs, min_count=2) == [(1, 3, 4.0), (2, 3, 2.0)]
    assert left_out(tmp_path)["pairs that occur less often than min_count"] == 1


def test_a_strength_is_the_weight_and_one_of_zero_or_less_makes_no_edge(tmp_path):
    pairs = {"paper": [1, 1, 2, 2], "other": [2, 3, 3, 4], "count": [1, 4, 2, 2], "strength": [9.0, 0.5, 0.0, -1.0]}
    assert weighed(tmp_path, pairs, min_count=2) == [(1, 3, 0.5)]
    assert left_out(tmp_path) == {
        "pairs that occur less often than min_count": 1,
        "pairs whose strength is not above 0": 2,
    }


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_strength_that_is_no_finite_number_is_refused(tmp_path, wrong):
    with pytest.raises(InputError, match=r"cocitations\.parquet: holds a strength that is not a finite number"):
        weighed(tmp_path, {"paper": [1], "other": [2], "count": [1], "strength": [wrong]})


def test_without_a_pair_there_is_no_edge(tmp_path):
    ids = pa.array([], pa.int64())
    assert weighed(tmp_path, {"paper": ids, "other": ids, "count": ids}) == []
