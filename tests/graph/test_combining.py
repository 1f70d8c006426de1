"""Combinations of graphs are weighted sums of their edges."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.config.graphs import Combination
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.graph.edges import combine_graphs

PAIRS = st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda ends: ends[0] < ends[1])
EDGES = st.dictionaries(PAIRS, st.floats(0.015625, 1000).map(np.float32).map(float), max_size=10)
FACTORS = st.floats(0.01, 10)


def write_edges(folder, edges, buckets=1):
    for bucket in range(buckets):
        rows = sorted((*pair, weight) for pair, weight in edges.items() if pair[0] % buckets == bucket)
        columns = [pa.array([row[column] for row in rows]) for column in range(3)]
        types = (pa.int64(), pa.int64(), pa.float32())
        arrays = [column.cast(type_) for column, type_ in zip(columns, types, strict=True)]
        write_table(folder / f"{bucket}.parquet", "edges", pa.table(arrays, names=["source", "target", "weight"]))


def combined(folder, graphs, factors, *, normalise="none", buckets=1):
    for name, edges in graphs.items():
        write_edges(folder / name / "edges", edges, buckets)
    for bucket in range(buckets):
        combine_graphs(
            [folder / name / "edges" for name in reversed(graphs)],
            Combination(of=factors, normalise=normalise),
            bucket=bucket,
            memory_mb=300,
            threads=1,
            output=folder / f"combined/{bucket}.parquet",
        )
    rows = read_table(folder / "combined", "edges").to_pylist()
    return {(row["source"], row["target"]): row["weight"] for row in rows}


@settings(max_examples=15)
@given(st.tuples(EDGES, EDGES, EDGES), st.tuples(FACTORS, FACTORS, FACTORS), st.sampled_from(["none", "max"]))
def test_a_combination_equals_brute_force(tmp_path_factory, edges, factors, normalise):
    graphs = dict(zip("abc", edges, strict=True))
    if normalise == "max":
        graphs = {name: edges or {(1, 2): 1.0} for name, edges in graphs.items()}
    expected: defaultdict[tuple[int, int], float] = defaultdict(float)
    for factor, weights in zip(factors, graphs.values(), strict=True):
        largest = max(weights.values()) if normalise == "max" else 1.0
        for pair, weight in weights.items():
            expected[pair] += factor * weight / largest
    folder = tmp_path_factory.mktemp("graph")
    found = combined(folder, graphs, dict(zip("abc", factors, strict=True)), normalise=normalise, buckets=2)
    assert found.keys() == expected.keys()
    for pair, weight in expected.items():
        assert found[pair] == pytest.approx(weight, rel=1e-6)


def test_the_weights_of_an_edge_are_multiplied_and_added(tmp_path):
    graphs = {"cocitation": {(1, 2): 4.0, (2, 3): 1.0}, "links": {(1, 2): 1.0, (1, 4): 1.0}}
    assert combined(tmp_path, graphs, {"cocitation": 1.0, "links": 0.5}) == {(1, 2): 4.5, (1, 4): 0.5, (2, 3): 1.0}


def test_normalised_by_the_largest_the_strongest_edge_of_each_graph_weighs_its_factor(tmp_path):
    graphs = {"cocitation": {(1, 2): 4.0, (2, 3): 1.0}, "links": {(1, 4): 2.0}}
    found = combined(tmp_path, graphs, {"cocitation": 1.0, "links": 0.5}, normalise="max")
    assert found == {(1, 2): 1.0, (1, 4): 0.5, (2, 3): 0.25}


def test_a_graph_without_an_edge_has_no_largest(tmp_path):
    with pytest.raises(InputError, match="links/edges: the graph has no edges, so there is no largest"):
        combined(
            tmp_path, {"cocitation": {(1, 2): 4.0}, "links": {}}, {"cocitation": 1.0, "links": 1.0}, normalise="max"
        )


def test_a_graph_whose_edges_are_not_given_is_named(tmp_path):
    with pytest.raises(InputError, match="no folder of edges is given for the graph 'links'"):
        combined(tmp_path, {"cocitation": {(1, 2): 4.0}}, {"cocitation": 1.0, "links": 1.0})


def test_a_weight_is_the_same_whatever_the_order_of_the_folders(tmp_path):
    weights = np.float32([0.1, 0.7, 1e-8]).tolist()
    graphs = {name: {(1, 2): weight} for name, weight in zip("abc", weights, strict=True)}
    factors = {"a": 1.0, "b": 3.0, "c": 7.0}
    once = combined(tmp_path / "once", graphs, factors)
    assert once == combined(tmp_path / "again", dict(reversed(graphs.items())), factors)
