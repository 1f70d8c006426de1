"""Examples of several positives and negatives hold their definitions on any graph of citations with intents."""

from types import SimpleNamespace

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS

from cocite.core.errors import InputError
from cocite.triplets.picking import draw

from .blocks import block, sample, unserved, write_edges
from .definitions import INTENTS, examples_of

PAPERS = st.integers(1, 14)
PAIRS = st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1])
CITATIONS = st.dictionaries(PAIRS, st.frozensets(st.sampled_from(INTENTS), max_size=2), min_size=1, max_size=70)
COUNTS = {"positives": st.integers(1, 4), "easy": st.integers(1, 3)}


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


def sampled_from(path, name, queries, **chosen):
    return sample(name, block(queries, range(1, 60), [path]), **chosen)


def test_a_query_needs_a_positive_in_each_aspect_unless_told_otherwise(tmp_path):
    citations = {(1, 2): {"background"}, (1, 3): {"methodology"}}
    path = write_edges(tmp_path / "0", citations, citations)
    with_all = sampled_from(path, "aspects", [1, 50])
    assert with_all.rows.num_rows == 0
    assert unserved(with_all, "an example") == {"no positive in each aspect": 1, "no citations": 1}
    some = sampled_from(path, "aspects", [1], complete=False)
    assert some.rows["aspect"].to_pylist() == ["background", "methodology"]
    assert some.omissions["queries with an example, but none of result"] == 1


def test_paired_each_positive_has_one_negative_and_few_are_used_again_where_asked_for(tmp_path):
    citations = {(1, 2): set(), (3, 1): set(), (2, 4): set(), (2, 5): set()}
    path = write_edges(tmp_path / "0", citations, citations)
    pairs = sampled_from(path, "undirected", [1], paired=True)
    assert [
        (len(p), len(n)) for p, n in zip(*(pairs.rows[c].to_pylist() for c in ("positives", "negatives")), strict=True)
    ] == [(1, 1)] * 2
    again = sampled_from(path, "undirected", [1], paired=True, oversample=True).rows
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
        sampled_from(path, "aspects", [1])
