"""Rankings: the measures by hand, ties, missing vectors, reviewers."""

import math

import numpy as np
import pytest
import pytrec_eval

from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.ranking import by_cosine, by_distance, rank_candidates, rank_reviewers
from cocite.evaluation.scored import Vectors


def vectors(**rows: list[float]) -> Vectors:
    return Vectors({name: row for row, name in enumerate(rows)}, np.array(list(rows.values()), np.float32))


def test_average_precision_and_ndcg_by_hand():
    values = measure_rankings(
        {"q": {"a": 1, "b": 0, "c": 1}}, {"q": {"a": -1.0, "b": -2.0, "c": -3.0}}, ["map", "ndcg"]
    )
    assert values["map"]["q"] == pytest.approx(100 * (1 / 1 + 2 / 3) / 2)
    assert values["ndcg"]["q"] == pytest.approx(100 * (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3)))
    graded = measure_rankings({"q": {"a": 1, "b": 2}}, {"q": {"a": -1.0, "b": -2.0}}, ["ndcg"])
    assert graded["ndcg"]["q"] == pytest.approx(100 * (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3)))


def test_measures_equal_trec_eval_where_nothing_ties():
    draw = np.random.default_rng(5)
    judgements = {f"q{q}": {f"d{d}": int(draw.integers(3)) for d in range(12)} for q in range(6)}
    run = {
        query: dict(zip(found, draw.permutation(12).astype(float), strict=True)) for query, found in judgements.items()
    }
    metrics = ["map", "ndcg", "P_5", "P_10", "recall_5", "Rprec"]
    reference = pytrec_eval.RelevanceEvaluator(judgements, set(metrics)).evaluate(run)
    for metric, values in measure_rankings(judgements, run, metrics).items():
        assert values == {query: pytest.approx(100 * reference[query][metric]) for query in judgements}


def test_differences_below_single_precision_still_rank():
    run = {f"q{q}": {"a": 1.0 + 1e-12, "b": 1.0} for q in range(20)}
    values = measure_rankings({query: {"a": 1, "b": 0} for query in run}, run, ["map"])["map"]
    assert set(values.values()) == {100}


def test_ties_favour_no_side_of_the_ids():
    queries = [f"q{q}" for q in range(2000)]
    run = {query: {"1": 0.0, "2": 0.0} for query in queries}
    low, high = (
        np.mean(list(measure_rankings(dict.fromkeys(queries, judged), run, ["map"])["map"].values()))
        for judged in ({"1": 1, "2": 0}, {"1": 0, "2": 1})
    )
    assert low == pytest.approx(75, abs=2)
    assert low + high == pytest.approx(150)


def test_candidates_are_ranked_by_distance_not_by_angle_and_the_cosine_to_zeros_is_zero():
    embedded = vectors(q=[1.0, 0.0], near=[1.0, 0.5], aligned=[9.0, 0.0], empty=[0.0, 0.0])
    assert by_distance(embedded)("q", ["near", "aligned"]).tolist() == [-0.5, -8.0]
    assert by_cosine(embedded)("q", ["near", "aligned", "empty"]) == pytest.approx([1 / math.sqrt(1.25), 1.0, 0.0])


def test_a_candidate_without_vector_counts_as_not_found():
    embedded = vectors(q=[0.0], b=[1.0])
    judgements = {"q": {"a": 1, "b": 1}, "unknown": {"b": 1}}
    run = rank_candidates(judgements, by_distance(embedded), embedded.rows)
    assert run == {"q": {"b": -1.0}}
    assert measure_rankings(judgements, run, ["map"])["map"] == {"q": pytest.approx(50)}


def test_a_reviewer_scores_the_mean_of_the_three_nearest_papers():
    embedded = vectors(q=[1.0, 0.0], east=[2.0, 0.0], north=[0.0, 3.0], west=[-1.0, 0.0], south=[0.0, -1.0])
    reviewers = {"many": {"east", "north", "west", "south"}, "one": {"west"}, "none": {"lost"}}
    judgements = {"q": {"many": 1, "one": 0, "none": 0}}
    run = rank_reviewers(judgements, reviewers, by_cosine(embedded), embedded.rows)
    assert run["q"] == {"many": pytest.approx((1 + 0 + 0) / 3), "one": pytest.approx(-1)}
