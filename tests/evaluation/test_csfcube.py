"""CSFCube: facets as tasks, graded candidates, the metrics of its evaluation, and what is wrong with its files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.folders import BenchmarkFolder

from cocite.config.benchmarks.csfcube import CsfCube
from cocite.evaluation.metrics import measure_rankings
from cocite.ground.errors import InputError

LABELS = ["background_label", "method_label"]


@pytest.fixture
def csfcube(tmp_path):
    folder = BenchmarkFolder(tmp_path, "csfcube")
    rows = [
        {"paper_id": str(n), "title": f"t{n}", "abstract": [f"First of {n}.", " Second."], "pred_labels": LABELS}
        for n in range(7)
    ]
    folder.write_lines("abstracts-csfcube-preds.jsonl", *rows)
    return folder


def judge(folder, facet, **queries):
    judged = {
        query[1:]: {"cands": list(grades), "relevance_adju": list(grades.values())} for query, grades in queries.items()
    }
    folder.write_text(f"test-pid2anns-csfcube-{facet}.json", json.dumps(judged))


def test_a_facet_is_a_task_with_graded_candidates(csfcube):
    judge(csfcube, "method", q0={"1": 3, "2": 0}, q5={"6": 1})
    judge(csfcube, "result", q0={"1": 0, "3": 2})
    assert csfcube.prepare().judgements == {
        "csfcube_method": {"0": {"1": 3, "2": 0}, "5": {"6": 1}},
        "csfcube_result": {"0": {"1": 0, "3": 2}},
    }
    assert csfcube.documents()["1"] == ("t1", "First of 1. Second.")
    assert csfcube.omitted()["task csfcube_background absent"] == 1


def measured(grades, relevant_from=2):
    """The metrics of candidates with these grades, the nearest first."""
    [task] = [task for task in CsfCube.declared if task.name == "csfcube_method"]
    run = {"q": {str(place): -float(place) for place in range(len(grades))}}
    judgements = {"q": {str(place): grade for place, grade in enumerate(grades)}}
    return {name: of["q"] for name, of in measure_rankings(judgements, run, task.metrics, relevant_from).items()}


def test_the_metrics_are_those_of_hand_computed_examples():
    # Grades 3 0 2 1 2: relevant at ranks 1, 3 and 5.
    found = measured([3, 0, 2, 1, 2])
    assert found["map"] == pytest.approx(100 * (1 + 2 / 3 + 3 / 5) / 3)
    assert found["Rprec"] == pytest.approx(100 * 2 / 3)
    assert found["P_20"] == pytest.approx(100 * 3 / 20)
    assert found["recall_20"] == 100
    assert found["Rprec_csfcube"] == pytest.approx(100 * 3 / 5)
    gained = 3 + 0 + 2 / np.log2(3) + 1 / 2 + 2 / np.log2(5)
    ideal = 3 + 2 + 2 / np.log2(3) + 1 / 2
    assert found["ndcg_csfcube"] == pytest.approx(100 * gained / ideal)
    assert found["ndcg_20%_csfcube"] == 100  # the first of five
    assert measured([1, 0, 2, 1, 2])["ndcg_20%_csfcube"] == pytest.approx(100 / 2)


@given(st.lists(st.integers(0, 3), min_size=5, max_size=40))
def test_the_metrics_of_the_released_evaluation_are_what_loops_give(grades):
    found = measured(grades)
    relevant = [rank for rank, grade in enumerate(grades, 1) if grade >= 2]
    assert found["Rprec_csfcube"] == pytest.approx(100 * len(relevant) / relevant[-1] if relevant else 0)

    def gain(order, depth):
        return sum(grade / (1 if rank < 3 else np.log2(rank)) for rank, grade in enumerate(order[:depth], 1))

    for name, depth in (("ndcg_csfcube", len(grades)), ("ndcg_20%_csfcube", len(grades) // 5)):
        best = gain(sorted(grades, reverse=True), depth)
        assert found[name] == pytest.approx(100 * gain(grades, depth) / best if best else 0)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"0": {"cands": ["1"], "relevance_adju": [1, 2]}}, "has 1 cands and 2 grades in relevance_adju"),
        ({"0": {"cands": ["1"], "relevance_adju": ["high"]}}, "relevance_adju must be a list of grades"),
        ({"0": {"cands": ["1"]}}, "the key 'relevance_adju' is missing or null"),
        ({"0": {"cands": ["99"], "relevance_adju": [1]}}, "no text for the document '99'"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(csfcube, written, message):
    csfcube.write_text("test-pid2anns-csfcube-method.json", json.dumps(written))
    with pytest.raises(InputError, match=message) as error:
        csfcube.prepare("csfcube_method")
    assert "test-pid2anns-csfcube-method.json" in str(error.value)


def test_a_folder_without_a_facet_is_refused(csfcube):
    with pytest.raises(
        InputError, match="holds no facet; there must be files such as test-pid2anns-csfcube-background"
    ):
        csfcube.prepare()


def test_a_facet_that_is_asked_for_must_be_there(csfcube):
    judge(csfcube, "result", q0={"1": 2})
    with pytest.raises(InputError, match=r"test-pid2anns-csfcube-method\.json does not exist"):
        csfcube.prepare("csfcube_method")


def test_an_abstract_that_is_no_list_of_sentences_is_reported(csfcube):
    csfcube.write_lines("abstracts-csfcube-preds.jsonl", {"paper_id": "1", "title": "t", "abstract": "One text."})
    judge(csfcube, "result", q0={"1": 2})
    with pytest.raises(InputError, match=r"line 1: abstract must be a list of sentences, not 'One text\.'"):
        csfcube.prepare()
