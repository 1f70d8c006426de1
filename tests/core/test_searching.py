"""What a search counts, draws and ranks: words as bm25s has them, random choices, and each query's best answers."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.randomness import derive_seed, generator, priorities
from cocite.core.searching import Answers
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


def test_each_use_has_its_own_seed_and_generators_repeat():
    seeds = {derive_seed(seed, name) for seed in range(10) for name in ("a", "b", "ab")}
    assert len(seeds) == 30
    assert derive_seed(1, "a", "b") != derive_seed(1, "ab")
    assert generator(1, "step").integers(1 << 60) == generator(1, "step").integers(1 << 60)


def test_a_paper_keeps_its_priority_whoever_is_beside_it_and_a_pair_in_another_order_has_another():
    together = priorities(1, "step", np.array([5, 6, 7]))
    assert priorities(1, "step", np.array([6]))[0] == together[1]
    assert priorities(1, "step", np.array([1]), np.array([2])) != priorities(1, "step", np.array([2]), np.array([1]))


def test_priorities_are_uniform():
    drawn = priorities(3, "step", np.arange(100_000)) / 2.0**64
    assert abs(drawn.mean() - 0.5) < 0.005
    shares = np.histogram(drawn, bins=10, range=(0, 1))[0] / 100_000
    assert np.abs(shares - 0.1).max() < 0.006


def test_answers_are_in_the_order_of_their_similarity_and_ties_in_that_of_their_draw():
    draw = np.random.default_rng(1)
    nearness = draw.integers(-8, 1, (4, 60)).astype(np.float32) / 2
    nearness[:, :8] *= -0.0  # as near as 0.0
    nearness[2, 5:20] = -np.inf
    papers = draw.permutation(np.arange(100, 160))
    answers = Answers(np.arange(4), 7)
    for columns in np.split(np.arange(60), 5):
        answers.add((papers[columns], nearness[:, columns].copy()))
    drawn = dict(zip(papers.tolist(), priorities(0, "equal answers", papers).tolist(), strict=True))
    for query, found in answers.ranked().items():
        pairs = [(-each, drawn[paper], paper) for paper, each in zip(papers.tolist(), nearness[query], strict=True)]
        assert found.tolist() == [paper for far, _, paper in sorted(pairs) if far < np.inf][:7]
