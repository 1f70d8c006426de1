"""Texts that are no papers have ids of their content."""

import hashlib

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.written_ids import sql_of_text_id, text_id, text_ids

TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=8)


def by_definition(title, abstract, is_query):
    kind = b"query" if is_query else b"document"
    content = b"\0".join([kind, (title or "").encode(), (abstract or "").encode()])
    return -1 - int(hashlib.new("md5", content, usedforsecurity=False).hexdigest(), 16) % 2**62


@given(TEXTS, TEXTS, st.booleans())
def test_an_id_follows_from_the_content_and_is_negative(title, abstract, is_query):
    found = text_id(title, abstract, is_query=is_query)
    assert found == by_definition(title, abstract, is_query)
    assert -(2**62) <= found < 0


@given(PAIRS, st.booleans())
def test_many_ids_are_those_of_each_text(pairs, is_query):
    titles, abstracts = ([pair[side] for pair in pairs] for side in (0, 1))
    expected = [by_definition(*pair, is_query) for pair in pairs]
    assert text_ids(titles, abstracts, is_query=is_query).tolist() == expected


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8), st.booleans())
def test_duckdb_computes_the_same_ids(pairs, is_query):
    columns = {name: pa.array([pair[side] for pair in pairs], pa.string()) for side, name in enumerate(("t", "a"))}
    texts = pa.table(columns)
    rows = duckdb.sql(f"SELECT {sql_of_text_id('t', 'a', is_query=is_query)} FROM texts").fetchall()
    assert texts is not None
    assert [row[0] for row in rows] == [by_definition(*pair, is_query) for pair in pairs]


def test_a_query_and_a_document_of_the_same_words_are_two_texts():
    assert text_id("citations", None, is_query=True) != text_id("citations", None, is_query=False)
    assert text_id("citations", None, is_query=True) == text_id("citations", "", is_query=True)
