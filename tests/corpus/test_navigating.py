"""Kernels find their way past values of JSON without reading them, whatever strings hold and wherever words begin."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cocite.corpus.ingest.scanning import overlapping_words
from cocite.corpus.works.lanes import U
from cocite.corpus.works.navigating import after_value

TEXTS = st.text('"\\{}[],: a', max_size=80)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda values: st.lists(values, max_size=5) | st.dictionaries(TEXTS, values, max_size=4),
    max_leaves=12,
)


def end_of(text, start):
    """Where the kernel says that the value at `start` ends."""
    words = overlapping_words(np.frombuffer(text + bytes(128), dtype=np.uint8).copy())
    return int(after_value(words, U(start), U(len(text))))


@given(VALUES, st.integers(0, 70), st.text(",]} \n", min_size=1, max_size=3))
def test_what_follows_a_value_is_found_whatever_the_value_holds(value, start, rest):
    written = json.dumps(value, separators=(",", ":")).encode()
    assert end_of(b" " * start + written + rest.encode(), start) == start + len(written)


@given(st.lists(TEXTS, min_size=1, max_size=5), st.integers(1, 40))
def test_a_list_that_is_not_closed_ends_with_the_text(texts, cut):
    written = json.dumps(texts).encode()
    whole = written[: max(1, len(written) - cut)]
    assert end_of(whole, 0) == len(whole)
