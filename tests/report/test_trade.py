"""Each model is a point: short queries to the right, documents up; labels cover nothing."""

from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.configurations import recorded
from tests.report.conftest import drawn, texts
from tests.report.made_page import page_of
from tests.report.made_run import configuration_of

from cocite.config.benchmarks import sides_of
from cocite.report.trade import GROUPS, LETTER, SIZE, Box, Point, draw_trade, placed, points_of

HOLDOUT = {"kind": "holdout", "title_search": {"documents": 10}}
CONFIGURATION = {
    "models": {"cropping": {}, "citations": {}},
    "encoders": {"small": {}},
    "benchmarks": {
        "holdout": HOLDOUT,
        "claims": {"kind": "beir", "datasets": {"scifact": "x"}},
        "iclr": {"kind": "beir", "datasets": {"iclr2022": "y"}, "queries": "documents"},
    },
}


def score(model, task, value, *, benchmark="holdout", seed=1, metric=None, evaluation_seed=1):
    metric = metric or ("map" if task.removesuffix("_matched") in ("cite", "cocite") else "ndcg_cut_10")
    row = {"benchmark": benchmark, "task": task, "metric": metric, "model": model, "seed": seed}
    return row | {"evaluation_seed": evaluation_seed, "value": value}


def everything(model, short, documents, seed=1):
    """Scores of a model on all seven tasks, around a value on either side."""
    values = {
        ("holdout", "title_search"): short - 5,
        ("claims", "beir_scifact"): short + 5,
        ("holdout", "cite"): documents - 3,
        ("holdout", "cocite"): documents + 3,
        ("holdout", "cite_matched"): documents - 2,
        ("holdout", "cocite_matched"): documents + 2,
        ("iclr", "beir_iclr2022"): documents,
    }
    return [score(model, task, value, benchmark=name, seed=seed) for (name, task), value in values.items()]


def points(scores):
    return {
        point.model: point
        for point in points_of(pl.DataFrame(scores), sides_of(recorded(CONFIGURATION)), recorded(CONFIGURATION))
    }


def test_searches_ask_with_short_queries_and_rankings_with_documents_unless_said_otherwise():
    short, documents = sides_of(recorded(CONFIGURATION))
    assert short == {("holdout", "title_search"): "ndcg_cut_10", ("claims", "beir_scifact"): "ndcg_cut_10"}
    assert documents == {
        ("holdout", "cite"): "map",
        ("holdout", "cocite"): "map",
        ("holdout", "cite_matched"): "map",
        ("holdout", "cocite_matched"): "map",
        ("iclr", "beir_iclr2022"): "ndcg_cut_10",
    }
    assert sides_of(recorded({"benchmarks": {"sre": {"kind": "scirepeval", "tasks": ["fos", "search"]}}})) == (
        {("sre", "search"): "ndcg"},
        {},
    )


def test_a_point_is_the_mean_over_the_tasks_of_a_side_and_over_seeds():
    scores = [*everything("cropping", 50.0, 30.0, seed=1), *everything("cropping", 54.0, 31.0, seed=2)]
    scores += [score("cropping", "cite", 99.0, metric="ndcg"), *everything("bm25", 40.0, 20.0, seed=0)]
    again = [row | {"evaluation_seed": 2} for row in scores]  # which is averaged first
    found = points(scores + again)
    assert found["cropping"] == pytest.approx(("cropping", 52.0, 30.5, 8**0.5, 0.5**0.5))
    assert found["bm25"] == ("bm25", 40.0, 20.0, None, None)


def test_baselines_are_shown_as_configured_but_for_chance_and_those_of_some_benchmarks_alone():
    scores = [*everything("citations", 9.0, 9.0), *everything("words", 5.0, 4.0, seed=0), *everything("r", 1.0, 1.0)]
    scores += [row for row in everything("theirs", 8.0, 8.0, seed=0) if row["benchmark"] == "holdout"]
    theirs = {"kind": "brought", "path": "x", "benchmarks": ["holdout"]}
    named = {"words": {"kind": "bm25"}, "r": {"kind": "random"}, "theirs": theirs}
    configuration = CONFIGURATION | {"baselines": named}
    found = points_of(pl.DataFrame(scores), sides_of(recorded(configuration)), recorded(configuration))
    assert [(point.model, point.short, point.documents) for point in found] == [("citations", 9, 9), ("words", 5, 4)]


