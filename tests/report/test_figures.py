"""Figures show what they are given."""

import re

import numpy as np
import polars as pl
import pytest
from tests.report.conftest import texts

from cocite.core.randomness import generator
from cocite.report.canvas import read_figure, read_svg, styles
from cocite.report.figures import (
    draw_band_quality,
    draw_link_prediction,
    draw_map,
    draw_pair_counts,
    draw_triplets,
    draw_validation_curves,
)
from cocite.report.map_page import UNKNOWN, MapData

METRICS = ("loss", "mean_rank", "mrr", "hits_at_1", "hits_at_10", "hits_at_50", "auc")


def test_the_curves_of_link_prediction_have_a_panel_a_metric_and_a_line_an_embedding_and_kind(tmp_path):
    rows = [
        {"epoch": epoch, "metric": metric, "filtered": filtered, "value": epoch / 4 + filtered, "edges": 10}
        for epoch in (1, 2, 3)
        for metric in METRICS
        for filtered in (False, True)
    ]
    draw_link_prediction({"dot": pl.DataFrame(rows), "cos": pl.DataFrame(rows)}, tmp_path / "curves.svg")
    words = {"loss", "mean rank", "MRR", "Hits@1", "Hits@10", "Hits@50", "AUC", "dot", "cos"}
    drawn = (tmp_path / "curves.svg").read_text()
    assert words <= set(texts(drawn))
    faint = re.findall(r'id="series-[01]-\d-raw">\s*<path[^>]*stroke-opacity: 0.5', drawn)
    assert len(faint) == 2 * len(METRICS)


BANDS = pl.DataFrame({"last_rank": [5, 10, 25], "papers": [10, 10, 5], "cocited": [9, 7, 2], "cited": [2, 1, 0]})
NO_CURVE = pl.DataFrame(schema={"k_negative": pl.Int32, "collisions": pl.Int64, "pairs": pl.Int64})


def test_the_quality_of_bands_has_a_panel_a_relation_and_a_line_an_embedding_if_there_is_any(tmp_path):
    draw_band_quality({"dot": BANDS, "cos": BANDS}, tmp_path / "bands.svg")
    words = texts((tmp_path / "bands.svg").read_text())
    assert {"neighbours co-cited with the query", "neighbours citing it or cited by it", "rank"} <= set(words)
    assert words.count("dot") == words.count("cos") == 1
    draw_band_quality({}, tmp_path / "bands.svg")
    assert "dot" not in texts((tmp_path / "bands.svg").read_text())


def test_the_figure_of_triplets_marks_the_rank_of_each_set_that_is_drawn_from_neighbours(tmp_path):
    curve = pl.DataFrame({"k_negative": [30, 100, 300], "collisions": [9, 4, 0], "pairs": [90, 90, 90]})
    counts = pl.DataFrame({"split": ["train", "train", "validation"], "count": [0, 5, 5], "queries": [1, 8, 1]})
    drawn = []
    for collisions in ({"cocite": curve, "specter": NO_CURVE}, {"cocite": NO_CURVE, "specter": NO_CURVE}):
        draw_triplets(collisions, {"cocite": counts, "specter": counts}, {"cocite": 100}, tmp_path / "triplets.svg")
        drawn.append((tmp_path / "triplets.svg").read_text())
    assert {"set cocite", "set specter", "triplets per query", "queries"} <= set(texts(drawn[0]))
    colour = "#0072b2"  # of the first set, whose curve and dot the second figure lacks
    assert drawn[0].count(colour) > drawn[1].count(colour) > 0


def curve(*seeds):
    """Validation at two steps; a seed's values are those of seed 0 and its number."""
    rows = [
        {"seed": seed, "step": step, "metric": f"validation_{name}", "value": value + seed}
        for seed in seeds
        for step, loss, accuracy in ((1, 2.0, 0.5), (2, 1.0, 0.7))
        for name, value in (("loss", loss), ("accuracy", accuracy))
    ]
    return pl.DataFrame(rows)


def test_each_kind_of_loss_has_a_panel_and_each_model_one_name(tmp_path):
    losses = {"first": "triplet", "second": "triplet", "third": "cosent"}
    draw_validation_curves(dict.fromkeys(losses, curve(1)), losses, tmp_path / "curves.svg")
    drawn = texts((tmp_path / "curves.svg").read_text())
    assert [text for text in drawn if text.endswith(" loss")] == ["triplet loss", "cosent loss"]
    assert [text for text in drawn if text in losses] == ["first", "second", "third"]


def test_several_seeds_are_drawn_as_their_mean_within_a_band_and_one_without(tmp_path):
    draw_validation_curves({"m": curve(1), "n": curve(1, 3)}, {"m": "triplet", "n": "triplet"}, tmp_path / "c.svg")
    drawn = (tmp_path / "c.svg").read_text()
    assert set(re.findall(r'id="(series-\d-\d[\w-]*)"', drawn)) == {
        *("series-0-0", "series-0-1"),
        *("series-1-0", "series-1-1", "series-1-0-band", "series-1-1-band"),
    }


