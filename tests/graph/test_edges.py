"""Edges hold the signal in one shape, without papers that are kept out; combined they are weighted sums."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.neighbours.small import write_edges
from tests.rows import write_rows

from cocite.config.graphs import Combination
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.graph.edges import combine_graphs, count_intents, edges_of_citations, edges_of_pairs

from .conftest import left_out, shard, shard_by_cited, weights_in

NUMBERS = {"memory_mb": 300, "threads": 1}
PAIRS = st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda ends: ends[0] < ends[1])
EDGES = st.dictionaries(PAIRS, st.floats(0.015625, 1000).map(np.float32).map(float), max_size=10)
FACTORS = st.floats(0.01, 10)


def edges(path):
    return [(row["source"], row["target"], row["weight"]) for row in read_table(path, "edges").to_pylist()]


def made(folder, *, directed, buckets=1):
    """The edges of papers of whom 4, which cites, is held out, and 6, which is cited, is excluded."""
    citations = {(1, 2), (1, 6), (1, 9), (2, 1), (3, 1), (4, 3), (7, 3), (9, 7)}
    shard(folder, citations, {4: "holdout", 6: "excluded"}, buckets)
    shard_by_cited(folder, buckets)
    for bucket in range(buckets):
        by_cited = None if directed else folder / f"citations_by_cited/{bucket}.parquet"
        asked = {"queries": folder / "queries.parquet", "bucket": bucket, "buckets": buckets, **NUMBERS}
        written = folder / f"edges/{bucket}.parquet"
        edges_of_citations(folder / f"citations/{bucket}.parquet", by_cited, **asked, output=written)
    return sorted(edges(folder / "edges"))


def weighed(folder, pairs, *, min_count=1, columns="paper other count"):
    write_rows(folder / "cocitations.parquet", "cocitations", columns, pairs)
    written = {"output": folder / "edges.parquet", "omissions": folder / "omissions" / "0.parquet"}
    edges_of_pairs(folder / "cocitations.parquet", table="cocitations", min_count=min_count, **written)
    return edges(folder / "edges.parquet")


DIRECTED = [(1, 2, 1.0), (1, 9, 1.0), (2, 1, 1.0), (3, 1, 1.0), (7, 3, 1.0), (9, 7, 1.0)]
UNDIRECTED = [(1, 2, 1.0), (1, 3, 1.0), (1, 9, 1.0), (3, 7, 1.0), (7, 9, 1.0)]


@pytest.mark.parametrize("buckets", [1, 2, 3])
@pytest.mark.parametrize(("directed", "expected"), [(True, DIRECTED), (False, UNDIRECTED)])
def test_papers_that_cite_each_other_have_one_undirected_edge_and_two_directed(tmp_path, buckets, directed, expected):
    assert made(tmp_path, directed=directed, buckets=buckets) == expected
    for bucket in range(buckets):
        of_bucket = [edge for edge in expected if edge[0] % buckets == bucket]
        assert edges(tmp_path / f"edges/{bucket}.parquet") == of_bucket


def test_directed_edges_alone_have_the_intents_of_their_citations(tmp_path):
    intents = {(1, 2): ["background", "result"], (2, 1): [], (4, 3): ["result"]}
    shard(tmp_path, intents, {4: "holdout"}, 1, intents=intents)
    shard_by_cited(tmp_path, 1)
    for by_cited in (None, tmp_path / "citations_by_cited/0.parquet"):
        where = {"queries": tmp_path / "queries.parquet", "output": tmp_path / "edges", "bucket": 0, "buckets": 1}
        edges_of_citations(tmp_path / "citations/0.parquet", by_cited, **where, **NUMBERS)
        rows = read_table(tmp_path / "edges", "edges").to_pylist()
        if by_cited is None:
            found = {(row["source"], row["target"]): row["intents"] for row in rows}
            assert found == {(1, 2): ["background", "result"], (2, 1): []}
        else:
            assert [set(row) for row in rows] == [{"source", "target", "weight"}]


def test_without_a_strength_the_count_is_the_weight_and_rare_pairs_make_no_edge(tmp_path):
    pairs = [(1, 2, 1), (1, 3, 4), (2, 3, 2)]
    assert weighed(tmp_path, pairs, min_count=2) == [(1, 3, 4.0), (2, 3, 2.0)]
    assert weighed(tmp_path, []) == []


def test_a_strength_is_the_weight_and_one_of_zero_or_less_makes_no_edge(tmp_path):
    pairs = [(1, 2, 1, 9.0), (1, 3, 4, 0.5), (2, 3, 2, 0.0), (2, 4, 2, -1.0)]
    assert weighed(tmp_path, pairs, min_count=2, columns="paper other count strength") == [(1, 3, 0.5)]
    assert left_out(tmp_path) == {
        "pairs that occur less often than min_count": 1,
        "pairs whose strength is not above 0": 2,
    }


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_strength_that_is_no_finite_number_is_refused(tmp_path, wrong):
    with pytest.raises(InputError, match=r"cocitations\.parquet: contains a strength that is not a finite number"):
        weighed(tmp_path, [(1, 2, 1, wrong)], columns="paper other count strength")


def combined(folder, graphs, factors, *, rescale="none", buckets=1):
    for name, edges in graphs.items():
        write_edges(folder / name, edges, buckets=buckets)
    asked, folders = Combination(of=factors, rescale=rescale), [folder / name / "edges" for name in reversed(graphs)]
    for bucket in range(buckets):
        combine_graphs(folders, asked, bucket=bucket, **NUMBERS, output=folder / f"combined/{bucket}.parquet")
    return weights_in(folder / "combined")


@settings(max_examples=15)
@given(st.tuples(EDGES, EDGES, EDGES), st.tuples(FACTORS, FACTORS, FACTORS), st.sampled_from(["none", "max"]))
def test_a_combination_equals_brute_force(tmp_path_factory, edges, factors, rescale):
    graphs = dict(zip("abc", edges, strict=True))
    if rescale == "max":
        graphs = {name: edges or {(1, 2): 1.0} for name, edges in graphs.items()}
    expected: defaultdict[tuple[int, int], float] = defaultdict(float)
    for factor, weights in zip(factors, graphs.values(), strict=True):
        largest = max(weights.values()) if rescale == "max" else 1.0
        for pair, weight in weights.items():
            expected[pair] += factor * weight / largest
    folder = tmp_path_factory.mktemp("graph")
    found = combined(folder, graphs, dict(zip("abc", factors, strict=True)), rescale=rescale, buckets=2)
    assert found.keys() == expected.keys()
    for pair, weight in expected.items():
        assert found[pair] == pytest.approx(weight, rel=1e-6)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ({"cocitation": {(1, 2): 4.0}, "links": {}}, "links/edges: the graph has no edges, so there is no largest"),
        ({"cocitation": {(1, 2): 4.0}}, "no folder of edges is given for the graph 'links'"),
    ],
)
def test_a_graph_without_edges_or_a_folder_is_refused(tmp_path, graphs, message):
    with pytest.raises(InputError, match=message):
        combined(tmp_path, graphs, {"cocitation": 1.0, "links": 1.0}, rescale="max")


def test_a_weight_is_the_same_whatever_the_order_of_the_folders(tmp_path):
    weights = np.float32([0.1, 0.7, 1e-8]).tolist()
    graphs = {name: {(1, 2): weight} for name, weight in zip("abc", weights, strict=True)}
    factors = {"a": 1.0, "b": 3.0, "c": 7.0}
    once = combined(tmp_path / "once", graphs, factors)
    assert once == combined(tmp_path / "again", dict(reversed(graphs.items())), factors)


def counted(folder, *buckets):
    """The citations of each class; a bucket is a list of the intents of its citations."""
    for bucket, intents in enumerate(buckets):
        rows = [(source, 99, 1.0, of) for source, of in enumerate(intents)]
        write_rows(folder / f"edges/{bucket}.parquet", "edges", "source target weight intents", rows)
    count_intents(folder / "edges", **NUMBERS, output=folder / "intents.parquet")
    table = read_table(folder / "intents.parquet", "intent_counts")
    return list(zip(table["intent"].to_pylist(), table["citations"].to_pylist(), strict=True))


def test_citations_of_all_buckets_count_once_and_without_any_each_class_has_a_zero(tmp_path):
    first = [["background"], ["background", "result"], []]
    second = [["background"], ["methodology"], ["background", "methodology", "result"], [], []]
    counts = [("background", 2), ("methodology", 1), ("result", 0), ("several", 2), ("none", 3)]
    assert counted(tmp_path / "some", first, second) == counts
    assert counted(tmp_path / "none", []) == [(intent, 0) for intent, _ in counts]
