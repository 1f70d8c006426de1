"""Benchmarks that rank pools: CSFCube's facets, DORIS-MAE's aspects and MDCR's fields, their metrics, and bad input."""

import json

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.folders import RUN, BenchmarkFolder, scored_by, scores_of, write_vectors

from cocite.config.benchmarks import declared
from cocite.config.benchmarks.by_aspect import RELEASED, CsfCube
from cocite.core.errors import InputError
from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.scored import UnscorableError
from cocite.evaluation.scoring import embedded

FACETS = ("background", "method", "result")
JUDGED, DORIS = "test-pid2anns-csfcube-{}.json", "DORIS-MAE_dataset_v1.json"
MDCR = "mdcr_test.json"


def measured(grades, metrics, relevant_from=1):
    """The metrics of candidates with these grades, the nearest first."""
    run = {"q": {str(place): -float(place) for place in range(len(grades))}}
    judgements = {"q": {str(place): grade for place, grade in enumerate(grades)}}
    return {name: of["q"] for name, of in measure_rankings(judgements, run, metrics, relevant_from).items()}


@pytest.fixture
def csfcube(tmp_path):
    folder = BenchmarkFolder(tmp_path, "csfcube")
    rows = ({"paper_id": str(n), "title": f"t{n}", "abstract": [f"First of {n}.", " Second."]} for n in range(7))
    folder.write_lines("abstracts-csfcube-preds.jsonl", *rows)
    return folder


def judge(folder, facet, **queries):
    judged = {q[1:]: {"cands": list(of), "relevance_adju": list(of.values())} for q, of in queries.items()}
    folder.write_text(JUDGED.format(facet), json.dumps(judged))


def test_a_facet_is_a_task_with_graded_candidates(csfcube):
    judge(csfcube, "method", q0={"1": 3, "2": 0}, q5={"6": 1})
    judge(csfcube, "result", q0={"1": 0, "3": 2})
    assert csfcube.prepare().judgements == {
        "csfcube_method": {"0": {"1": 3, "2": 0}, "5": {"6": 1}},
        "csfcube_result": {"0": {"1": 0, "3": 2}},
    }
    assert csfcube.documents()["1"] == ("t1", "First of 1. Second.")
    assert csfcube.omitted()["task csfcube_background absent"] == 1


@pytest.mark.parametrize(
    ("cands", "grades", "expected", "omitted"),
    [
        (["1", "2"], [2.0, -1], {"1": 2, "2": 0}, None),
        (["1", "1", "2"], [3, 0, 1], {"1": 3, "2": 1}, "repeated row (the first counts)"),
        (["0", "1", "2"], [3, 2, 0], {"1": 2, "2": 0}, "query among its own candidates (left out)"),
    ],
)
def test_grades_are_at_least_0_the_first_counts_and_a_query_is_no_candidate(csfcube, cands, grades, expected, omitted):
    csfcube.write_text(JUDGED.format("method"), json.dumps({"0": {"cands": cands, "relevance_adju": grades}}))
    assert csfcube.prepare("csfcube_method").judgements == {"csfcube_method": {"0": expected}}
    counts = {reason: count for reason, count in csfcube.omitted().items() if reason.startswith("task")}
    assert counts == ({f"task csfcube_method: {omitted}": 1} if omitted else {})


