"""What is sampled from citations and discrete co-citations holds its definition on any graph."""

from types import SimpleNamespace

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS

from cocite.core.errors import InputError
from cocite.triplets.picking import draw

from .blocks import block, rows_of, sample, unserved, write_cocitations, write_edges
from .definitions import CHOSEN, INTENTS, MIXED, asked, check_triplets, examples_of, from_citations, from_cocitations

PAPERS = st.integers(1, 14)
PAIRS = st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1])
CITATIONS = st.dictionaries(PAIRS, st.frozensets(st.sampled_from(INTENTS), max_size=2), min_size=1, max_size=70)
COUNTS = {"positives": st.integers(1, 4), "easy": st.integers(1, 3)}


@given(
    st.sets(PAIRS, min_size=1, max_size=70),
    st.sets(PAPERS, min_size=1),
    st.sets(PAPERS),
    MIXED,
    st.booleans(),
    st.sampled_from(RELABELLINGS),
)
def test_every_triplet_of_citations_is_as_defined(
    tmp_path_factory, citations, queries, texts, chosen, directed, relabel
):
    citations = {(relabel(citing), relabel(cited)) for citing, cited in citations}
    queries, texts = set(map(relabel, queries)), set(map(relabel, texts))
    path = write_edges(tmp_path_factory.mktemp("edges") / "0.parquet", citations)
    given_block = block(queries, texts, [path])
    sampled = sample("citations", given_block, **chosen, directed=directed)

    def defined(query, drawn):
        return from_citations(query, citations, drawn, asked(**chosen), texts, directed)

    check_triplets(sampled, given_block, chosen["per_query" if chosen["fill"] else "easy"], defined)


@given(
    st.dictionaries(PAIRS.map(lambda pair: tuple(sorted(pair))), st.integers(1, 4), min_size=1, max_size=60),
    st.sets(PAPERS, min_size=1),
    st.sets(PAPERS),
    st.fixed_dictionaries({**CHOSEN, "per_query": st.integers(1, 5), "min_count": st.integers(1, 4)}),
    st.sampled_from(RELABELLINGS),
)
def test_every_triplet_of_cocitations_is_as_defined(tmp_path_factory, counts, queries, texts, chosen, relabel):
    counts = {(relabel(one), relabel(other)): count for (one, other), count in counts.items()}
    queries, texts = set(map(relabel, queries)), set(map(relabel, texts))
    path = write_cocitations(tmp_path_factory.mktemp("pairs") / "0.parquet", counts)
    given_block = block(queries, texts, [path])
    sampled = sample("cocited", given_block, **chosen)

    def defined(query, drawn):
        return from_cocitations(query, counts, drawn, asked(**chosen), texts)

    check_triplets(sampled, given_block, chosen["per_query"], defined)


def test_the_least_cocited_papers_are_hard_negatives(tmp_path):
    """Papers 2 to 4 are positives, 5 and 6 the least co-cited, 9 has no text, and 30 to 39 are not co-cited."""
    counts = {2: 9, 3: 8, 4: 7, 5: 1, 6: 2, 7: 4, 8: 4, 9: 1}
    path = write_cocitations(tmp_path / "0.parquet", {(1, other): count for other, count in counts.items()})
    texts = [*range(1, 9), *range(30, 40)]
    rows = rows_of(sample("cocited", block([1], texts, [path]), per_query=3, min_count=5, hard=2))
    assert {row[1] for row in rows} == {2, 3, 4}
    assert {row[2] for row in rows if row[5] == "hard"} == {5, 6}
    assert [row[2] in range(30, 40) for row in rows if row[5] == "easy"] == [True]


def sampled_from(path, queries, texts=range(1, 40), **chosen):
    return sample("citations", block(queries, texts, [path]), **{"per_query": 5, "easy": 3} | chosen)


def test_queries_are_counted_with_the_reason_why_they_cannot_be_served(tmp_path):
    path = write_edges(tmp_path / "0", {(1, 2), (2, 3), (4, 50), (5, 6)})
    sampled = sampled_from(path, [1, 4, 5, 13], easy=0, per_query=1)
    assert unserved(sampled) == {
        "no citations": 1,
        "no citation of a paper with a text": 1,
        "no paper two citations away": 1,
    }


def test_buckets_of_the_edges_make_no_difference(tmp_path):
    citations = {(query, query + step) for query in range(1, 20) for step in (1, 2, 3)}
    whole = write_edges(tmp_path / "whole", citations)
    parts = [write_edges(tmp_path / str(b), {edge for edge in citations if edge[0] % 2 == b}) for b in (1, 0)]
    triplets = [
        sample("citations", block([1, 2, 3], range(1, 40), given), per_query=5, easy=3).rows
        for given in ([whole], parts)
    ]
    assert triplets[0].equals(triplets[1])


