"""SciDocs in its own layout: labels, judgements and clicks, and what is wrong with a folder."""

import json

import numpy as np
import pytest
from tests.evaluation.folders import BenchmarkFolder

from cocite.config.benchmarks import TASKS
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import score_task
from cocite.evaluation.vectors import Vectors
from cocite.ground.errors import InputError

RUN = Run(model="m", training_seed=1, benchmark="b", modes=["compat"], evaluation_seeds=[1])


@pytest.fixture
def scidocs(tmp_path):
    folder = BenchmarkFolder(tmp_path, "scidocs")
    for name in ("mag_mesh", "view_cite_read", "recomm"):
        papers = {
            paper: {"paper_id": paper, "title": f"title {paper}", "abstract": "abstract", "references": ["x"]}
            for paper in "abcdefg"
        }
        folder.write_text(f"paper_metadata_{name}.json", json.dumps(papers))
    return folder


def add_clicks(folder, *rows):
    folder.write_text(
        "recomm/test.csv", "pid,clicked_pid,similar_papers_avail_at_time\n" + "".join(f"{r}\n" for r in rows)
    )
    folder.write_text("recomm/propensity_scores.json", '{"scores": [0.5, 0.25, 0.1]}')


def test_labels_are_read_without_the_validation_split(scidocs):
    for split, rows in (("train", "a,0\nb,1\n"), ("val", "c,1\n"), ("test", "d,0\n")):
        scidocs.write_text(f"mag/{split}.csv", f"pid,class_label\n{rows}")
    labels = scidocs.prepare().labels
    assert labels == {("mag", "train"): {"a": ["0"], "b": ["1"]}, ("mag", "test"): {"d": ["0"]}}
    assert scidocs.documents() == {name: (f"title {name}", "abstract") for name in "abd"}
    assert scidocs.omitted()["task mesh absent"] == 1


def test_judgements_are_read_from_qrels(scidocs):
    scidocs.write_text("coview/test.qrel", "a 0 b 1\na 0 c 0\nd 0 b 1\n")
    scidocs.write_text("coview/val.qrel", "e 0 f 1\n")
    assert scidocs.prepare("scidocs_view").judgements == {"scidocs_view": {"a": {"b": 1, "c": 0}, "d": {"b": 1}}}
    assert set(scidocs.documents()) == set("abcd")


def test_a_click_is_relevant_among_what_was_shown_and_weighs_by_its_place(scidocs):
    add_clicks(scidocs, 'a,c,"b, c,d"', 'b,a,"a,c"')
    benchmark = scidocs.prepare()
    assert benchmark.judgements["recomm"] == {"a": {"b": 0, "c": 1, "d": 0}, "b": {"a": 1, "c": 0}}
    assert benchmark.weights["recomm"] == {"a": pytest.approx(1 / 0.25), "b": pytest.approx(1 / 0.5)}


def test_two_clicks_of_a_query_are_two_queries_with_its_text(scidocs):
    add_clicks(scidocs, 'a,b,"b,c"', 'a,c,"b,c"')
    benchmark = scidocs.prepare()
    assert benchmark.judgements["recomm"] == {"a": {"b": 1, "c": 0}, "again2:a": {"b": 0, "c": 1}}
    assert scidocs.documents()["again2:a"] == scidocs.documents()["a"]
    assert benchmark.weights["recomm"]["again2:a"] == pytest.approx(1 / 0.25)


def test_the_recommendation_is_scored_by_propensity_adjusted_measures(scidocs):
    add_clicks(scidocs, 'a,c,"b,c,d"', 'b,a,"a,c"')
    benchmark = scidocs.prepare()
    places = {"a": 0.0, "b": 5.0, "c": 1.0, "d": 2.0}  # a: c, d, b; b: d is not shown, c before a
    vectors = Vectors({name: row for row, name in enumerate(places)}, np.array([[x] for x in places.values()], "f4"))
    scored = score_task(TASKS["recomm"], benchmark, vectors, RUN)
    values = {row[4]: row[8] for row in scored.scores}
    first, second = 1 / 0.25, 1 / 0.5  # inverse propensities: the click of a is ranked first, that of b second
    assert values["P_1_adjusted"] == pytest.approx(100 * first / (first + second))
    gains = first * 1 + second * (1 / np.log2(3))
    assert values["ndcg_adjusted"] == pytest.approx(100 * gains / (first + second))


def test_classification_chooses_c_in_the_published_range():
    assert TASKS["mag"].grid == TASKS["mesh"].grid == tuple(10.0**power for power in range(-4, 3))


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("mag/train.csv", "pid,class_label\na\n", "train.csv, line 2: has 1 fields, where 2 are expected"),
        ("mag/train.csv", "pid,class_label\n", "train.csv: has no rows"),
        ("cite/test.qrel", "a 0 b\n", "test.qrel, line 1: has 3 fields, where 4 are expected"),
        ("cite/test.qrel", "a 0 b yes\n", "line 1: relevance must be a whole number, not 'yes'"),
        ("cite/test.qrel", "a 0 lost 1\n", "no text for the document 'lost'"),
        ("recomm/test.csv", 'p,c,s\na,b,"c,d"\n', "'b', which was clicked, is not among the papers that were shown"),
        (
            "recomm/propensity_scores.json",
            '{"scores": [0]}',
            "must hold a list of positive numbers under the key scores",
        ),
        ("paper_metadata_recomm.json", '{"a": 3}', "paper_metadata_recomm.json, a: must be an object, not 3"),
        ("paper_metadata_recomm.json", '{"a": {"title": "t"', "paper_metadata_recomm.json: not JSON"),
        ("paper_metadata_recomm.json", '["a"]', "not a JSON object."),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(scidocs, path, text, message):
    task = {"m": "mag", "c": "scidocs_cite"}.get(path[0], "recomm")
    if task == "recomm":
        add_clicks(scidocs, 'a,b,"b,c"')
    scidocs.write_text(path, text)
    with pytest.raises(InputError) as error:
        scidocs.prepare(task)
    assert message in str(error.value)
    assert not scidocs.tables.exists()


def test_a_task_that_is_asked_for_must_be_there(scidocs):
    with pytest.raises(InputError, match="holds none of the tasks mesh; there must be folders such as mesh"):
        scidocs.prepare("mesh")
    scidocs.write_text("coview/test.qrel", "a 0 b 1\n")
    with pytest.raises(InputError, match="has no folder mesh, but the task mesh is asked for; it holds scidocs_view"):
        scidocs.prepare("mesh")