def test_a_task_that_one_model_lacks_is_left_out_for_all():
    scores = [*everything("cropping", 50.0, 30.0), *everything("citations", 40.0, 45.0)]
    scores = [row for row in scores if (row["model"], row["task"]) != ("citations", "cite")]
    assert points(scores)["cropping"].documents == pytest.approx((33 + 30 + 28 + 32) / 4)
    assert points(scores)["citations"].documents == pytest.approx((48 + 45 + 43 + 47) / 4)


LIMITS = ((0.0, 100.0), (0.0, 100.0))
POINTS = st.lists(
    st.builds(
        Point,
        st.text("abcdefgh-", min_size=1, max_size=28),
        st.floats(20, 80),
        st.floats(20, 80),
        st.none() | st.floats(0, 5),
        st.none() | st.floats(0, 5),
    ),
    max_size=14,
)


@given(POINTS)
def test_labels_cover_neither_each_other_nor_a_point_and_stay_in_the_panel(found):
    boxes = [label.box for label in placed(found, LIMITS) if label]
    covered = [
        Box(*(place * size / 100 for place, size in zip((p.short, p.documents) * 2, SIZE * 2, strict=True)))
        for p in found
    ]
    for one, other in combinations(boxes, 2):
        assert one.right <= other.left or other.right <= one.left or one.top <= other.bottom or other.top <= one.bottom
    for box in boxes:
        assert 0 <= box.left < box.right <= SIZE[0]
        assert 0 <= box.bottom < box.top <= SIZE[1]
        assert not any(box.left < x < box.right and box.bottom < y < box.top for x, y, _, _ in covered)


def test_a_label_that_has_room_stands_right_of_its_point():
    [label] = placed([Point("alone", 50.0, 50.0, None, None)], LIMITS)
    assert label.side == (1, 0)
    assert label.box.left > SIZE[0] / 2
    assert label.box.right - label.box.left == pytest.approx(5 * LETTER)
    assert not label.is_far


def test_the_figure_names_every_model_and_says_its_values_and_is_there_without_a_score(tmp_path):
    scores = [*everything("cropping", 50.0, 30.0), *everything("citations", 40.0, 45.0)]
    scores += [*everything("untrained_small", 30.0, 20.0, seed=0), *everything("bm25", 45.0, 25.0, seed=0)]
    svg = drawn(tmp_path, draw_trade, pl.DataFrame(scores), recorded(CONFIGURATION))
    words = {"cropping", "citations", "untrained_small", "bm25", "short queries: nDCG@10, mean over 2 tasks"}
    assert {*words, "documents as queries: MAP or nDCG@10, mean over 5 tasks"} <= set(texts(svg))
    assert "<title>citations: short queries 40.0, documents 45.0</title>" in svg
    nothing = pl.DataFrame(everything("random", 1.0, 1.0))
    assert "short queries" in drawn(tmp_path, draw_trade, nothing, recorded(CONFIGURATION))


@pytest.mark.parametrize("sampler", ["oracle", "citations"])
def test_an_oracle_has_a_colour_of_its_own(tmp_path, sampler):
    scores = pl.DataFrame([*everything("cropping", 50.0, 30.0), *everything("citations", 40.0, 45.0)])
    sets = {"answers": {"sampler": sampler}, "t": {"sampler": "citations"}}
    models = {"cropping": {"triplets": "answers"}, "citations": {"triplets": "t"}}
    svg = drawn(tmp_path, draw_trade, scores, recorded({**CONFIGURATION, "triplets": sets, "models": models}))
    assert (GROUPS["oracle"].colour in svg) is (sampler == "oracle")


def test_the_page_has_the_section_where_a_run_has_both_kinds_of_tasks(tmp_path):
    configuration = configuration_of(models=3, seeds=2, kinds=("holdout",))
    configuration["benchmarks"]["holdout"]["title_search"] = {"documents": 10}
    assert "Short queries or documents?" in page_of(configuration, tmp_path).read_text()