def test_sources_of_another_table_are_named(tmp_path):
    path = write_edges(tmp_path / "edges.parquet", {(1, 2)})
    with pytest.raises(InputError, match=r"draws from the table cocitations; .*edges\.parquet"):
        sample("cocited", block([1], [2, 3], [path]), per_query=1)


def examples_in(sampled):
    rows = sampled.rows.to_pylist()
    return [
        (
            row["query"],
            (row.get("aspect"), row["positives"], list(zip(row["negatives"], row["negative_kinds"], strict=True))),
        )
        for row in rows
    ]


def check(folder, name, citations, queries, texts, relabel, chosen, defined, aspects):
    citations = {(relabel(one), relabel(other)): intents for (one, other), intents in citations.items()}
    queries, texts = set(map(relabel, queries)), set(map(relabel, texts))
    given_block = block(queries, texts, [write_edges(folder / "0.parquet", citations, citations)])
    sampled = sample(name, given_block, **chosen)
    drawn = draw(given_block, chosen["easy"] * len(aspects), "easy negatives").papers
    asked = SimpleNamespace(**{"linked": 0, "two_away": 0, "two_away_by": "any", "complete": False} | chosen | defined)
    expected = [
        (query, example)
        for query, papers in zip(sorted(queries), drawn.tolist(), strict=True)
        for example in examples_of(query, citations, [p for p in papers if p > 0], asked, texts, aspects)
    ]
    assert examples_in(sampled) == expected
    assert sum(unserved(sampled, "an example").values()) == len(queries - {query for query, _ in expected})


@given(
    CITATIONS,
    st.sets(PAPERS, min_size=1),
    st.sets(PAPERS),
    st.fixed_dictionaries({**COUNTS, "hard": st.integers(0, 3)}),
    st.sampled_from(RELABELLINGS),
)
def test_every_undirected_example_is_as_defined(tmp_path_factory, citations, queries, texts, chosen, relabel):
    folder, defined = tmp_path_factory.mktemp("edges"), {"two_away": chosen["hard"]}
    check(folder, "undirected", citations, queries, texts, relabel, chosen, defined, (None,))


@given(
    CITATIONS,
    st.sets(PAPERS, min_size=1),
    st.sets(PAPERS),
    st.fixed_dictionaries(
        {
            **COUNTS,
            "linked": st.integers(0, 3),
            "two_away": st.integers(1, 3),
            "two_away_by": st.sampled_from(["another", "any"]),
            "complete": st.booleans(),
            "miscellaneous": st.booleans(),
        }
    ),
    st.sampled_from(RELABELLINGS),
)
def test_every_example_of_an_aspect_is_as_defined(tmp_path_factory, citations, queries, texts, chosen, relabel):
    if not any(citations.values()):
        return
    aspects = (*INTENTS, "miscellaneous") if chosen["miscellaneous"] else INTENTS
    check(tmp_path_factory.mktemp("edges"), "aspects", citations, queries, texts, relabel, chosen, {}, aspects)


def examples_from(path, name, queries, **chosen):
    return sample(name, block(queries, range(1, 60), [path]), **chosen)


def test_a_query_needs_a_positive_in_each_aspect_unless_told_otherwise(tmp_path):
    citations = {(1, 2): {"background"}, (1, 3): {"methodology"}}
    path = write_edges(tmp_path / "0", citations, citations)
    with_all = examples_from(path, "aspects", [1, 50])
    assert with_all.rows.num_rows == 0
    assert unserved(with_all, "an example") == {"no positive in each aspect": 1, "no citations": 1}
    some = examples_from(path, "aspects", [1], complete=False)
    assert some.rows["aspect"].to_pylist() == ["background", "methodology"]
    assert some.omissions["queries with an example, but none of result"] == 1


def test_paired_each_positive_has_one_negative_and_few_are_used_again_where_asked_for(tmp_path):
    citations = {(1, 2): set(), (3, 1): set(), (2, 4): set(), (2, 5): set()}
    path = write_edges(tmp_path / "0", citations, citations)
    pairs = examples_from(path, "undirected", [1], paired=True)
    assert [
        (len(p), len(n)) for p, n in zip(*(pairs.rows[c].to_pylist() for c in ("positives", "negatives")), strict=True)
    ] == [(1, 1)] * 2
    again = examples_from(path, "undirected", [1], paired=True, oversample=True).rows
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


def test_a_corpus_without_intents_is_refused_with_what_to_use_instead(tmp_path):
    path = write_edges(tmp_path / "0", {(1, 2), (2, 3)})
    with pytest.raises(InputError, match=r"No citation of the graph has an intent, .* the sampler undirected"):
        examples_from(path, "aspects", [1])
