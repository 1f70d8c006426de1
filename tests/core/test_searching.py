"""The best answers of each query, kept block by block, are those of a plain sort of all."""

import numpy as np

from cocite.core.randomness import priorities
from cocite.core.searching import Answers


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
