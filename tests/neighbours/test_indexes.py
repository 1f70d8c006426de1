"""Approximate indexes: what they find is exact in itself, does not change, and what they miss is measured."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import LARGE
from tests.neighbours.small import (
    LINE,
    Row,
    by_definition,
    read_counts,
    search,
    search_again,
    write_vectors,
)
from tests.triplets.blocks import write_queries

from cocite.config.embeddings import FlatIndex, HnswIndex, HnswWalk, IndexSettings, IvfIndex, IvfProbing, SearchSettings
from cocite.config.settings import parse_settings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.neighbours.approximate import SAMPLE_OF_LIST
from cocite.neighbours.searching import NOT_REACHED, build_index, measure_search

METRICS = ["cosine", "l2", "inner_product"]
CROWDS, PAPERS = 12, 900
QUERIES = range(0, 3 * PAPERS, 30)


@pytest.fixture
def crowds(tmp_path):
    """Papers in crowds far from one another, and every tenth of them as a query; the tables are in the folder."""
    rng = np.random.default_rng(3)
    near = 4 * rng.normal(size=(CROWDS, 16))
    papers = near[np.arange(PAPERS) % CROWDS] + 0.3 * rng.normal(size=(PAPERS, 16))
    placed = {3 * paper: papers[paper].astype(np.float32).tolist() for paper in range(PAPERS)}
    write_vectors(tmp_path, placed, row_group=200)
    write_queries(tmp_path, dict.fromkeys(QUERIES, "train"))
    return placed


def build(folder: Path, name: str, metric: str, *, threads: int = 1, seed: int = 1, lists: int = CROWDS) -> Path:
    output = folder / f"{name}-{seed}-{threads}"
    index = IvfIndex(kind="ivf", nlist=lists) if name == "ivf" else HnswIndex(kind="hnsw", links=8, ef_construction=40)
    chosen = IndexSettings(metric=metric, index=index)
    build_index(folder / "graph_embeddings.parquet", chosen, seed=seed, threads=threads, output=output)
    return output


def search_index(
    folder: Path, index: Path | None, settings: SearchSettings, **options: object
) -> tuple[list[Row], int]:
    """The rows of table `neighbours`, and how many are wanting."""
    found = search_again(folder, settings, index=index, **{"threads": 2, **options})
    return found, read_counts(folder)[NOT_REACHED]


def asked(name: str, metric: str, *, k: int = 20, probes: int = 2) -> SearchSettings:
    indexes = {"flat": FlatIndex(kind="flat"), "ivf": IvfProbing(kind="ivf", nprobe=probes)}
    indexes["hnsw"] = HnswWalk(kind="hnsw", ef_search=64)
    return SearchSettings(metric=metric, k=k, index=indexes[name])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["ivf", "hnsw"])
def test_what_an_index_finds_has_the_distances_and_the_order_of_the_exact_search(tmp_path, crowds, name, metric):
    found, wanting = search_index(tmp_path, build(tmp_path, name, metric), asked(name, metric))
    exact = search(tmp_path, crowds, dict.fromkeys(QUERIES, "train"), metric=metric, k=PAPERS - 2)
    distances = {(query, neighbour): distance for query, _, neighbour, distance in exact}
    assert all(distances[query, neighbour] == distance for query, _, neighbour, distance in found)
    assert wanting == 0
    for query in QUERIES:
        own = [(distance, neighbour) for of, _, neighbour, distance in found if of == query]
        assert len(own) == 20
        assert own == sorted(own)


@pytest.mark.parametrize("name", ["ivf", "hnsw"])
def test_neither_threads_nor_groups_nor_shards_change_what_an_index_finds(tmp_path, monkeypatch, crowds, name):
    built = [build(tmp_path, name, "cosine", threads=threads) for threads in (1, 2)]
    files = [sorted(path.name for path in folder.iterdir()) for folder in built]
    assert files[0] == files[1]
    assert all((built[0] / file).read_bytes() == (built[1] / file).read_bytes() for file in files[0])
    whole, _ = search_index(tmp_path, built[0], asked(name, "cosine"))
    same = tmp_path, built[0], asked(name, "cosine")
    assert sorted(row for shard in range(4) for row in search_index(*same, shard=(shard, 4), threads=1)[0]) == whole
    monkeypatch.setattr("cocite.neighbours.searching.queries_at_once", lambda *_: 7)
    assert search_index(tmp_path, built[0], asked(name, "cosine"))[0] == whole


@given(
    drawn=st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=8, max_size=60),
    metric=st.sampled_from(METRICS),
    lists=st.integers(1, 8),
    data=st.data(),
)
def test_ivf_that_reads_all_lists_is_exact(tmp_path, drawn, metric, lists, data):
    k = data.draw(st.integers(1, len(drawn) - 2))
    placed = {10 * at: [float(value) for value in vector] for at, vector in enumerate(drawn)}
    write_vectors(tmp_path, placed, row_group=16)
    write_queries(tmp_path, dict.fromkeys(placed, "train"))
    index = build(tmp_path, "ivf", metric, lists=lists)
    found, _ = search_index(tmp_path, index, asked("ivf", metric, k=k, probes=lists))
    assert found == [row for query in placed for row in by_definition(placed, query, metric, k)]


def test_lists_that_hold_too_few_papers_are_not_the_last_that_are_read(tmp_path, crowds):
    index = build(tmp_path, "ivf", "l2")
    k = 3 * PAPERS // CROWDS  # as many as three lists hold, and one is asked for
    found, wanting = search_index(tmp_path, index, asked("ivf", "l2", k=k, probes=1))
    assert (len(found), wanting) == (k * PAPERS // 10, 0)


def test_neighbours_that_no_link_leads_to_are_counted(tmp_path):
    rng = np.random.default_rng(1)
    papers = {paper: [1000.0 * (paper % 50), *rng.normal(size=3)] for paper in range(400)}
    write_vectors(tmp_path, papers)
    write_queries(tmp_path, dict.fromkeys(range(40), "train"))
    chosen = IndexSettings(metric="l2", index=HnswIndex(kind="hnsw", links=2, ef_construction=1))
    build_index(tmp_path / "graph_embeddings.parquet", chosen, seed=1, threads=1, output=tmp_path / "index")
    found, wanting = search_index(tmp_path, tmp_path / "index", asked("hnsw", "l2", k=390))
    assert wanting > 0
    assert len(found) + wanting == 40 * 390
    assert all(row[2] != row[0] for row in found)


@pytest.mark.parametrize("name", ["ivf", "hnsw"])
def test_recall_is_the_share_of_the_true_neighbours_that_were_found(tmp_path, crowds, name):
    index, k = build(tmp_path, name, "l2"), 120  # a crowd has 75 papers
    settings = asked(name, "l2", k=k, probes=1)
    found, _ = search_index(tmp_path, index, settings)
    tables = tmp_path / "graph_embeddings.parquet", tmp_path / "queries.parquet"
    measure_search(*tables, settings, index=index, sample=90, seed=1, threads=2, output=tmp_path / "quality.parquet")
    rows = read_table(tmp_path / "quality.parquet", "search_quality").to_pylist()
    assert [(row["k"], row["metric"], row["index"], row["queries"]) for row in rows] == [
        (rank, "l2", name, 90) for rank in (10, 100, 120)
    ]
    nearest = [row for query in QUERIES for row in by_definition(crowds, query, "l2", k)]
    for row in rows:
        pairs, true = (
            {(query, other) for query, rank, other, _ in some if rank <= row["k"]} for some in (found, nearest)
        )
        assert row["recall"] == len(pairs & true) / len(true)
    assert rows[0]["recall"] == 1.0
    assert name == "hnsw" or rows[2]["recall"] < 1.0


@pytest.mark.parametrize("relabel", LARGE)
@pytest.mark.parametrize("name", ["ivf", "hnsw"])
def test_an_index_finds_the_same_papers_whatever_their_ids(tmp_path, crowds, name, relabel):
    settings = asked(name, "l2")
    lists = PAPERS // SAMPLE_OF_LIST + 1  # so many that all papers are in the sample, which is drawn by id
    found, _ = search_index(tmp_path, build(tmp_path, name, "l2", lists=lists), settings)
    write_vectors(tmp_path, {relabel(paper): vector for paper, vector in crowds.items()}, row_group=200)
    write_queries(tmp_path, dict.fromkeys(map(relabel, QUERIES), "train"))
    relabelled, _ = search_index(tmp_path, build(tmp_path, name, "l2", lists=lists, seed=1, threads=2), settings)
    assert relabelled == [(relabel(query), rank, relabel(paper), far) for query, rank, paper, far in found]


def test_lists_of_papers_that_the_table_does_not_hold_are_refused(tmp_path):
    line = {2**40 + paper: vector for paper, vector in LINE.items()}
    write_vectors(tmp_path, line)
    write_queries(tmp_path, {2**40 + 1: "train"})
    index = build(tmp_path, "ivf", "l2", lists=1)
    write_vectors(tmp_path, {paper: vector for paper, vector in line.items() if paper != 2**40 + 3})
    with pytest.raises(InputError, match=rf"ivf-1-1: has the paper {2**40 + 3}, which is not among those searched"):
        search_index(tmp_path, index, asked("ivf", "l2", k=2))


@pytest.mark.parametrize(("name", "given", "right"), [("ivf", False, "name its folder"), ("flat", True, "be empty")])
def test_an_index_is_given_where_one_is_searched_and_nowhere_else(tmp_path, name, given, right):
    write_vectors(tmp_path, LINE)
    write_queries(tmp_path, {1: "train"})
    index = build(tmp_path, "ivf", "l2", lists=2) if given else None
    with pytest.raises(InputError, match=f"index is {name}: --index must {right}"):
        search_index(tmp_path, index, asked(name, "l2", k=2))


def test_more_lists_than_papers_and_an_index_that_is_exact_cannot_be_built(tmp_path):
    write_vectors(tmp_path, LINE)
    with pytest.raises(InputError, match=r"neighbours\.index\.nlist is 6, but .* contains 5 papers"):
        build(tmp_path, "ivf", "l2", lists=6)
    with pytest.raises(InputError, match=r"key index\.kind is 'flat'; it must be one of ivf, hnsw"):
        parse_settings(IndexSettings, '{"metric": "l2", "index": {"kind": "flat"}}')