def test_figures_take_the_colour_of_the_text_around_them_and_have_no_ground_of_their_own(tmp_path):
    counts = pl.DataFrame({"graph": ["g", "g"], "count": [1, 1000], "pairs": [20, 1]})
    draw_pair_counts(counts, {"g": "couplings"}, tmp_path / "p.svg")
    drawn = (tmp_path / "p.svg").read_text()
    assert "fill: currentColor" in drawn
    assert not re.search(r"#0{6}|#f{6}", drawn)
    assert {"1", "10", "100", "1k", "g (couplings)"} <= set(texts(drawn))


def test_no_two_of_fifty_models_look_alike():
    assert len({entry[1:] for entry in styles([f"m{number}" for number in range(50)]).values()}) == 50


POINTS = generator(1, "page").normal(size=(700, 2))


def mapped(folder, layouts, classes, titles):
    """The titles of the points in the picture of a map, and its words."""
    clusters, years = {name: [None] * len(titles) for name in layouts}, [None] * len(titles)
    data = MapData(titles=titles, years=years, classes={"field": classes}, layouts=layouts, clusters=clusters)
    draw_map(data, 1, folder / "map.svg")
    drawn = (folder / "map.svg").read_text()
    return re.findall(r"<title>([^<]*)</title>", drawn), texts(drawn)


def test_each_point_of_the_map_names_its_paper_with_a_class_or_without(tmp_path):
    fields = ["physics", "biology", None, "biology", "history"]
    titles, words = mapped(tmp_path, {"cocite": POINTS[:5]}, fields, ["a < b", "c", "d", "e", "f"])
    assert sorted(titles) == ["a &lt; b", "c", "d", "e", "f"]
    assert UNKNOWN in words


@pytest.mark.parametrize(
    ("title", "name", "shown"),
    [
        ("a\x0bb", "c\x1fd\uffff", ("a b", "c d ")),
        ("a", "Cost ($) and benefit ($^)", ("a", "Cost ($) and benefit ($^)")),
        ('id="main" href="#x" url(#a)', "b", ('id="main" href="#x" url(#a)', "b")),
    ],
)
def test_titles_and_classes_with_any_signs_are_on_the_page_as_they_are(tmp_path, title, name, shown):
    titles, words = mapped(tmp_path, {"cocite": POINTS[:1]}, [name], [title])
    figure = read_figure(tmp_path / "map.svg", "Map")
    assert (*titles, figure.legend[0][0]) == shown
    assert shown[1] in words
    assert f">{shown[0]}<" in figure.panels[0]


@pytest.mark.parametrize("points", [np.empty((0, 2)), np.ones((1, 2)), np.ones((40, 2)), np.full((3, 2), np.nan)])
def test_papers_that_a_model_does_not_tell_apart_or_does_not_place_can_be_drawn(tmp_path, points):
    _, words = mapped(tmp_path, {"collapsed": points}, ["physics"] * len(points), ["a"] * len(points))
    assert "collapsed" in words


def test_a_paper_that_a_model_does_not_place_is_missing_in_its_panel_alone(tmp_path):
    layouts = {"one": POINTS[:3], "other": np.array([[0, 0], [np.nan, np.nan], [1, 1]])}
    assert mapped(tmp_path, layouts, ["physics"] * 3, ["a", "b", "c"])[0] == ["a", "b", "c", "a", "c"]


def test_of_many_papers_the_map_has_500_and_the_same_in_each_model(tmp_path):
    layouts, papers = {"one": POINTS, "other": POINTS[:, ::-1]}, [f"paper {number}" for number in range(700)]
    shown, _ = mapped(tmp_path, layouts, ["physics"] * 700, papers)
    assert len(shown) == 1000
    assert shown[:500] == shown[500:]
    assert len(set(shown)) == 500


def test_the_page_takes_a_figure_apart_into_panels_of_one_size_with_their_lines(tmp_path):
    losses = {"first": "triplet", "second": "cosent"}
    draw_validation_curves(dict.fromkeys(losses, curve(1)), losses, tmp_path / "curves.svg")
    figure = read_figure(tmp_path / "curves.svg", "Validation")
    panels = [read_svg(str(panel)) for panel in figure.panels]
    assert [panel.get("aria-label") for panel in panels] == [
        "Validation: share of triplets in order, by steps",
        "Validation: triplet loss, by steps",
        "Validation: cosent loss, by steps",
    ]
    assert len({tuple(panel.get("viewBox").split()[2:]) for panel in panels}) == 1
    lines = [[group.get("data-series") for group in panel.iter() if group.get("data-series")] for panel in panels]
    assert lines == [["0", "1"], ["0"], ["1"]]
    assert [name for name, _ in figure.legend] == ["first", "second"]
    assert "#0072b2" in figure.legend[0][1]
    assert "first" not in "".join(figure.panels).replace("data-", "")


def test_no_panel_brings_a_style_of_its_own_or_an_id_of_another_figure(tmp_path):
    for name in ("one", "other"):
        draw_band_quality({"dot": BANDS}, tmp_path / f"{name}.svg")
    figures = [read_figure(tmp_path / f"{name}.svg", "Quality") for name in ("one", "other")]
    identities = [set(re.findall(r'\bid="([^"]+)"', "".join(figure.panels))) for figure in figures]
    assert identities[0]
    assert not identities[0] & identities[1]
    assert "<style" not in "".join(figures[0].panels)
