"""DORIS-MAE: aspects add up to grades, pools are ranked by the cosine, and what is wrong with its file."""

import json

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.folders import BenchmarkFolder, scores_of, write_vectors

from cocite.config.benchmarks import declared
from cocite.core.errors import InputError
from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import embedded

FILE = "DORIS-MAE_dataset_v1.json"
RUN = Run(model="m", training_seed=0, benchmark="b", modes=["compat"], evaluation_seeds=[1])


def query(aspects, pool, text="I want. I need."):
    """A query as it is released; what is not read is there as well."""
    sentences = {"I want.": list(aspects), "I need.": []}
    given = {"query_text": text, "query_type": "NLP", "aspects": aspects, "candidate_pool": list(pool)}
    return {**given, "sent2aspect_id": sentences, "aspect_id2sent": {aspect: ["I want."] for aspect in aspects}}


def abstract(number, **more):
    given = {"abstract_id": number, "title": f"t{number}", "original_abstract": f"On {number}\nwe say more."}
    return {**given, "url": f"http://arxiv.org/abs/{number}", "masked_abstract": "", **more}


def scores(**of_aspects):
    """Annotations: of each aspect, a score for the abstracts 0, 1, 2, …; none where it is None."""
    return [
        {"aspect_id": aspect[1:], "abstract_id": number, "score": score, "reasoning": "…"}
        for aspect, found in of_aspects.items()
        for number, score in enumerate(found)
        if score is not None
    ]


def fill(folder, queries, annotations, corpus=range(5), **more):
    names = {"aspect2aspect_id": {"on kernels": "1"}, "aspect_id2aspect": {"1": "on kernels"}}
    lists = {"Query": queries, "Corpus": [abstract(number) for number in corpus], "Annotation": annotations}
    folder.write_text(FILE, json.dumps({**names, **lists, **more}))


@pytest.fixture
def doris(tmp_path):
    """Query 0 has an aspect, 1, with a sub-aspect, 7, and another aspect, 2; the second query has the aspect 2."""
    folder = BenchmarkFolder(tmp_path, "doris_mae")
    annotations = scores(a1=[2, 1, 0, 0], a7=[1, 1, 1, None], a2=[2, 1, 1, 0, 1])
    fill(folder, [query({"1": ["7"], "2": []}, range(4)), query({"2": []}, [3, 4], "Other.")], annotations)
    return folder


def test_scores_over_aspects_and_sub_aspects_add_up_and_a_mean_of_1_is_relevant(doris):
    benchmark = doris.prepare()
    assert benchmark.judgements == {
        # 0: 2 + 1 + 2 of three aspects; 1: 1 + 1 + 1; 2: 0 + 1 + 1; 3: nothing.
        "doris_mae_graded": {"query-0": {"0": 5, "1": 3, "2": 2, "3": 0}, "query-1": {"3": 0, "4": 1}},
        "doris_mae": {"query-0": {"0": 1, "1": 1, "2": 0, "3": 0}, "query-1": {"3": 0, "4": 1}},
    }
    assert doris.documents()["1"] == ("t1", "On 1 we say more.")
    assert doris.documents()["query-1"] == ("Other.", None)
    assert doris.omitted() == {"aspect of a candidate without a score (counts 0)": 1}


def test_an_aspect_that_is_named_twice_counts_once(doris):
    fill(doris, [query({"1": ["2", "2"], "2": []}, [0])], scores(a1=[1], a2=[2]))
    assert doris.prepare("doris_mae_graded").judgements["doris_mae_graded"] == {"query-0": {"0": 3}}


def test_a_query_without_a_relevant_candidate_is_graded_and_left_out_of_recall(doris):
    fill(doris, [query({"1": [], "2": []}, [0, 1]), query({"1": []}, [1])], scores(a1=[1, 1], a2=[0, 0]))
    benchmark = doris.prepare()
    assert benchmark.judgements["doris_mae"] == {"query-1": {"1": 1}}
    assert benchmark.judgements["doris_mae_graded"].keys() == {"query-0", "query-1"}
    assert doris.omitted()["task doris_mae: query without a relevant candidate (left out)"] == 1


def test_abstracts_of_no_pool_are_left_out_and_a_score_that_is_repeated_counts_once(doris):
    fill(doris, [query({"1": []}, [0])], [*scores(a1=[2]), *scores(a1=[1, 1])], corpus=range(50))
    assert doris.prepare("doris_mae_graded").judgements == {"doris_mae_graded": {"query-0": {"0": 2}}}
    assert doris.documents().keys() == {"0", "query-0"}
    assert doris.omitted() == {"score that is repeated (the first counts)": 1, "document that no task asks for": 49}


