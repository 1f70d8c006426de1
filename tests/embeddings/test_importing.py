"""What is made of the edges: split without a leak, by sorted arrays or as published, each with its weight."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from fractions import Fraction

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torchbiggraph.graph_storages import EDGE_STORAGES, ENTITY_STORAGES

from cocite.config.entries import as_json
from cocite.core.checkpoints import fingerprint_of
from cocite.core.errors import InputError
from cocite.embeddings import imported as importing
from cocite.embeddings.edges import Mean, repetitions
from cocite.embeddings.imported import ImportedFolder, import_edges, import_graph, import_tsv, split_edges

BEYOND_DOUBLES = 2**57 + 11
SIDES = ("training", "holdout")
MEMORY = {"memory_mb": 500, "threads": 1}
PAPERS = st.integers(0, 12).map(lambda paper: paper * 1_000_003)
POSITIVE = st.floats(2**-149, float(np.finfo(np.float32).max)).map(np.float32).map(float)


def uneven(count):
    """Weights over six orders of magnitude."""
    return [float(weight) for weight in np.float32(10 ** np.random.default_rng(3).uniform(-3, 3, count))]


def weights_of(imported, side, graphs):
    """The weight that stands beside each edge, by the corpus ids of its papers."""
    weights = [float(weight) for *_, block in ImportedFolder(imported).weighted_edges(side) for weight in block]
    return dict(zip(graphs.edges(imported, side), weights, strict=True))


@pytest.fixture
def split(tmp_path, graphs):
    """Split a graph given in shards; return the lines of either file."""

    def made(*shards, directed, edge_weights=None, seed=1, **changed):
        edges = [graphs.write(tmp_path / f"{at}.parquet", pairs, edge_weights) for at, pairs in enumerate(shards)]
        files = {side: tmp_path / f"{side}.tsv" for side in SIDES}
        split_edges(edges, graphs.settings(**changed), directed=directed, seed=seed, **MEMORY, **files)
        return [graphs.read(file) for file in files.values()]

    return made


@given(
    edges=st.sets(st.tuples(PAPERS, PAPERS).filter(lambda edge: edge[0] != edge[1]), min_size=60),
    directed=st.booleans(),
)
def test_no_pair_stands_on_both_sides_and_an_undirected_one_is_followed_by_its_mirror(split, edges, directed):
    given_edges = edges if directed else {(min(edge), max(edge)) for edge in edges}
    training, holdout = split(list(given_edges), directed=directed, holdout=0.49)
    for side in () if directed else (training, holdout):
        assert side[1::2] == [(target, source) for source, target in side[::2]]
    assert not {frozenset(edge) for edge in training} & {frozenset(edge) for edge in holdout}
    expected = given_edges if directed else given_edges | {(target, source) for source, target in given_edges}
    assert sorted(training + holdout) == sorted(expected)


def test_buckets_change_no_line_and_no_order_but_the_seed_does(split, graphs):
    pairs = sorted(graphs.random(60, 400))
    one = split(pairs, directed=False)
    assert split(pairs[:150], pairs[150:], directed=False) == one
    assert split(pairs[1::2], pairs[::2], directed=False) == one
    assert set(split(pairs, directed=False, seed=2)[1]) != set(one[1])


def test_published_hold_out_splits_mirrored_edges_one_by_one(split, graphs):
    """Of the mirrors of held-out edges, 70% are trained on: 560 of 800, with a standard deviation below 20."""
    pairs = graphs.random(100, 1333)
    training, holdout = split(pairs, directed=False, holdout=0.3, holdout_of="edges")
    assert sorted(training + holdout) == sorted(pairs + [(target, source) for source, target in pairs])
    leaked = {(target, source) for source, target in holdout} & set(training)
    assert abs(len(leaked) / len(holdout) - 0.7) < 0.1


@pytest.mark.parametrize(
    ("directed", "of", "partitions"), [(True, "pairs", 1), (True, "edges", 1), (False, "edges", 1), (False, "pairs", 2)]
)
def test_both_ways_in_lead_to_the_same_edges_between_the_same_papers(tmp_path, split, graphs, directed, of, partitions):
    pairs = [(a * BEYOND_DOUBLES, b) for a, b in graphs.random(60, 500)]
    lines = split(pairs, directed=directed, holdout_of=of)
    imported = graphs.imported(tmp_path, pairs, directed=directed, holdout_of=of, partitions=partitions)
    files = {side: tmp_path / f"{side}.tsv" for side in SIDES}
    import_tsv(**files, partitions=partitions, seed=1, output=tmp_path / "tsv")
    assert sorted(ImportedFolder(imported).papers()) == sorted(ImportedFolder(tmp_path / "tsv").papers())
    for side, expected in zip(SIDES, map(Counter, lines), strict=True):
        assert Counter(graphs.edges(imported, side)) == Counter(graphs.edges(tmp_path / "tsv", side)) == expected


def write_lines(folder, training, holdout):
    for side, edges in (("training", training), ("holdout", holdout)):
        (folder / side).write_text("".join(f"{source}\t{target}\n" for source, target in edges))
    return {side: folder / side for side in SIDES}


def test_partitions_without_an_edge_between_them_have_an_empty_file(tmp_path):
    import_tsv(**write_lines(tmp_path, [(1, 2)], [(2, 1)]), partitions=2, seed=1, output=tmp_path / "imported")
    assert sorted(ImportedFolder(tmp_path / "imported").count_edges("training").ravel()) == [0, 0, 0, 1]


def test_the_same_seed_gives_the_same_bytes_and_leaves_the_global_generator_alone(tmp_path, graphs):
    files, hashes = write_lines(tmp_path, graphs.random(50, 300), [(1, 2)]), []
    for run, seed in enumerate((1, 1, 2)):
        random.seed(run)
        before = random.getstate()
        import_tsv(**files, partitions=1, seed=seed, output=tmp_path / str(run))
        assert random.getstate() == before
        hashes.append(fingerprint_of([tmp_path / str(run)]))
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_files_are_those_of_pytorch_biggraph(tmp_path, graphs):
    imported = graphs.imported(tmp_path, graphs.random(50, 300), partitions=2)
    entities = ENTITY_STORAGES.make_instance(str(imported / "entities"))
    assert [entities.load_count("paper", part) for part in (0, 1)] == [25, 25]
    assert [entities.load_names("paper", part) for part in (0, 1)] == [
        [str(paper) for paper in ImportedFolder(imported).papers()[rows]] for rows in (slice(0, 25), slice(25, 50))
    ]
    edges = EDGE_STORAGES.make_instance(str(imported / "training"))
    loaded = [edges.load_edges(lhs, rhs) for lhs in (0, 1) for rhs in (0, 1)]
    assert [len(part) for part in loaded] == ImportedFolder(imported).count_edges("training").ravel().tolist()
    assert all(part.rel.eq(0).all() and part.lhs.tensor.lt(25).all() for part in loaded)
    with h5py.File(imported / "training" / "edges_0_1.h5") as file:
        assert file.attrs["format_version"] == 1
        assert {name: data.dtype for name, data in file.items()} == dict.fromkeys(("lhs", "rel", "rhs"), np.int64)


@pytest.mark.parametrize("weighted", [False, True])
def test_neither_buckets_nor_blocks_nor_piles_change_a_byte_but_the_seed_does(tmp_path, graphs, monkeypatch, weighted):
    pairs, weights = sorted(graphs.random(60, 400)), uneven(400)
    buckets = [graphs.write(tmp_path / f"{at}.parquet", pairs[at::3], weights[at::3]) for at in range(3)]
    one = [graphs.write(tmp_path / "one.parquet", pairs, weights)]

    def imported(name, edges, seed=1):
        import_edges(edges, graphs.settings(weighted=weighted), directed=False, seed=seed, output=tmp_path / name)
        return fingerprint_of([tmp_path / name])

    expected = imported("whole", one)
    assert imported("buckets", buckets) == expected
    assert imported("seed", one, seed=2) != expected
    monkeypatch.setattr(importing, "BLOCK_ROWS", 7)
    monkeypatch.setattr(importing, "EDGES_IN_PILE", 50)
    assert imported("piles", one) == expected


def test_the_order_of_edges_has_nothing_to_do_with_their_papers(tmp_path, graphs):
    """Sources come in rising order; after the shuffle the correlation of place and source is that of chance."""
    imported = graphs.imported(tmp_path, graphs.random(300, 10_000))
    sources = [source for source, _ in graphs.edges(imported, "training")]
    assert abs(np.corrcoef(np.arange(len(sources)), sources)[0, 1]) < 4 / np.sqrt(len(sources))


@pytest.mark.long
def test_an_import_that_was_killed_leaves_nothing_and_ends_like_one_that_was_not(tmp_path, graphs):
    edges = graphs.write(tmp_path / "edges.parquet", graphs.random(3000, 400_000))
    chosen = graphs.settings(partitions=2)
    import_edges([edges], chosen, directed=False, seed=1, output=tmp_path / "whole")
    output = tmp_path / "killed"
    command = [sys.executable, "-c", "from cocite.cli import app; app()", "embeddings", "import", str(edges)]
    command += ["--undirected", "--settings", json.dumps(as_json(chosen)), "--seed", "1", "--output", str(output)]
    command += ["--memory-mb", "500", "--threads", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while not list(tmp_path.glob(".killed.*.tmp/training/edges_1_1.h5")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not output.exists()
    subprocess.run(command, check=True, capture_output=True)
    assert fingerprint_of([output]) == fingerprint_of([tmp_path / "whole"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.parquet", "killed", "whole"]


@pytest.mark.parametrize(
    ("way", "pairs", "changed", "message"),
    [
        *((way, [], {}, "has no edges; lower its min_count") for way in ("arrow", "tsv")),
        ("arrow", [(1, 2), (3, 4)], {"holdout": 1e-6}, "leaves none to hold out with a holdout of 1e-06"),
        ("arrow", [(1, 2), (2, 3)], {"partitions": 4}, r"has 3 papers with an edge, fewer than partitions \(4\)"),
    ],
)
def test_graphs_too_small_to_be_trained_on_are_refused(tmp_path, graphs, way, pairs, changed, message):
    edges, settings = [graphs.write(tmp_path / "edges.parquet", pairs)], graphs.settings(**changed, **{"import": way})
    with pytest.raises(InputError, match=message):
        import_graph(edges, settings, directed=False, seed=1, **MEMORY, output=tmp_path / "imported")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.parquet"]


def test_more_papers_than_int32_can_number_are_refused(tmp_path, graphs, monkeypatch):
    assert importing.MOST_PAPERS + 1 == 2**31
    monkeypatch.setattr(importing, "MOST_PAPERS", 2)
    with pytest.raises(InputError, match="has 3 papers with an edge, but no more than 2 can be numbered"):
        graphs.imported(tmp_path, [(1, 2), (2, 3)])


@pytest.mark.parametrize("key", ["weights", "weighted"])
@pytest.mark.parametrize("wrong", [math.nan, 0.0, math.inf])
def test_weights_that_are_not_positive_numbers_are_refused_unless_none_counts(tmp_path, graphs, wrong, key):
    pairs, weights = [(1, 2), (3, 4), (5, 6)], [1.0, wrong, 1.0]
    said = f"weight of the edge from 3 to 4 is {wrong:g}, but {key}: true takes positive numbers; .* {key}: false"
    with pytest.raises(InputError, match=said):
        graphs.imported(tmp_path, pairs, edge_weights=weights, directed=True, **{key: True})
    assert not (tmp_path / "imported").exists()
    graphs.imported(tmp_path, pairs, edge_weights=weights, directed=True, holdout=0.4)


def test_whole_multiples_of_the_smallest_weight_are_repeated_as_often(tmp_path, split, graphs):
    pairs = graphs.random(40, 200)
    weights = dict(zip(pairs, (0.5 * (1 + number % 4) for number in range(200)), strict=True))
    repeated = {"weights": True, "max_repetitions": 3}
    lines = split(pairs, directed=False, edge_weights=list(weights.values()), **repeated)
    imported = graphs.imported(tmp_path, pairs, edge_weights=list(weights.values()), **repeated)
    training, holdout = (Counter(graphs.edges(imported, side)) for side in SIDES)
    assert set(holdout.values()) == {1}
    for (source, target), count in training.items():
        assert count == min(3, 2 * weights[min(source, target), max(source, target)])
    assert [training, holdout] == [Counter(side) for side in lines]


def test_a_fraction_is_repeated_by_chance_and_alike_both_ways():
    """2.25 copies on average: of 40,000 edges a quarter has 3, with a standard deviation of 87."""
    source, target = np.arange(40_000), np.arange(40_000) + 70_000
    weight = np.full(40_000, 4.5, dtype=np.float32)
    there = repetitions(source, target, weight, unit=2.0, most=10, seed=1)
    assert set(there) == {2, 3}
    assert abs((there == 3).sum() - 10_000) < 4 * 87
    assert (repetitions(target, source, weight, unit=2.0, most=10, seed=1) == there).all()
    assert (repetitions(source, target, weight, unit=2.0, most=10, seed=2) != there).any()


@pytest.mark.parametrize(("directed", "partitions"), [(False, 1), (True, 1), (False, 3)])
def test_each_edge_has_its_own_weight_as_a_multiple_of_the_mean_of_the_edges_to_train_on(
    tmp_path, graphs, directed, partitions
):
    pairs, weights = graphs.random(60, 500), uneven(500)
    how = {"directed": directed, "partitions": partitions}
    imported = graphs.imported(tmp_path, pairs, edge_weights=weights, weighted=True, **how)
    given = dict(zip(pairs, weights, strict=True))
    mean = np.mean([given[min(edge), max(edge)] for edge in graphs.edges(imported, "training")])
    found = {side: weights_of(imported, side, graphs) for side in SIDES}
    assert sum(map(len, found.values())) == 500 * (1 if directed else 2)
    for edge, weight in [*found["training"].items(), *found["holdout"].items()]:
        assert weight == pytest.approx(given[min(edge), max(edge)] / mean, rel=1e-6)
    assert np.mean(list(found["training"].values())) == pytest.approx(1, rel=1e-6)


def test_a_weight_above_the_bound_counts_as_much_as_the_bound(tmp_path, graphs):
    pairs, how, weights = graphs.random(60, 500), {"edge_weights": uneven(500), "weighted": True}, []
    for name, bound in (("whole", {}), ("cut", {"max_weight": 1.5})):
        weights.append(weights_of(graphs.imported(tmp_path / name, pairs, **how, **bound), "training", graphs))
    whole, cut = weights
    assert max(whole.values()) > 1.5
    assert cut == {edge: min(weight, 1.5) for edge, weight in whole.items()}


@given(st.lists(st.lists(POSITIVE, max_size=20)), st.lists(POSITIVE, min_size=1, max_size=20))
def test_a_mean_is_the_exact_one_rounded_once(some, last):
    blocks = [*some, last]
    mean, every = Mean(), [Fraction(weight) for block in blocks for weight in block]
    for block in blocks:
        mean.add(np.array(block, dtype=np.float32))
    assert float(mean) == float(sum(every) / len(every))
