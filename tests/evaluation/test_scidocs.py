"""SciDocs in its own layout: labels, judgements and clicks, and what is wrong with a folder."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.folders import RUN, BenchmarkFolder, scores_of

from cocite.config.benchmarks import TASKS
from cocite.core.rows import Row
from cocite.evaluation.benchmark import Click
from cocite.evaluation.preparation.scidocs import features, paper_of
from cocite.evaluation.ranking import by_cosine, rank_by_clicks
from cocite.evaluation.scored import UnscorableError, Vectors
from cocite.evaluation.scoring import score_task


@pytest.fixture
def scidocs(tmp_path):
    folder = BenchmarkFolder(tmp_path, "scidocs")
    for name in ("mag_mesh", "view_cite_read", "recomm"):
        same = {"abstract": "abstract", "references": ["x"]}
        papers = {paper: {"paper_id": paper, "title": f"title {paper}", **same} for paper in "abcdefg"}
        folder.write_text(f"paper_metadata_{name}.json", json.dumps(papers))
    return folder


def add_clicks(folder, *rows, train=('e,f,"f,g"',)):
    for split, of_split in (("train", train), ("test", rows)):
        text = "pid,clicked_pid,similar_papers_avail_at_time\n" + "".join(f"{row}\n" for row in of_split)
        folder.write_text(f"recomm/{split}.csv", text)
    folder.write_text("recomm/propensity_scores.json", '{"scores": [0.5, 0.25, 0.1]}')


def test_labels_and_judgements_are_read_without_the_validation_split(scidocs):
    for split, rows in (("train", "a,0\nb,1\n"), ("val", "c,1\n"), ("test", "d,0\n")):
        scidocs.write_text(f"mag/{split}.csv", f"pid,class_label\n{rows}")
    scidocs.write_text("coview/test.qrel", "a 0 b 1\na 0 e 0\nd 0 b 1\n")
    scidocs.write_text("coview/val.qrel", "f 0 g 1\n")
    benchmark = scidocs.prepare()
    assert benchmark.labels == {("mag", "train"): {"a": ["0"], "b": ["1"]}, ("mag", "test"): {"d": ["0"]}}
    assert benchmark.judgements == {"scidocs_view": {"a": {"b": 1, "e": 0}, "d": {"b": 1}}}
    assert scidocs.documents() == {name: (f"title {name}", "abstract") for name in "abde"}
    assert scidocs.omitted()["task mesh absent"] == 1


def test_a_click_is_relevant_among_what_was_shown_weighs_by_its_place_and_is_a_query_of_its_own(scidocs):
    add_clicks(scidocs, 'a,c,"b, c,d"', 'b,a,"a,c"', 'a,b,"b,c"')
    benchmark = scidocs.prepare()
    assert benchmark.judgements["recomm"] == {
        "a": {"b": 0, "c": 1, "d": 0},
        "b": {"a": 1, "c": 0},
        "again2:a": {"b": 1, "c": 0},
    }
    assert benchmark.weights["recomm"] == pytest.approx({"a": 1 / 0.25, "b": 1 / 0.5, "again2:a": 1 / 0.5})
    assert scidocs.documents()["again2:a"] == scidocs.documents()["a"]


def test_clicks_to_train_on_have_their_documents_and_no_judgements(scidocs):
    add_clicks(scidocs, 'a,c,"b,c"', train=('e,f,"f,g"', 'e,g,"f,g"'))
    benchmark = scidocs.prepare()
    assert benchmark.judgements["recomm"] == {"a": {"b": 0, "c": 1}}
    assert [(row.split, row.name, row.place, row.candidate, row.is_clicked) for row in benchmark.clicks["recomm"]] == [
        ("test", "a", 1, "b", False),
        ("test", "a", 2, "c", True),
        ("train", "again2:e", 1, "f", False),
        ("train", "again2:e", 2, "g", True),
        ("train", "e", 1, "f", True),
        ("train", "e", 2, "g", False),
    ]
    assert set(scidocs.documents()) == set("abcefg")


def test_a_click_has_the_features_of_the_published_ranker():
    def paper(identifier, **values):
        return paper_of(identifier, Row(values, Path("papers.json"), identifier))

    query = paper("q", title="Deep nets.", year=2010, authors=["1", "2"], references=["c", "r"], cited_by=["x"])
    candidate = paper("c", title="Deep trees.", year=1985, authors=["2", 3], references=["r"], cited_by=["q", "x", "y"])
    # Authors 1 of 3; words "Deep" and "." of 4; citing papers x of 3; references r of 2; the query cites the candidate,
    # which is 35 years old in 2020 and 25 years older than the query.
    assert features(query, candidate) == pytest.approx([1 / 3, 1 / 2, 1 / 3, 1 / 2, 0, 1, 1, 1, np.log(4) / 10])
    assert features(candidate, query)[4:8] == [1, 0, 0.5, -1]
    assert features(paper("a"), paper("b")) == [0] * 9


def click(split, name, place, candidate, clicked, authors=0.0):
    return Click(split, name, place, name, candidate, clicked, [authors, *[0.0] * 8])


def vectors_of(rows):
    return Vectors({name: row for row, name in enumerate(rows)}, np.stack(list(rows.values())).astype("f4"))


UNIT = vectors_of(dict(zip("abcdefg", np.eye(7), strict=True)))


@pytest.mark.parametrize("signal", ["angle", "authors"])
def test_the_ranker_learns_from_clicks_what_they_follow(signal):
    """Clicks follow the angle or the authors."""
    draw = np.random.default_rng(3)
    rows, clicks = {}, []
    for number in range(400):
        query, split = f"q{number}", "train" if number < 300 else "test"
        rows[query] = np.array([1.0, 0.0])
        values = {kind: draw.permutation(4) / 4 for kind in ("angle", "authors")}
        for place in range(4):
            angle = np.arccos(values["angle"][place])
            rows[f"{query}-{place}"] = np.array([np.cos(angle), np.sin(angle)])
            clicked = values[signal][place] == 0.75
            clicks.append(click(split, query, place, f"{query}-{place}", clicked, values["authors"][place]))
    vectors = vectors_of(rows)
    ranked = rank_by_clicks(clicks, by_cosine(vectors), vectors.rows, seed=1)
    right = {row.name: row.candidate for row in clicks if row.is_clicked}
    assert len(ranked) == 100
    assert np.mean([max(scores, key=scores.get) == right[name] for name, scores in ranked.items()]) > 0.95


def test_the_same_seed_trains_the_same_ranker():
    rows = [
        click(s, f"{s}{n}", p, c, p == n % 2) for s in ("train", "test") for n in range(9) for p, c in enumerate("ab")
    ]
    draw = np.random.default_rng(1)
    vectors = vectors_of({name: draw.normal(size=3) for name in ["a", "b", *sorted({row.name for row in rows})]})
    first, again, other = (rank_by_clicks(rows, by_cosine(vectors), vectors.rows, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_without_a_click_to_train_on_the_recommendation_has_no_score(scidocs):
    add_clicks(scidocs, 'a,c,"b,c"', train=('lost,f,"f,g"',) + ('e,f,"f"',) * 150)
    with pytest.raises(UnscorableError, match="no click to train the ranker on"):
        score_task(TASKS["recomm"], scidocs.prepare(), UNIT, RUN)


def test_the_recommendation_is_scored_by_propensity_adjusted_measures(scidocs, monkeypatch):
    add_clicks(scidocs, 'a,c,"b,c,d"', 'b,a,"a,c"')
    benchmark = scidocs.prepare()
    ranks = {"a": {"b": 0.0, "c": 1.0, "d": 0.5}, "b": {"a": 0.0, "c": 1.0}}
    monkeypatch.setattr("cocite.evaluation.ranking.rank_by_clicks", lambda *_, **__: ranks)
    scored = score_task(TASKS["recomm"], benchmark, UNIT, RUN)
    first, second = 1 / 0.25, 1 / 0.5  # inverse propensities: the click of a is ranked first, that of b second
    gains = first * 1 + second * (1 / np.log2(3))
    adjusted = {"P_1_adjusted": 100 * first / (first + second), "ndcg_adjusted": 100 * gains / (first + second)}
    assert {name: scores_of(scored)[name] for name in adjusted} == pytest.approx(adjusted)
    weights = {row[7]: row[9] for row in scored.outcomes if row[4] == "P_1_adjusted"}
    assert weights == pytest.approx({"a": first, "b": second})


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("mag/train.csv", "pid,class_label\na\n", "train.csv, line 2: has 1 fields, where 2 are expected"),
        ("mag/train.csv", "pid,class_label\n", "train.csv: has no rows"),
        ("cite/test.qrel", "\ufeffa 0 b\n", "test.qrel, line 1: has 3 fields, where 4 are expected"),
        ("cite/test.qrel", "a 0 b yes\n", "line 1: relevance must be a whole number, not 'yes'"),
        ("cite/test.qrel", "\ufeffa 0 lost 1\n", "line 1: no text for the document 'lost'"),
        ("cite/test.qrel", "a 0 \udcff 1\n", "test.qrel, line 1: not UTF-8"),
        ("recomm/train.csv", "pid,clicked_pid,similar_papers_avail_at_time\n", "train.csv: has no rows"),
        ("recomm/test.csv", 'p,c,s\na,b,"c,d"\n', "'b', which was clicked, is not among the papers that were shown"),
        (
            "recomm/propensity_scores.json",
            '{"scores": [0]}',
            "must contain a list of positive numbers under the key scor",
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
    scidocs.refuses(message, task)