def test_pools_are_ranked_by_the_cosine(tmp_path):
    """Twenty abstracts on a quarter circle, the first of them the nearest in direction and the farthest in distance."""
    folder = BenchmarkFolder(tmp_path, "doris_mae")
    # By rank: 2 0 2 0 0 1, and nothing after that.
    fill(folder, [query({"1": []}, range(20))], scores(a1=[2, 0, 2, 0, 0, 1, *[0] * 14]), corpus=range(20))
    benchmark = folder.prepare()
    angles = {str(number): np.pi * (number + 1) / 50 for number in range(20)}
    vectors = {name: [(30 - int(name)) * np.cos(at), (30 - int(name)) * np.sin(at)] for name, at in angles.items()}
    score = embedded(write_vectors(tmp_path, {**vectors, "query-0": [1.0, 0.0]}), RUN)
    found = scores_of(score(declared("doris_mae"), benchmark))
    assert found["recall_5"] == pytest.approx(100 * 2 / 3)
    assert found["recall_20"] == 100
    assert found["Rprec"] == pytest.approx(100 * 2 / 3)
    assert found["map"] == pytest.approx(100 * (1 + 2 / 3 + 3 / 6) / 3)
    graded = scores_of(score(declared("doris_mae_graded"), benchmark))
    second = 1 / np.log2(3)
    assert graded["ndcg_10%"] == pytest.approx(100 * 2 / (2 + 2 * second))  # the first two of twenty
    assert graded["ndcg_10%_exp"] == pytest.approx(100 * (4 + second) / (4 + 4 * second))
    assert graded["recip_rank_10_best"] == 100


def measured(grades, *metrics):
    run = {"q": {str(place): -float(place) for place in range(len(grades))}}
    found = measure_rankings({"q": {str(place): grade for place, grade in enumerate(grades)}}, run, metrics)
    return {metric: of["q"] for metric, of in found.items()}


def test_the_reciprocal_rank_is_that_of_the_highest_grade_among_ten():
    assert measured([1, 4, 5, 5], "recip_rank_10_best")["recip_rank_10_best"] == pytest.approx(100 / 3)
    assert measured([1] * 10 + [2], "recip_rank_10_best")["recip_rank_10_best"] == 0


@given(st.lists(st.integers(0, 12), min_size=10, max_size=45))
def test_the_metrics_of_grades_are_what_loops_give(grades):
    found = measured(grades, "ndcg_10%", "ndcg_10%_exp", "recip_rank_10_best")
    depth = int(0.1 * len(grades))
    for metric, gain in (("ndcg_10%", lambda grade: grade), ("ndcg_10%_exp", lambda grade: 2**grade)):

        def total(order, gain=gain):
            return sum(gain(grade) / np.log2(2 + place) for place, grade in enumerate(order[:depth]))

        best = total(sorted(grades, reverse=True))
        assert found[metric] == pytest.approx(100 * total(grades) / best if best else 0)
    firsts = [place for place, grade in enumerate(grades[:10], 1) if grade == max(grades)]
    assert found["recip_rank_10_best"] == pytest.approx(100 / firsts[0] if firsts else 0)


@given(st.lists(st.integers(0, 1), min_size=5, max_size=45).filter(any))
def test_the_metrics_of_relevant_candidates_are_those_of_trec_eval(relevant):
    metrics = ("recall_5", "recall_20", "Rprec", "map")
    judged = {"q": {str(place): grade for place, grade in enumerate(relevant)}}
    run = {"q": {str(place): 100.0 - place for place in range(len(relevant))}}
    expected = pytrec_eval.RelevanceEvaluator(judged, set(metrics)).evaluate(run)["q"]
    assert measured(relevant, *metrics) == pytest.approx({metric: 100 * expected[metric] for metric in metrics})


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"Query": []}, "the list Query is missing or empty"),
        ({"Query": [3]}, "Query[0]: must be an object, not 3"),
        ({"Query": [query({}, [0])]}, "Query[0]: aspects is empty, so that no candidate can be graded"),
        ({"Query": [query({"1": "7"}, [0])]}, "Query[0], aspects: 1 must be a list of ids, not '7'"),
        ({"Query": [query({"1": []}, [0], None)]}, "Query[0]: the key 'query_text' is missing or null"),
        ({"Query": [query({"1": []}, [[0]])]}, "Query[0]: candidate_pool must be a list of ids, not [[0]]"),
        ({"Query": [query({"1": []}, [99])]}, "Query[0]: no text for the document '99'; 1 of 2 mentions"),
        ({"Annotation": scores(a1=[3])}, "Annotation[0]: score must be 0, 1 or 2, not 3"),
        ({"Annotation": scores(a1=["2"])}, "Annotation[0]: score must be 0, 1 or 2, not '2'"),
        ({"Annotation": [{"aspect_id": "1", "score": 1}]}, "Annotation[0]: the key 'abstract_id' is missing or null"),
        ({"Corpus": [{"title": "t"}]}, "Corpus[0]: the key 'abstract_id' is missing or null"),
        ({"Corpus": [abstract(0, title=1)]}, "Corpus[0]: title must be a text, not 1"),
        (
            {"Corpus": [abstract(0, title="", original_abstract=None)]},
            "none of the 1 documents of the task doris_mae has a title or an abstract",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(doris, lists, message):
    fill(doris, [query({"1": []}, [0])], scores(a1=[2]), **lists)
    with pytest.raises(InputError) as error:
        doris.prepare("doris_mae")
    assert message in str(error.value)


def test_a_missing_file_is_named_and_one_that_is_no_json_is_reported(doris):
    doris.write_text(FILE, "{broken")
    with pytest.raises(InputError, match=rf"{FILE}: not JSON"):
        doris.prepare()
    (doris.root / FILE).unlink()
    with pytest.raises(InputError, match=rf"{FILE} does not exist"):
        doris.prepare()
