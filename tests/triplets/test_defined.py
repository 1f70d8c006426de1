"""What is sampled from neighbours, citations and co-citations holds its definition, and what is left out is counted."""

from types import SimpleNamespace

import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS

from cocite.triplets.picking import draw
from cocite.triplets.samplers.neighbours import RankedNeighbours

from .blocks import (
    block,
    rows_of,
    sample,
    unserved,
    write_cocitations,
    write_edges,
    write_neighbours,
    write_vectors,
)
from .definitions import (
    CHOSEN,
    INTENTS,
    MIXED,
    check_triplets,
    examples_of,
    from_citations,
    from_cocitations,
    from_neighbours,
)

PAPERS = st.integers(1, 14)
PAIRS = st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1])
QUERIES, TEXTS, RELABEL = st.sets(PAPERS, min_size=1), st.sets(PAPERS), st.sampled_from(RELABELLINGS)
CITATIONS = st.dictionaries(PAIRS, st.frozensets(st.sampled_from(INTENTS), max_size=2), min_size=1, max_size=70)
COCITATIONS = st.dictionaries(PAIRS.map(lambda ends: tuple(sorted(ends))), st.integers(1, 4), min_size=1, max_size=60)
OFTEN = st.fixed_dictionaries({**CHOSEN, "per_query": st.integers(1, 5), "min_count": st.integers(1, 4)})
COUNTS = {"positives": st.integers(1, 4), "easy": st.integers(1, 3)}
OF_ASPECTS = {
    **{"linked": st.integers(0, 3), "two_away": st.integers(1, 3), "two_away_by": st.sampled_from(["another", "any"])},
    **{"complete": st.booleans(), "miscellaneous": st.booleans()},
}
EXAMPLES = {"undirected": {**COUNTS, "hard": st.integers(0, 3)}, "aspects": {**COUNTS, **OF_ASPECTS}}
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


@given(worlds(), RELABEL)
def test_every_triplet_of_neighbours_is_as_defined(tmp_path, world, relabel):
    neighbours, texts, chosen = world
    neighbours = {relabel(query): [(relabel(p), far) for p, far in found] for query, found in neighbours.items()}
    texts, path = set(map(relabel, texts)), write_neighbours(tmp_path / "0.parquet", neighbours)
    given_block = block({*neighbours, relabel(41)}, texts, [path])
    # The configuration refuses bands that overlap; what is made of them is defined all the same.
    sampled = RankedNeighbours.model_construct(sampler="neighbours", embedding="e", **chosen).sample(given_block)
    easy = chosen["per_query" if chosen["fill"] else "easy"]
    check_triplets(sampled, given_block, easy, from_neighbours, chosen, texts, neighbours)


@given(st.sets(PAIRS, min_size=1, max_size=70), QUERIES, TEXTS, MIXED, st.booleans(), RELABEL)
def test_every_triplet_of_citations_is_as_defined(tmp_path, citations, queries, texts, chosen, directed, relabel):
    citations = {(relabel(citing), relabel(cited)) for citing, cited in citations}
    queries, texts = set(map(relabel, queries)), set(map(relabel, texts))
    given_block = block(queries, texts, [write_edges(tmp_path / "0.parquet", citations)])
    sampled = sample("citations", given_block, **chosen, directed=directed)
    easy = chosen["per_query" if chosen["fill"] else "easy"]
    check_triplets(sampled, given_block, easy, from_citations, chosen, texts, citations, directed)


@given(COCITATIONS, QUERIES, TEXTS, OFTEN, RELABEL)
def test_every_triplet_of_cocitations_is_as_defined(tmp_path, counts, queries, texts, chosen, relabel):
    counts = {(relabel(one), relabel(other)): count for (one, other), count in counts.items()}
    queries, texts = set(map(relabel, queries)), set(map(relabel, texts))
    given_block = block(queries, texts, [write_cocitations(tmp_path / "0.parquet", counts)])
    sampled = sample("cocited", given_block, **chosen)
    check_triplets(sampled, given_block, chosen["per_query"], from_cocitations, chosen, texts, counts)


