"""Abstracts from inverted indexes: the kernel says what a plain definition says, of whatever it is given."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cocite.corpus.ingest.accounting import MalformedError
from cocite.corpus.works.json_texts import LEFT_TO_PYTHON, NO_INDEX, abstracts_of
from cocite.corpus.works.parquet import words_of
from cocite.corpus.works.work_records import abstract_of


def by_kernel(*texts):
    """The abstract of each index; LEFT_TO_PYTHON where the kernel does not say."""
    words, bounds = words_of(pa.array(texts, pa.string()))
    text, ends, outcomes = abstracts_of(words, (bounds[:-1], bounds[1:]))
    written = [text[first:last].tobytes().decode() for first, last in pairwise(ends)]
    of_outcome = {NO_INDEX: lambda _: None, LEFT_TO_PYTHON: lambda _: LEFT_TO_PYTHON}
    return [of_outcome.get(int(outcome), str)(one) for outcome, one in zip(outcomes, written, strict=True)]


def by_definition(pairs):
    """The words of (word, positions) in the order of (position, word), each once at a position."""
    placed = {(place, word) for word, places in pairs for place in places or [] if place is not None}
    return " ".join(word for _, word in sorted(placed))


def as_json(pairs, *, ascii_only, separators, blank):
    """An object whose keys may repeat."""
    item, colon = separators
    dump = [
        json.dumps(word, ensure_ascii=ascii_only) + colon + json.dumps(places, separators=(item, ":"))
        for word, places in pairs
    ]
    return "{" + blank + (item + blank).join(dump) + blank + "}"


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.sampled_from(
    ["a", "b", "the", "", '"', "\\"]
)
PLACES = st.none() | st.lists(st.none() | st.integers(0, 12) | st.integers(0, 40_000), max_size=4)
PAIRS = st.lists(st.tuples(WORDS, PLACES), max_size=30)
STYLE = st.fixed_dictionaries(
    {
        "ascii_only": st.booleans(),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r ")]),
        "blank": st.sampled_from(["", " ", "\n\t"]),
    }
)


@given(st.lists(st.tuples(PAIRS, STYLE), min_size=1, max_size=4))
@example([([("b", [0, 2]), ("a", [0]), ("b", [1, 0])], {"ascii_only": True, "separators": (",", ":"), "blank": ""})])
@example([([("\U0001f600é", [3])], {"ascii_only": True, "separators": (",", ":"), "blank": ""})])
def test_an_index_gives_its_words_by_position_and_word(indexes):
    texts = [as_json(pairs, **style) for pairs, style in indexes]
    expected = [by_definition(pairs) for pairs, _ in indexes]
    assert [abstract_of(text) for text in texts] == expected
    for found, text in zip(by_kernel(*texts), expected, strict=True):
        assert found in (text, LEFT_TO_PYTHON)


@given(st.binary(max_size=40) | st.text('{}[]":,\\u0d8a1 null', max_size=40).map(str.encode))
def test_of_what_is_no_index_the_kernel_says_nothing(raw):
    index = b'{"a": [0], ' + raw
    array = pa.array([index], pa.binary()).view(pa.string())
    words, bounds = words_of(array)
    text, ends, outcomes = abstracts_of(words, (bounds[:-1], bounds[1:]))
    try:
        expected = abstract_of(index.decode())
    except (UnicodeDecodeError, MalformedError):
        assert outcomes.tolist() == [LEFT_TO_PYTHON]
    else:
        assert outcomes[0] == LEFT_TO_PYTHON or text[: ends[1]].tobytes().decode() == expected


@pytest.mark.parametrize(
    ("index", "abstract"),
    [
        ('{"is": [1], "This": [0], "text": [9]}', "This is text"),
        ('{"a": [0, 2], "b": [1]}', "a b a"),
        ('{"a": [0], "b": [1], "a": [2]}', "a b a"),
        ('{"b": [0], "a": [0]}', "a b"),
        ('{"a": [0, 0], "\\u0061": [0]}', "a"),
        ('{"a": null, "b": [null, 1, null]}', "b"),
        ('{"caf\\u00e9": [0], "\\ud83d\\ude00": [1]}', "café 😀"),
        ("{}", ""),
        ("null", None),
        (None, None),
    ],
)
def test_usual_indexes_are_read_by_the_kernel(index, abstract):
    assert by_kernel(index) == [abstract]


def test_an_abstract_of_many_words_is_read_as_well():
    places = np.random.default_rng(1).permutation(40_000).tolist()
    index = {f"w{place}": [place] for place in places}
    assert abstract_of(json.dumps(index)).split() == [f"w{place}" for place in range(40_000)]
    assert by_kernel(json.dumps(index)) == [LEFT_TO_PYTHON]
