"""Ranking the given candidates of each query by a similarity, and what the rankings score."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.evaluation.benchmark import Benchmark, Judgements
from cocite.evaluation.metrics import ADJUSTED, Ranked, measure_rankings
from cocite.evaluation.scored import Item, Scored
from cocite.evaluation.vectors import Vectors

Similarity = Callable[[str, Sequence[str]], NDArray[np.floating]]
"""From a query and some documents to a similarity of each; more is nearer."""

PAPERS_OF_A_REVIEWER = 3
"""A reviewer's score is the mean over so many of the papers, the nearest ones."""


def by_distance(vectors: Vectors) -> Similarity:
    """Minus the Euclidean distance."""

    def similarity(query: str, documents: Sequence[str]) -> NDArray[np.floating]:
        return -np.linalg.norm(vectors.of(documents) - vectors.of([query]), axis=1)

    return similarity


def by_cosine(vectors: Vectors) -> Similarity:
    """The cosine; 0 to a vector of zeros."""

    def similarity(query: str, documents: Sequence[str]) -> NDArray[np.floating]:
        matrix, [vector] = vectors.of(documents), vectors.of([query])
        norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector)
        return matrix @ vector / np.where(norms > 0, norms, 1.0)

    return similarity


def rank_candidates(
    judgements: Judgements, similarity: Similarity, known: Collection[str]
) -> dict[str, dict[str, float]]:
    """The similarity of each candidate to its query; documents that are not `known` are left out."""
    run = {}
    for query, relevance in judgements.items():
        candidates = [candidate for candidate in relevance if candidate in known]
        if query in known and candidates:
            run[query] = dict(zip(candidates, similarity(query, candidates).tolist(), strict=True))
    return run


def rank_reviewers(
    judgements: Judgements, reviewers: Mapping[str, set[str]], similarity: Similarity, known: Collection[str]
) -> dict[str, dict[str, float]]:
    """The score of each reviewer for a paper: the mean similarity of the reviewer's three nearest papers."""
    papers = {reviewer: sorted(paper for paper in theirs if paper in known) for reviewer, theirs in reviewers.items()}
    run = {}
    for query, relevance in judgements.items():
        candidates = [reviewer for reviewer in relevance if papers[reviewer]]
        if query in known and candidates:
            run[query] = {
                reviewer: float(np.sort(similarity(query, papers[reviewer]))[-PAPERS_OF_A_REVIEWER:].mean())
                for reviewer in candidates
            }
    return run


def score_ranking(scored: Scored, benchmark: Benchmark, similarity: Similarity, known: Collection[str]) -> None:
    """Score a ranking of given candidates by any similarity, over the documents that are `known`."""
    judgements = benchmark.judgements[scored.task.name]
    if scored.task.kind == "reviewers":
        score_ranked(scored, benchmark, rank_reviewers(judgements, benchmark.reviewers, similarity, known))
    else:
        score_ranked(scored, benchmark, rank_candidates(judgements, similarity, known))


def score_ranked(scored: Scored, benchmark: Benchmark, ranked: Ranked) -> None:
    """Score what was ranked for each query.

    The value is the mean over the queries; of an adjusted metric, weighted by the inverse propensity of each query.
    What was clicked was seen, and what stood first was seen most often: a query whose click had a propensity of p
    stands for 1/p queries, and weights are normalised by their sum (Swaminathan & Joachims, 2015, "The Self-Normalized
    Estimator for Counterfactual Learning").
    """
    task = scored.task
    judgements = benchmark.judgements[task.name]
    for metric, values in measure_rankings(judgements, ranked, task.metrics).items():
        weights = benchmark.weights[task.name] if metric.endswith(ADJUSTED) else dict.fromkeys(values, 1.0)
        value = float(np.average(list(values.values()), weights=[weights[query] for query in values]))
        items: list[Item] = [(query, of_query, weights[query], [], []) for query, of_query in values.items()]
        scored.add(metric, value, items, len(judgements))