@pytest.mark.parametrize("name", EXAMPLES)
@given(CITATIONS, QUERIES, TEXTS, RELABEL, st.data())
def test_every_example_is_as_defined(tmp_path, name, citations, queries, texts, relabel, data):
    chosen = data.draw(st.fixed_dictionaries(EXAMPLES[name]))
    aspects = (None,) if name == "undirected" else (*INTENTS, "miscellaneous")[: 3 + chosen["miscellaneous"]]
    assume(name == "undirected" or any(citations.values()))
    citations = {(relabel(one), relabel(other)): intents for (one, other), intents in citations.items()}
    queries, texts = set(map(relabel, queries)), set(map(relabel, texts))
    given_block = block(queries, texts, [write_edges(tmp_path / "0.parquet", citations, citations)])
    sampled = sample(name, given_block, **chosen)
    drawn = draw(given_block, chosen["easy"] * len(aspects), "easy negatives").papers
    settings = {"linked": 0, "two_away": chosen.get("hard"), "two_away_by": "any", "complete": False} | chosen
    expected = [
        (query, example)
        for query, papers in zip(sorted(queries), drawn.tolist(), strict=True)
        for example in examples_of(
            query, citations, [p for p in papers if p > 0], SimpleNamespace(**settings), texts, aspects
        )
    ]
    found = []
    for row in sampled.rows.to_pylist():
        negatives = list(zip(row["negatives"], row["negative_kinds"], strict=True))
        found.append((row["query"], (row.get("aspect"), row["positives"], negatives)))
    assert found == expected
    assert sum(unserved(sampled, "an example").values()) == len(queries - {query for query, _ in expected})


FORTY = {query: [(100 * query + rank, float(rank)) for rank in range(1, 41)] for query in (1, 2)}
"""Query 1's neighbour of rank r is paper 100 + r, query 2's is paper 200 + r, at distance r."""


def sampled_from(folder, neighbours, queries=(1, 2), lost=(), **chosen):
    path = write_neighbours(folder / "neighbours.parquet", neighbours)
    chosen = {"per_query": 4, "easy": 0, "k_positive": 10, "k_negative": 30} | chosen
    return sample("neighbours", block(queries, set(range(1, 1001)) - set(lost), [path]), **chosen)


def of_query(sampled, query, column):
    return sorted(row[column] for row in rows_of(sampled) if row[0] == query)


def test_positives_and_negatives_are_the_last_ranks_up_to_k(tmp_path):
    sampled = sampled_from(tmp_path, FORTY)
    assert of_query(sampled, 1, 1) == [107, 108, 109, 110]
    assert of_query(sampled, 1, 3) == [7, 8, 9, 10]
    assert of_query(sampled, 2, 2) == [227, 228, 229, 230]
    rows = rows_of(sampled_from(tmp_path, FORTY, queries=[1], easy=3))
    assert [row[2] for row in rows if row[5] == "hard"] == [130]


def test_a_paper_of_the_band_of_positives_is_no_hard_negative(tmp_path):
    sampled = sampled_from(tmp_path, FORTY, k_negative=None, distance_negative=12.0)  # ranks 9 to 12; positives to 10
    assert set(of_query(sampled, 1, 1)) < {107, 108, 109, 110}
    assert of_query(sampled, 1, 2) == [111, 112]


def test_published_text_is_dropped_after_ranking_and_counted_and_required_text_counts_before(tmp_path):
    dropped = sampled_from(tmp_path, FORTY, lost=[108, 127, 128], text_filter="after")
    assert set(of_query(dropped, 1, 1)) <= {107, 109, 110}
    assert of_query(dropped, 1, 2) == [129, 130]
    assert dropped.omissions["positives without text"] == 1
    assert dropped.omissions["hard negatives without text"] == 2
    required = sampled_from(tmp_path, FORTY, lost=[108, 127, 128], text_filter="before")
    assert of_query(required, 1, 1) == [107, 109, 110, 111]
    assert of_query(required, 1, 2) == [130, 131, 132, 133]


def test_queries_of_neighbours_are_counted_with_the_reason_why_they_cannot_be_served(tmp_path):
    few = [(100 + rank, float(rank)) for rank in range(1, 6)]
    neighbours = {1: few, 2: [*few, *((200 + r, 10.0 + r) for r in range(1, 30))]}
    sampled = sampled_from(tmp_path, neighbours, queries=[1, 2, 3])
    assert unserved(sampled) == {"no neighbours": 1, "no neighbour in the band of positives": 1}
    all_within = sampled_from(tmp_path, FORTY, k_positive=None, distance_positive=40.0)
    assert unserved(all_within) == {"no neighbour in the band of positives": 2}
    partial = sampled_from(tmp_path, FORTY, lost=[108], partial="dropped")
    assert unserved(partial) == {"fewer triplets than asked for": 1}


def test_queries_of_citations_are_counted_with_the_reason_why_they_cannot_be_served(tmp_path):
    path = write_edges(tmp_path / "0", {(1, 2), (2, 3), (4, 50), (5, 6)})
    sampled = sample("citations", block([1, 4, 5, 13], range(1, 40), [path]), easy=0, per_query=1)
    assert unserved(sampled) == {
        "no citations": 1,
        "no citation of a paper with a text": 1,
        "no paper two citations away": 1,
    }


