"""SPECTER's sampling, and discrete co-citations, hold their definitions on any graph."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS

from cocite.core.errors import InputError

from .blocks import block, rows_of, sample, unserved, write_cocitations, write_edges
from .definitions import CHOSEN, MIXED, asked, check_triplets, from_citations, from_cocitations

PAPERS = st.integers(1, 14)
PAIRS = st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1])


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
