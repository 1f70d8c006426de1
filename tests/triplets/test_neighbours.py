"""The bands of CoCite and SciNCL, drawn from ranked neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS

from cocite.core.errors import InputError
from cocite.triplets.samplers.neighbours import RankedNeighbours

from .blocks import block, rows_of, sample, unserved, write_neighbours, write_vectors
from .definitions import MIXED, asked, check_triplets, from_neighbours

FORTY = {query: [(100 * query + rank, float(rank)) for rank in range(1, 41)] for query in (1, 2)}
BAND = st.one_of(st.integers(1, 12), st.tuples(st.integers(1, 8), st.integers(1, 12)).map(lambda k: tuple(sorted(k))))


@st.composite
def worlds(draw_from):
    """Queries with few neighbours or none, papers without a text among them, and any settings."""
    neighbours = {}
    for query in draw_from(st.sets(st.integers(1, 40), min_size=1, max_size=3)):
        papers = draw_from(st.lists(st.integers(1, 40).filter(lambda p, q=query: p != q), unique=True, max_size=14))
        gaps = draw_from(st.lists(st.integers(0, 2), min_size=len(papers), max_size=len(papers)))
        distances = [sum(gaps[: number + 1]) / 4 for number in range(len(papers))]
        neighbours[query] = list(zip(papers, distances, strict=True))
    distances = st.none() | st.integers(0, 8).map(lambda step: step / 4)
    bands = {f"k_{kind}": draw_from(BAND) for kind in ("positive", "negative")}
    bands |= {f"distance_{kind}": draw_from(distances) for kind in ("positive", "negative")}
    return neighbours, draw_from(st.sets(st.integers(1, 40), max_size=40)), draw_from(MIXED) | bands


@given(worlds(), st.sampled_from(RELABELLINGS))
def test_every_triplet_is_as_defined(tmp_path_factory, world, relabel):
    neighbours, texts, chosen = world
    neighbours = {relabel(query): [(relabel(p), far) for p, far in found] for query, found in neighbours.items()}
    texts = set(map(relabel, texts))
    path = write_neighbours(tmp_path_factory.mktemp("world") / "0.parquet", neighbours)
    queries = {*neighbours, relabel(41)}
    given_block = block(queries, texts, [path])
    # The configuration refuses bands that overlap; what is made of them is defined all the same.
    sampled = RankedNeighbours.model_construct(sampler="neighbours", embedding="e", **chosen).sample(given_block)

    def defined(query, drawn):
        return from_neighbours(query, neighbours.get(query, []), drawn, asked(**chosen), texts)

    check_triplets(sampled, given_block, chosen["per_query" if chosen["fill"] else "easy"], defined)


@pytest.fixture
def forty(tmp_path):
    """Query 1's neighbour of rank r is paper 100 + r, query 2's is paper 200 + r, at distance r."""
    return write_neighbours(tmp_path / "neighbours.parquet", FORTY)


def sampled_from(path, queries=(1, 2), texts=range(1, 1001), seed=1, **chosen):
    chosen = {"per_query": 4, "easy": 0, "k_positive": 10, "k_negative": 30} | chosen
    paths = path if isinstance(path, list) else [path]
    return sample("neighbours", block(queries, texts, paths, seed=seed), **chosen)


def of_query(sampled, query, column):
    return sorted(row[column] for row in rows_of(sampled) if row[0] == query)


def test_positives_and_negatives_are_the_last_ranks_up_to_k(forty):
    sampled = sampled_from(forty)
    assert of_query(sampled, 1, 1) == [107, 108, 109, 110]
    assert of_query(sampled, 1, 3) == [7, 8, 9, 10]
    assert of_query(sampled, 2, 2) == [227, 228, 229, 230]
    rows = rows_of(sampled_from(forty, queries=[1], easy=3))
    assert [row[2] for row in rows if row[5] == "hard"] == [130]


def test_published_text_is_dropped_after_ranking_and_counted_and_required_text_counts_before(forty):
    texts = set(range(1, 1001)) - {108, 127, 128}
    dropped = sampled_from(forty, queries=[1], texts=texts, text_filter="after")
    assert set(of_query(dropped, 1, 1)) <= {107, 109, 110}
    assert of_query(dropped, 1, 2) == [129, 130]
    assert dropped.omissions["positives without text"] == 1
    assert dropped.omissions["hard negatives without text"] == 2
    required = sampled_from(forty, queries=[1], texts=texts, text_filter="before")
    assert of_query(required, 1, 1) == [107, 109, 110, 111]
    assert of_query(required, 1, 2) == [130, 131, 132, 133]


def test_queries_are_counted_with_the_reason_why_they_cannot_be_served(forty, tmp_path):
    few = [(100 + rank, float(rank)) for rank in range(1, 6)]
    path = write_neighbours(tmp_path / "few.parquet", {1: few, 2: [*few, *((200 + r, 10.0 + r) for r in range(1, 30))]})
    sampled = sampled_from(path, queries=[1, 2, 3])
    assert unserved(sampled) == {"no neighbours": 1, "no neighbour in the band of positives": 1}
    all_within = sampled_from(forty, k_positive=None, distance_positive=40.0)
    assert unserved(all_within) == {"no neighbour in the band of positives": 2}
    partial = sampled_from(forty, texts=set(range(1, 1001)) - {108}, partial="dropped")
    assert unserved(partial) == {"fewer triplets than asked for": 1}


def test_neither_shards_nor_batches_nor_other_queries_make_a_difference_but_the_seed_does(forty, tmp_path, monkeypatch):
    whole = sampled_from(forty, easy=2)
    shards = [write_neighbours(tmp_path / f"{query}.parquet", {query: FORTY[query]}) for query in (2, 1)]
    assert sampled_from(shards, easy=2).rows.equals(whole.rows)
    assert rows_of(sampled_from(forty, queries=[2], easy=2)) == [row for row in rows_of(whole) if row[0] == 2]
    monkeypatch.setattr("cocite.triplets.sampled.ROWS_AT_ONCE", 7)
    assert sampled_from(forty, easy=2).rows.equals(whole.rows)
    assert not sampled_from(forty, easy=2, seed=2).rows.equals(whole.rows)


@pytest.fixture
def two_groups(tmp_path):
    """Papers 1 to 50 point one way, 51 to 100 another; query 1 has the neighbours 2 to 11."""
    near = write_neighbours(tmp_path / "neighbours.parquet", {1: range(2, 12)})
    vectors = {p: [1.0, p / 1000, 0.0] if p <= 50 else [p / 1000, 0.0, 1.0] for p in range(1, 101)}
    return [near, write_vectors(tmp_path / "vectors.parquet", vectors)]


def easy_from(sources, texts=range(1, 101), **chosen):
    chosen = {"per_query": 5, "easy": 5, "k_positive": 5, **chosen}
    rows = rows_of(sample("neighbours", block([1], texts, sources), **chosen))
    return [row[2] for row in rows]


def test_easy_negatives_by_k_means_are_of_other_clusters(two_groups):
    papers = easy_from(two_groups, easy_negatives={"kind": "k-means", "clusters": 2})
    assert len(set(papers)) == 5
    assert min(papers) > 50


def test_sorted_random_takes_the_farthest_of_all_that_are_drawn(two_groups):
    papers = easy_from(two_groups, easy_negatives={"kind": "sorted-random", "drawn": 100})
    # Cosine with query 1's (1, 0.001, 0) rises with p for papers of the other group.
    assert sorted(papers) == [51, 52, 53, 54, 55]
    papers = easy_from(
        two_groups, set(range(1, 101)) - {52, 54}, easy_negatives={"kind": "sorted-random", "drawn": 100}
    )
    assert sorted(papers) == [51, 53, 55, 56, 57]


def test_purely_random_negatives_may_be_neighbours(two_groups):
    """All papers with a text are neighbours of query 1."""
    papers = easy_from(two_groups, range(1, 12), easy_negatives={"kind": "pure-random"})
    assert len(set(papers)) == 5
    assert set(papers) <= set(range(2, 12))
    assert easy_from(two_groups, range(1, 12)) == []


def test_more_clusters_than_papers_are_refused(two_groups):
    with pytest.raises(InputError, match="clusters is 200"):
        easy_from(two_groups, easy_negatives={"kind": "k-means", "clusters": 200})
