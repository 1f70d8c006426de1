"""The words of texts are those of bm25s, whatever the texts are written in."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.words import counts_of, tokens_of, words_of

TEXTS = st.lists(
    st.text(st.characters(codec="utf-8") | st.sampled_from("aB_9 ,.-the İΣς²½é́ß日"), max_size=40)
    | st.lists(st.sampled_from(["The", "of", "an", "A", "map-reduce", "x", "xy", "naïve", "ΟΔΟΣ", "don't"])).map(
        " ".join
    ),
    max_size=6,
)


@given(TEXTS)
def test_listed_words_are_those_of_bm25s(texts):
    listed, expected = words_of(texts), tokens_of(texts)
    found = [[] for _ in texts]
    for row, number in zip(listed.rows.tolist(), listed.numbers.tolist(), strict=True):
        found[row].append(listed.distinct[number].as_py())
    assert found == expected
    assert listed.lengths.tolist() == [len(each) for each in expected]
    assert len(listed.distinct.unique()) == len(listed.distinct)


def test_words_of_a_vocabulary_are_counted_in_each_text():
    words = words_of(["b aa aa", "", "aa cc bb", "é"])
    assert counts_of(words, pa.array(["aa", "bb"])).toarray().tolist() == [[2, 0], [0, 0], [1, 1], [0, 0]]
