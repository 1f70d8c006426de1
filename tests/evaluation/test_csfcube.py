"""CSFCube: facets as tasks, graded candidates, the metrics of its evaluation, and what is wrong with its files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.folders import BenchmarkFolder, scores_of, write_vectors

from cocite.config.benchmarks import tasks_of
from cocite.config.benchmarks.csfcube import RELEASED, CsfCube
from cocite.core.errors import InputError
from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.scored import Run, UnscorableError
from cocite.evaluation.scoring import embedded

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


def test_a_grade_may_be_written_as_a_decimal_and_one_below_0_counts_as_0(csfcube):
    judge(csfcube, "method", q0={"1": 2.0, "2": -1})
    assert csfcube.prepare().judgements == {"csfcube_method": {"0": {"1": 2, "2": 0}}}


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
        ({"0": {"cands": ["1"], "relevance_adju": [True]}}, "relevance_adju must be a list of grades"),
        ({"0": {"cands": ["1"], "relevance_adju": [1.5]}}, "relevance must be a whole number, not 1.5"),
        ({"0": {"cands": ["1"]}}, "the key 'relevance_adju' is missing or null"),
        ({"0": {"cands": [True], "relevance_adju": [1]}}, "cands must be a list of ids, not "),
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


@pytest.mark.parametrize(
    ("abstract", "said"),
    [
        ("One text.", r"must be a list of sentences, not 'One text\.'"),
        (0, "must be a list of sentences, not 0"),
        (["\ud83d"], "holds half of a surrogate pair"),
    ],
)
def test_an_abstract_that_is_no_list_of_sentences_is_reported(csfcube, abstract, said):
    csfcube.write_lines("abstracts-csfcube-preds.jsonl", {"paper_id": "1", "title": "t", "abstract": abstract})
    judge(csfcube, "result", q0={"1": 2})
    with pytest.raises(InputError, match=rf"line 1: abstract {said}"):
        csfcube.prepare()


def test_of_a_candidate_that_comes_again_the_first_grade_counts(csfcube):
    judged = {"0": {"cands": ["1", "1", "2"], "relevance_adju": [3, 0, 1]}}
    csfcube.write_text("test-pid2anns-csfcube-method.json", json.dumps(judged))
    assert csfcube.prepare().judgements == {"csfcube_method": {"0": {"1": 3, "2": 1}}}
    assert csfcube.omitted()["task csfcube_method: repeated row (the first counts)"] == 1


def test_a_query_is_none_of_its_own_candidates(csfcube):
    judge(csfcube, "method", q0={"0": 3, "1": 2, "2": 0}, q5={"6": 1})
    assert csfcube.prepare().judgements == {"csfcube_method": {"0": {"1": 2, "2": 0}, "5": {"6": 1}}}
    assert csfcube.omitted()["task csfcube_method: query among its own candidates (left out)"] == 1


FOLDED = {"0": {"1": 3, "2": 0}, "1": {"2": 3, "3": 0}, "2": {"3": 0, "4": 2}, "3": {"4": 0, "5": 2}, "4": {"5": 2}}
"""Judgements of one facet; the vectors below rank the candidate with the smaller number first."""


OVER_FOLDS = [f"{metric}_folds" for metric in RELEASED]


def fold(folder, first, second, facet="method", **more):
    named = [[f"{each}_{facet}" for each in ids] for ids in (first, second)]
    of_facet = dict(zip(("fold1_test", "fold2_test"), named, strict=True))
    of_facet |= {"fold1_dev": of_facet["fold2_test"], "fold2_dev": of_facet["fold1_test"]}
    folder.write_text("evaluation_splits.json", json.dumps({facet: of_facet, **more}))


def scored(folder, tmp_path, benchmark, *, folds, name="csfcube_method"):
    """The scores of a task by vectors that grow with the number of a paper, and what each query counted for."""
    entry = {"kind": "csfcube", "folder": str(folder.root), "tasks": [name], "folds": folds}
    [task] = tasks_of(entry)
    vectors = {each: np.array([float(each[0])], "f4") for each in folder.documents()}
    run = Run(model="m", training_seed=1, benchmark="b", modes=["compat"], evaluation_seeds=[1])
    return embedded(write_vectors(tmp_path, vectors), run)(task, benchmark)


def test_the_mean_of_two_test_folds_is_what_the_released_evaluation_prints(csfcube, tmp_path):
    judge(csfcube, "method", **{f"q{query}": grades for query, grades in FOLDED.items()})
    fold(csfcube, "012", "34")
    benchmark = csfcube.prepare(metrics=OVER_FOLDS)
    assert benchmark.folds == {"csfcube_method": {"0": 1, "1": 1, "2": 1, "3": 2, "4": 2}}
    # Average precision of the queries: 1, 1, ½ in the first fold and ½, 1 in the second.
    alike, folded = (scored(csfcube, tmp_path, benchmark, folds=folds) for folds in (False, True))
    assert scores_of(alike)["map"] == pytest.approx(100 * (1 + 1 + 0.5 + 0.5 + 1) / 5)
    assert scores_of(folded)["map_folds"] == pytest.approx(100 * ((1 + 1 + 0.5) / 3 + (0.5 + 1) / 2) / 2)
    assert set(scores_of(folded)) == {f"{metric}_folds" for metric in RELEASED}
    weights = {row[7]: row[9] for row in folded.outcomes if row[4] == "map_folds"}
    assert weights == {"0": 1 / 3, "1": 1 / 3, "2": 1 / 3, "3": 1 / 2, "4": 1 / 2}


def test_all_facets_together_are_a_task_where_it_is_asked_for(csfcube, tmp_path):
    for facet in ("background", "method", "result"):
        judge(csfcube, facet, q0={"1": 3, "2": 0} if facet == "method" else {"1": 0, "2": 3}, q3={"4": 2})
    assert csfcube.prepare().judgements.keys() == {f"csfcube_{facet}" for facet in ("background", "method", "result")}
    names = [f"{query}_{facet}" for facet in ("background", "method", "result") for query in "03"]
    of_all = {"fold1_test": names[:2], "fold2_test": names[2:]}
    fold(csfcube, "0", "3", all=of_all)
    benchmark = csfcube.prepare("csfcube_all", metrics=OVER_FOLDS)
    judged = benchmark.judgements["csfcube_all"]
    assert (judged["0_method"], judged["0_result"]) == ({"1": 3, "2": 0}, {"1": 0, "2": 3})
    assert csfcube.documents()["0_method"] == csfcube.documents()["0"]
    found = scores_of(scored(csfcube, tmp_path, benchmark, folds=True, name="csfcube_all"))
    # Query 0 has an average precision of ½ but for its method; query 3 always has 1.
    assert found["map_folds"] == pytest.approx(100 * ((0.5 + 1) / 2 + (1 + 1 + 0.5 + 1) / 4) / 2)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("0", "", "method: no test fold has the query '3_method'"),
        ("03", "3", "method: the query '3_method' is in a test fold twice"),
    ],
)
def test_a_query_is_in_one_fold(csfcube, first, second, message):
    judge(csfcube, "method", q0={"1": 3}, q3={"4": 2})
    fold(csfcube, first, second)
    with pytest.raises(InputError, match=rf"evaluation_splits\.json, {message}"):
        csfcube.prepare(metrics=OVER_FOLDS)
    assert csfcube.prepare().folds == {}  # no metric needs them


def test_folds_that_are_asked_for_must_be_there(csfcube, tmp_path):
    judge(csfcube, "method", q0={"1": 3}, q3={"4": 2})
    benchmark = csfcube.prepare(metrics=OVER_FOLDS)
    with pytest.raises(UnscorableError, match="csfcube_method have no test folds, over which map_folds is a mean"):
        scored(csfcube, tmp_path, benchmark, folds=True)
    csfcube.write_text("evaluation_splits.json", "{}")
    with pytest.raises(InputError, match=r"evaluation_splits\.json: the key 'method', of the folds of this facet, is"):
        csfcube.prepare(metrics=OVER_FOLDS)


def test_a_folder_is_checked_for_its_files_before_anything_runs(csfcube):
    def faults(**more):
        entry = CsfCube.model_validate({"kind": "csfcube", "folder": str(csfcube.root), **more})
        return [fault.partition("has no file ")[2] for fault in entry.faults("benchmarks.facets", None)]

    assert faults() == ["test-pid2anns-csfcube-background.json."]
    judge(csfcube, "result", q0={"1": 3})
    assert faults() == []
    assert faults(tasks=["csfcube_method"], folds=True) == [
        "evaluation_splits.json.",
        "test-pid2anns-csfcube-method.json.",
    ]
    lacking = ["test-pid2anns-csfcube-background.json.", "test-pid2anns-csfcube-method.json."]
    assert faults(tasks=["csfcube_all"]) == lacking
    (csfcube.root / "abstracts-csfcube-preds.jsonl").unlink()
    assert faults() == ["abstracts-csfcube-preds.jsonl."]