@pytest.fixture
def easy_from(tmp_path):
    """Easy negatives of query 1, whose neighbours are 2 to 11; papers 1 to 50 point one way, 51 to 100 another."""
    near = write_neighbours(tmp_path / "neighbours.parquet", {1: range(2, 12)})
    vectors = {p: [1.0, p / 1000, 0.0] if p <= 50 else [p / 1000, 0.0, 1.0] for p in range(1, 101)}
    sources = [near, write_vectors(tmp_path / "vectors.parquet", vectors)]

    def easy_from(texts=range(1, 101), **easy_negatives):
        chosen = {"per_query": 5, "easy": 5, "k_positive": 5, "easy_negatives": easy_negatives}
        return sorted(row[2] for row in rows_of(sample("neighbours", block([1], texts, sources), **chosen)))

    return easy_from


def test_easy_negatives_by_k_means_are_of_other_clusters(easy_from):
    papers = easy_from(kind="k-means", clusters=2)
    assert len(set(papers)) == 5
    assert min(papers) > 50


def test_sorted_random_takes_the_farthest_of_all_that_are_drawn(easy_from):
    """Cosine with query 1's (1, 0.001, 0) rises with p for papers of the other group."""
    assert easy_from(kind="sorted-random", drawn=100) == [51, 52, 53, 54, 55]
    assert easy_from({*range(1, 101)} - {52, 54}, kind="sorted-random", drawn=100) == [51, 53, 55, 56, 57]


def test_purely_random_negatives_may_be_neighbours_but_no_positives(easy_from):
    """All papers with a text are neighbours of query 1, and 2 to 6 its positives."""
    assert easy_from(range(1, 12), kind="pure-random") == [7, 8, 9, 10, 11]
    assert easy_from(range(1, 12), kind="random") == []


def test_the_least_cocited_papers_are_hard_negatives(tmp_path):
    """Papers 2 to 4 are positives, 5 and 6 the least co-cited, 9 has no text, and 30 to 39 are not co-cited."""
    counts = {2: 9, 3: 8, 4: 7, 5: 1, 6: 2, 7: 4, 8: 4, 9: 1}
    path = write_cocitations(tmp_path / "0.parquet", {(1, other): count for other, count in counts.items()})
    texts = [*range(1, 9), *range(30, 40)]
    rows = rows_of(sample("cocited", block([1], texts, [path]), per_query=3, min_count=5, hard=2))
    assert {row[1] for row in rows} == {2, 3, 4}
    assert {row[2] for row in rows if row[5] == "hard"} == {5, 6}
    assert [row[2] in range(30, 40) for row in rows if row[5] == "easy"] == [True]


def examples_from(folder, name, queries, citations, **chosen):
    path = write_edges(folder / "0", citations, citations)
    return sample(name, block(queries, range(1, 60), [path]), **chosen)


def test_a_query_needs_a_positive_in_each_aspect_unless_told_otherwise(tmp_path):
    citations = {(1, 2): {"background"}, (1, 3): {"methodology"}}
    with_all = examples_from(tmp_path, "aspects", [1, 50], citations)
    assert with_all.rows.num_rows == 0
    assert unserved(with_all, "an example") == {"no positive in each aspect": 1, "no citations": 1}
    some = examples_from(tmp_path, "aspects", [1], citations, complete=False)
    assert some.rows["aspect"].to_pylist() == ["background", "methodology"]
    assert some.omissions["queries with an example, but none of result"] == 1


def test_paired_each_positive_has_one_negative_and_few_are_used_again_where_asked_for(tmp_path):
    citations = {(1, 2): set(), (3, 1): set(), (2, 4): set(), (2, 5): set()}
    pairs = examples_from(tmp_path, "undirected", [1], citations, paired=True).rows
    assert [[len(of) for of in pairs[name].to_pylist()] for name in ("positives", "negatives")] == [[1, 1], [1, 1]]
    again = examples_from(tmp_path, "undirected", [1], citations, paired=True, oversample=True).rows
    assert again["number"].to_pylist() == [1, 2, 3, 4, 5]
    assert sorted(p for [p] in again["positives"].to_pylist()) in ([2, 2, 2, 3, 3], [2, 2, 3, 3, 3])
    assert {4, 5} <= {n for [n] in again["negatives"].to_pylist()}
    assert sorted(kind for [kind] in again["negative_kinds"].to_pylist()) == ["easy"] * 3 + ["two-away"] * 2


def test_a_block_may_have_millions_of_negatives(tmp_path):
    path = write_edges(tmp_path / "0", [(query, 30_000 + query) for query in range(1, 25_001)])
    found = sample("undirected", block(range(1, 25_001), range(1, 55_001), [path]), hard=0, easy=170).rows
    for name in ("negatives", "negative_kinds"):
        assert pc.unique(pc.list_value_length(found[name])).to_pylist() == [170]
    assert pc.unique(pc.list_flatten(found["negative_kinds"])).to_pylist() == ["easy"]