@given(st.lists(st.integers(0, 3), min_size=5, max_size=40))
def test_the_metrics_of_csfcube_are_those_of_trec_eval_and_what_loops_give(grades):
    found = measured(grades, declared("csfcube_method").metrics, relevant_from=2)
    run = {"q": {str(place): -float(place) for place in range(len(grades))}}
    judged = {"q": {str(place): grade for place, grade in enumerate(grades)}}
    of_trec = {"map", "Rprec", "P_20", "recall_20"}
    expected = pytrec_eval.RelevanceEvaluator(judged, of_trec, relevance_level=2).evaluate(run)["q"]
    assert {name: found[name] for name in of_trec} == pytest.approx({name: 100 * expected[name] for name in of_trec})
    relevant = [rank for rank, grade in enumerate(grades, 1) if grade >= 2]
    assert found["Rprec_csfcube"] == pytest.approx(100 * len(relevant) / relevant[-1] if relevant else 0)

    def gain(order, depth):
        return sum(grade / (1 if rank < 3 else np.log2(rank)) for rank, grade in enumerate(order[:depth], 1))

    for name, depth in (("ndcg_csfcube", len(grades)), ("ndcg_20%_csfcube", len(grades) // 5)):
        best = gain(sorted(grades, reverse=True), depth)
        assert found[name] == pytest.approx(100 * gain(grades, depth) / best if best else 0)


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
    [task] = CsfCube(kind="csfcube", folder=str(folder.root), tasks=(name,), folds=folds).scored_tasks
    return scored_by(tmp_path, {each: [float(each[0])] for each in folder.documents()}, task, benchmark)


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
    assert scores_of(folded)["P_20_folds"] == pytest.approx(100 / 20)  # each query has one relevant candidate
    weights = {row[7]: row[9] for row in folded.outcomes if row[4] == "map_folds"}
    assert weights == {"0": 1 / 3, "1": 1 / 3, "2": 1 / 3, "3": 1 / 2, "4": 1 / 2}


def test_all_facets_together_are_a_task_where_it_is_asked_for(csfcube, tmp_path):
    for facet in FACETS:
        judge(csfcube, facet, q0={"1": 3, "2": 0} if facet == "method" else {"1": 0, "2": 3}, q3={"4": 2})
    assert csfcube.prepare().judgements.keys() == {f"csfcube_{facet}" for facet in FACETS}
    names = [f"{query}_{facet}" for facet in FACETS for query in "03"]
    fold(csfcube, "0", "3", all={"fold1_test": names[:2], "fold2_test": names[2:]})
    benchmark = csfcube.prepare("csfcube_all", metrics=OVER_FOLDS)
    judged = benchmark.judgements["csfcube_all"]
    assert (judged["0_method"], judged["0_result"]) == ({"1": 3, "2": 0}, {"1": 0, "2": 3})
    assert csfcube.documents()["0_method"] == csfcube.documents()["0"]
    found = scores_of(scored(csfcube, tmp_path, benchmark, folds=True, name="csfcube_all"))
    # Query 0 has an average precision of ½ but for its method; query 3 always has 1.
    assert found["map_folds"] == pytest.approx(100 * ((0.5 + 1) / 2 + (1 + 1 + 0.5 + 1) / 4) / 2)


def test_a_query_is_in_one_fold_and_folds_that_are_asked_for_must_be_there(csfcube, tmp_path):
    judge(csfcube, "method", q0={"1": 3}, q3={"4": 2})
    for splits, message in (
        ({"method": {"fold1_test": ["0_method"], "fold2_test": []}}, "method: no test fold has the query '3_method'"),
        ({"method": {"fold1_test": ["3_method"], "fold2_test": ["3_method"]}}, "method: the query '3_method' is in a "),
        ({}, "the key 'method', of the folds of this facet, is"),
    ):
        csfcube.write_text("evaluation_splits.json", json.dumps(splits))
        with pytest.raises(InputError, match=rf"evaluation_splits\.json[,:] {message}"):
            csfcube.prepare(metrics=OVER_FOLDS)
    assert csfcube.prepare().folds == {}  # no metric needs them
    (csfcube.root / "evaluation_splits.json").unlink()
    benchmark = csfcube.prepare(metrics=OVER_FOLDS)
    with pytest.raises(UnscorableError, match="csfcube_method have no test folds, over which map_folds is a mean"):
        scored(csfcube, tmp_path, benchmark, folds=True)


def test_a_folder_is_checked_for_its_files_before_anything_runs(csfcube):
    def faults(**more):
        entry = CsfCube.model_validate({"kind": "csfcube", "folder": str(csfcube.root), **more})
        return [fault.partition("has no file ")[2] for fault in entry.check_environment("benchmarks.facets", None)]

    background, method = (f"{JUDGED.format(facet)}." for facet in ("background", "method"))
    assert faults() == [background]
    judge(csfcube, "result", q0={"1": 3})
    assert faults() == []
    assert faults(tasks=["csfcube_method"], folds=True) == ["evaluation_splits.json.", method]
    assert faults(tasks=["csfcube_all"]) == [background, method]
    (csfcube.root / "abstracts-csfcube-preds.jsonl").unlink()
    assert faults() == ["abstracts-csfcube-preds.jsonl."]


def query(aspects, pool, text="I want. I need."):
    """A query of DORIS-MAE, with a part of what is not read."""
    given = {"query_text": text, "query_type": "NLP", "aspects": aspects, "candidate_pool": list(pool)}
    return {**given, "sent2aspect_id": {"I want.": list(aspects), "I need.": []}}


def abstract(number, **more):
    given = {"abstract_id": number, "title": f"t{number}", "original_abstract": f"On {number}\nwe say more."}
    return {**given, "masked_abstract": "", **more}


def scores(**of_aspects):
    """Annotations: of each aspect, a score for the abstracts 0, 1, 2, …; none where it is None."""
    return [
        {"aspect_id": aspect[1:], "abstract_id": number, "score": score, "reasoning": "…"}
        for aspect, found in of_aspects.items()
        for number, score in enumerate(found)
        if score is not None
    ]


def released(queries, annotations, corpus=range(5), **more):
    lists = {"Query": queries, "Corpus": [abstract(number) for number in corpus], "Annotation": annotations}
    return {"aspect_id2aspect": {"1": "on kernels"}, **lists, **more}


ONE = [query({"1": []}, [0])], scores(a1=[2])
"""A query with a candidate, and its annotation."""


def fill(folder, *lists, **more):
    folder.write_text(DORIS, json.dumps(released(*lists, **more)))


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


def test_aspects_and_scores_that_are_named_twice_count_once_and_abstracts_of_no_pool_are_left_out(doris):
    fill(doris, [query({"1": ["2", "2"], "2": []}, [0])], scores(a1=[1], a2=[2]))
    assert doris.prepare("doris_mae_graded").judgements["doris_mae_graded"] == {"query-0": {"0": 3}}
    fill(doris, [query({"1": []}, [0])], [*scores(a1=[2]), *scores(a1=[1, 1])], corpus=range(50))
    assert doris.prepare("doris_mae_graded").judgements == {"doris_mae_graded": {"query-0": {"0": 2}}}
    assert doris.documents().keys() == {"0", "query-0"}
    assert doris.omitted() == {"score that is repeated (the first counts)": 1, "document that no task asks for": 49}


def test_a_query_without_a_relevant_candidate_is_graded_and_left_out_of_recall(doris):
    fill(doris, [query({"1": [], "2": []}, [0, 1]), query({"1": []}, [1])], scores(a1=[1, 1], a2=[0, 0]))
    benchmark = doris.prepare()
    assert benchmark.judgements["doris_mae"] == {"query-1": {"1": 1}}
    assert benchmark.judgements["doris_mae_graded"].keys() == {"query-0", "query-1"}
    assert doris.omitted()["task doris_mae: query without a relevant candidate (left out)"] == 1


def test_pools_are_ranked_by_the_cosine(tmp_path):
    """Twenty abstracts on a quarter circle, the first of them the nearest in direction and the farthest in distance."""
    folder = BenchmarkFolder(tmp_path, "doris_mae")
    # By rank: 2 0 2 0 0 1, and nothing after that.
    fill(folder, [query({"1": []}, range(20))], scores(a1=[2, 0, 2, 0, 0, 1, *[0] * 14]), corpus=range(20))
    benchmark = folder.prepare()
    angles = {str(number): np.pi * (number + 1) / 50 for number in range(20)}
    vectors = {name: [(30 - int(name)) * np.cos(at), (30 - int(name)) * np.sin(at)] for name, at in angles.items()}
    score = embedded(write_vectors(tmp_path, {**vectors, "query-0": [1.0, 0.0]}), RUN)
    average = (1 + 2 / 3 + 3 / 6) / 3
    expected = {"recall_5": 2 / 3, "recall_20": 1, "Rprec": 2 / 3, "map": average}
    found = scores_of(score(declared("doris_mae"), benchmark))
    assert {name: found[name] for name in expected} == pytest.approx({name: 100 * of for name, of in expected.items()})
    second = 1 / np.log2(3)
    assert scores_of(score(declared("doris_mae_graded"), benchmark)) == pytest.approx(
        {
            "ndcg_10%": 100 * 2 / (2 + 2 * second),  # the first two of twenty
            "ndcg_10%_exp": 100 * (4 + second) / (4 + 4 * second),
            "recip_rank_10_best": 100,
        }
    )


@given(st.lists(st.integers(0, 12), min_size=10, max_size=45))
def test_the_metrics_of_grades_are_what_loops_give(grades):
    found = measured(grades, ["ndcg_10%", "ndcg_10%_exp", "recip_rank_10_best"])
    depth = int(0.1 * len(grades))
    for metric, gain in (("ndcg_10%", lambda grade: grade), ("ndcg_10%_exp", lambda grade: 2**grade)):

        def total(order, gain=gain):
            return sum(gain(grade) / np.log2(2 + place) for place, grade in enumerate(order[:depth]))

        best = total(sorted(grades, reverse=True))
        assert found[metric] == pytest.approx(100 * total(grades) / best if best else 0)
    firsts = [place for place, grade in enumerate(grades[:10], 1) if grade == max(grades)]
    assert found["recip_rank_10_best"] == pytest.approx(100 / firsts[0] if firsts else 0)


@pytest.fixture
def mdcr(tmp_path):
    folder = BenchmarkFolder(tmp_path, "mdcr")
    folder.write_lines("mdcr_test_data.jsonl", *({"paper_id": n, "title": f"t{n}", "abstract": None} for n in range(9)))
    return folder


def candidates(true, **negative):
    return {"bm25": [], "graph": [], "most_cited": [], "specter": [], **negative, "true": true}


def test_a_field_is_a_task_whose_cited_papers_are_relevant_and_a_candidate_of_two_kinds_counts_once(mdcr):
    fields = {"Computer Science": {"0": candidates([1, "2"], bm25=["3"], random=[4])}}
    fields["Art"] = {"5": candidates(["6"], bm25=["6", "0"], graph=["0"])}
    mdcr.write_text(MDCR, json.dumps(fields))
    assert mdcr.prepare().judgements == {
        "mdcr_computer_science": {"0": {"1": 1, "2": 1, "3": 0, "4": 0}},
        "mdcr_art": {"5": {"6": 1, "0": 0}},
    }
    assert mdcr.documents()["4"] == ("t4", None)
    omitted = mdcr.omitted()
    assert omitted["document that no task asks for"] == 2
    assert omitted["task mdcr_physics absent"] == 1
    assert omitted["task mdcr_art: repeated candidate (once is enough)"] == 2


FACET, TEXTS = JUDGED.format("method"), "abstracts-csfcube-preds.jsonl"
OF_FACETS = [
    ({"cands": ["1"], "relevance_adju": [1, 2]}, "has 1 cands and 2 grades in relevance_adju"),
    ({"cands": ["1"], "relevance_adju": ["high"]}, "relevance_adju must be a list of grades"),
    ({"cands": ["1"], "relevance_adju": [True]}, "relevance_adju must be a list of grades"),
    ({"cands": ["1"], "relevance_adju": [1.5]}, "relevance must be a whole number, not 1.5"),
    ({"cands": ["1"]}, "the key 'relevance_adju' is missing or null"),
    ({"cands": [True], "relevance_adju": [1]}, "cands must be a list of ids, not "),
    ({"cands": ["99"], "relevance_adju": [1]}, "no text for the document '99'"),
]
OF_ABSTRACTS = [
    ("One text.", "must be a list of sentences, not 'One text.'"),
    (0, "must be a list of sentences, not 0"),
    (["\ud83d"], "contains half of a surrogate pair"),
]
OF_DORIS = [
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
    ({"Corpus": [abstract(0, title="", original_abstract=None)]}, "none of the 1 documents of the task doris_mae has"),
]
OF_MDCR = [
    ('{"Art": {"0": {"bm25": []}}}', "mdcr_test.json, Art, 0: the key 'true', of the papers that the query cites"),
    ('{"Art": {"0": {"true": "1"}}}', "true must be a list of ids, not '1'"),
    ('{"Art": {"0": {"true": ["lost"]}}}', "no text for the document 'lost'"),
    ('{"Art": 3}', "mdcr_test.json, Art: must be an object, not 3"),
    ('{"Arts": {}}', "has no field 'Art'"),
    ('{"Art": {"0": {"true": ["1"]}}', "mdcr_test.json: not JSON (parse error: premature EOF"),
]
REFUSED = [
    *(("csfcube", FACET, json.dumps({"0": entry}), f"{FACET}, 0: {message}") for entry, message in OF_FACETS),
    *(
        ("csfcube", TEXTS, json.dumps({"paper_id": "1", "title": "t", "abstract": text}), f"line 1: abstract {message}")
        for text, message in OF_ABSTRACTS
    ),
    *(("doris", DORIS, json.dumps(released(*ONE, **lists)), message) for lists, message in OF_DORIS),
    *(("mdcr", MDCR, *row) for row in OF_MDCR),
    (
        "mdcr",
        "mdcr_test_data.jsonl",
        '{"paper_id": 1}\n{"title": "t"}\n',
        "line 2: the key 'paper_id' is missing or null",
    ),
    ("csfcube", "notes.txt", "", "contains no facet; there must be files such as test-pid2anns-csfcube-background"),
]


@pytest.mark.parametrize(("folder", "file", "content", "message"), REFUSED)
def test_what_is_wrong_is_reported_with_its_place(request, folder, file, content, message):
    folder = request.getfixturevalue(folder)
    if file == TEXTS:
        judge(folder, "method", q0={"1": 2})
    folder.write_text(file, content)
    task = {"csfcube": "csfcube_method", "mdcr": "mdcr_art"}.get(folder.kind, "doris_mae")
    folder.refuses(message, *([] if file == "notes.txt" else [task]))
