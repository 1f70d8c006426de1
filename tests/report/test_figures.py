"""Figures show what they are given: of graphs, training, maps, aspects, spaces, screened reviews and probes."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from tests.configurations import recorded
from tests.report.conftest import drawn, luminance, texts
from tests.report.made_page import BANDS, LINKS, METRICS, page_of
from tests.report.made_run import curve, scores_of

from cocite.config.benchmarks.screening import FOUND_EARLY
from cocite.config.configuration import resolve
from cocite.core.randomness import generator
from cocite.report.canvas import read_figure, read_svg, styles
from cocite.report.figures import (
    draw_aspects,
    draw_band_quality,
    draw_link_prediction,
    draw_map,
    draw_pair_counts,
    draw_spaces,
    draw_triplets,
    draw_validation_curves,
)
from cocite.report.inputs import intents
from cocite.report.map_page import UNKNOWN, MapData
from cocite.report.probes import draw_probes, probes_table
from cocite.report.screening import curves, draw_screening


def test_the_curves_of_link_prediction_have_a_panel_a_metric_and_a_line_an_embedding_and_kind(tmp_path):
    figure = drawn(tmp_path, draw_link_prediction, {"dot": LINKS, "cos": LINKS})
    words = {"loss", "mean rank", "MRR", "Hits@1", "Hits@10", "Hits@50", "AUC", "dot", "cos"}
    assert words <= set(texts(figure))
    assert len(re.findall(r'id="series-[01]-\d-raw">\s*<path[^>]*stroke-opacity: 0.5', figure)) == 2 * len(METRICS)


def test_the_quality_of_bands_has_a_panel_a_relation_and_a_line_an_embedding_if_there_is_any(tmp_path):
    words = texts(drawn(tmp_path, draw_band_quality, {"dot": BANDS, "cos": BANDS}))
    assert {"neighbours co-cited with the query", "neighbours citing it or cited by it", "rank"} <= set(words)
    assert words.count("dot") == words.count("cos") == 1
    assert "dot" not in texts(drawn(tmp_path, draw_band_quality, {}))


def test_the_figure_of_triplets_marks_the_rank_of_each_set_that_is_drawn_from_neighbours(tmp_path):
    curve = pl.DataFrame({"k_negative": [30, 100, 300], "collisions": [9, 4, 0], "pairs": [90, 90, 90]})
    counts = pl.DataFrame({"split": ["train", "train", "validation"], "count": [0, 5, 5], "queries": [1, 8, 1]})
    of_sets = dict.fromkeys(("cocite", "specter"), counts)
    with_curve, without = (
        drawn(tmp_path, draw_triplets, {"cocite": first, "specter": curve.clear()}, of_sets, {"cocite": 100})
        for first in (curve, curve.clear())
    )
    assert {"set cocite", "set specter", "triplets per query", "queries"} <= set(texts(with_curve))
    colour = "#0072b2"  # of the first set, whose curve and dot the second figure lacks
    assert with_curve.count(colour) > without.count(colour) > 0


def validation(*seeds):
    """Validation at two steps; a seed's values are those of seed 0 and its number."""
    return pl.concat(curve((1, 2.0 + seed, 0.5 + seed), (2, 1.0 + seed, 0.7 + seed), seed=seed) for seed in seeds)


def test_several_seeds_are_drawn_as_their_mean_within_a_band_and_one_without(tmp_path):
    losses = dict.fromkeys("mn", "triplet")
    figure = drawn(tmp_path, draw_validation_curves, {"m": validation(1), "n": validation(1, 3)}, losses)
    assert set(re.findall(r'id="(series-\d-\d[\w-]*)"', figure)) == {
        *("series-0-0", "series-0-1"),
        *("series-1-0", "series-1-1", "series-1-0-band", "series-1-1-band"),
    }


def test_figures_take_the_colour_of_the_text_around_them_and_have_no_ground_of_their_own(tmp_path):
    counts = pl.DataFrame({"graph": ["g", "g"], "count": [1, 1000], "pairs": [20, 1]})
    figure = drawn(tmp_path, draw_pair_counts, counts, {"g": "couplings"})
    assert "fill: currentColor" in figure
    assert not re.search(r"#0{6}|#f{6}", figure)
    assert {"1", "10", "100", "1k", "g (couplings)"} <= set(texts(figure))


def test_no_two_of_fifty_models_look_alike():
    assert len({entry[1:] for entry in styles([f"m{number}" for number in range(50)]).values()}) == 50


POINTS = generator(1, "page").normal(size=(700, 2))


def mapped(folder, layouts, classes, titles):
    """The titles of the points in the picture of a map, and its words."""
    clusters, years = {name: [None] * len(titles) for name in layouts}, [None] * len(titles)
    data = MapData(titles=titles, years=years, classes={"field": classes}, layouts=layouts, clusters=clusters)
    figure = drawn(folder, draw_map, data, 1)
    return re.findall(r"<title>([^<]*)</title>", figure), texts(figure)


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
    figure = read_figure(tmp_path / "figure.svg", "Map")
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


def test_the_page_takes_a_figure_apart_into_panels_of_one_size_one_for_each_kind_of_loss_with_their_lines(tmp_path):
    losses = {"first": "triplet", "second": "triplet", "third": "cosent"}
    drawn(tmp_path, draw_validation_curves, dict.fromkeys(losses, validation(1)), losses)
    figure = read_figure(tmp_path / "figure.svg", "Validation")
    panels = [read_svg(str(panel)) for panel in figure.panels]
    assert [panel.get("aria-label") for panel in panels] == [
        "Validation: share of triplets in order, by steps",
        "Validation: triplet loss, by steps",
        "Validation: cosent loss, by steps",
    ]
    assert len({tuple(panel.get("viewBox").split()[2:]) for panel in panels}) == 1
    lines = [[group.get("data-series") for group in panel.iter() if group.get("data-series")] for panel in panels]
    assert lines == [["0", "1", "2"], ["0", "1"], ["2"]]
    assert [name for name, _ in figure.legend] == ["first", "second", "third"]
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


def outcomes(places, papers=100):
    """Outcomes of one model on one task: the places of each review, one list for each start."""
    rows = [
        {"benchmark": "b", "task": "screening", "model": "m", "metric": FOUND_EARLY, "item": review}
        | {"predicted": [str(place) for place in of_start], "expected": [str(papers)]}
        for review, of_review in places.items()
        for of_start in of_review
    ]
    return pl.DataFrame(rows)


def test_a_curve_is_the_mean_over_the_starts_of_each_review_and_over_reviews(tmp_path):
    found = outcomes({"one": [[1, 10, 20, 60], [1, 30, 40, 60]], "two": [[5, 6]]})
    recall = {row["screened"]: row for row in curves(found).iter_rows(named=True)}
    assert recall[10]["recall"] == pytest.approx((100 * (2 / 4 + 1 / 4) / 2 + 100) / 2)
    assert recall[2]["recall"] == pytest.approx((25 + 0) / 2)
    assert recall[100]["recall"] == 100
    # Student's t of one degree of freedom: 12.706 times the standard error over the two reviews, 12.5.
    assert recall[2]["high"] - recall[2]["recall"] == pytest.approx(12.706 * 12.5, rel=1e-3)
    assert "included papers found, screening" in drawn(tmp_path, draw_screening, found)


def test_one_review_has_no_interval():
    row = curves(outcomes({"one": [[1, 50]]})).filter(screened=50).row(0, named=True)
    assert row["recall"] == row["low"] == row["high"] == 100


VALUES = {"untrained": 80.0, "good": 84.0, "even": 83.9, "far": 60.0}
RANKS = {"good": 1, "even": 2, "untrained": 3, "far": 4}


@pytest.fixture
def scores():
    rows = []
    for (name, value), part, task in product(VALUES.items(), ("selection", "test"), ("cite", "cocite", "all")):
        found = value - (part == "selection") + {"cite": 1, "cocite": -1, "all": 0}[task]
        difference = value - VALUES["good"]
        is_trained = name != "untrained"
        row = {"triplets": name, "loss": "triplet margin=1.0" if is_trained else "untrained", "rank": RANKS[name]}
        row |= {"batch_size": 128 * is_trained, "part": part, "task": task, "value": found, "queries": 100}
        row |= {"deviation": 0.12 if is_trained else None, "low": found - 1, "high": found + 1}
        row |= {"difference": difference, "difference_low": difference - 0.3, "difference_high": difference + 0.3}
        rows.append(row)
    return pl.DataFrame(rows)


def test_sets_stand_in_the_order_of_the_papers_that_choose_with_the_values_of_those_that_prove(scores):
    table = probes_table({"which": scores})
    assert table["triplets"].to_list() == ["good", "even", "untrained", "far"]
    assert table["selection"].to_list() == ["83.0", "82.9", "79.0", "59.0"]
    best, even, untrained, _ = table.to_dicts()
    assert (best["cite"], best["cocite"], best["from the best"]) == ("85.0 ± 0.1", "83.0 ± 0.1", "")
    assert even["from the best"] == "-0.1 (-0.4 to +0.2)"
    assert (untrained["loss"], untrained["batch size"], untrained["cite"]) == ("", "", "81.0")


def test_several_probes_are_told_apart_by_their_names_and_without_any_the_table_is_empty(scores):
    table = probes_table({"one": scores, "other": scores})
    assert table["probe"].to_list() == ["one"] * 4 + ["other"] * 4
    assert len(probes_table({})) == 0


def test_a_set_that_is_far_behind_does_not_stretch_the_axis(scores, tmp_path):
    figure = drawn(tmp_path, draw_probes, {"which": scores})
    assert all(f">{name}<" in figure for name in VALUES)
    ticks = [int(number) for number in range(40, 100) if f">{number}<" in figure]
    assert ticks
    assert min(ticks) > 65


CLASSES = ["background", "methodology", "result", "several", "none"]
COUNTS = pl.DataFrame({"intent": CLASSES, "citations": [2000, 500, 0, 500, 1000]})
NOTHING = pl.DataFrame({"intent": CLASSES, "citations": [0] * 5})
CHECKS = pl.DataFrame(
    {
        "check": ["collision", "served", "served"],
        "part": ["pairs in background", "background", "result"],
        "found": [7, 90, 1],
        "among": [70, 120, 120],
    }
)


def test_the_table_has_a_share_and_a_count_of_each_intent():
    assert intents({}).is_empty()
    assert intents({"citation": COUNTS, "empty": NOTHING}).rows() == [
        ("citation", "4,000", "50.0% (2,000)", "12.5% (500)", "0.0% (0)", "12.5% (500)", "25.0% (1,000)"),
        ("empty", "0", *["0.0% (0)"] * 5),
    ]


def test_a_graph_has_a_bar_an_intent_and_a_set_a_bar_an_aspect(tmp_path):
    drawn(tmp_path, draw_aspects, {"citation": COUNTS}, {"by-aspect": CHECKS})
    of_graph, of_set = read_figure(tmp_path / "figure.svg", "Aspects").panels
    shares = ["50.0%", "12.5%", "0.0%", "12.5%", "25.0%"]
    words = [text for pair in zip(CLASSES, shares, strict=True) for text in pair]
    assert texts(of_graph) == [*words, "citation: citations"]
    assert texts(of_set) == ["background", "75.0%", "result", "0.8%", "by-aspect: queries"]
    bars = re.findall(r'<path d="M ([\d.]+) [\d.]+\s+L ([\d.]+) [^>]*fill: #0072b2', str(of_graph))
    lengths = [float(right) - float(left) for left, right in bars]
    assert [round(length / lengths[0], 2) for length in lengths] == [1, 0.25, 0, 0.25, 0.5]


PLANTED = Path(__file__).parents[2] / "experiments/planted-aspects.yaml"
CONFIGURATION = {
    "models": {"hybrid": {"spaces": ["result", "concatenated"]}, "plain": {"spaces": []}},
    "benchmarks": {"own": {"kind": "aspects"}, "holdout": {"kind": "holdout"}},
}


def score(model, task, value, *, benchmark="own", seed=1, metric="map"):
    row = {"model": model, "task": task, "benchmark": benchmark, "metric": metric, "seed": seed}
    return row | {"evaluation_seed": 1, "value": value}


def heat_map(folder, scores, configuration=CONFIGURATION):
    return drawn(folder, draw_spaces, pl.DataFrame(scores), recorded(configuration))


def ground_of(svg):
    """The colours of the cells, in the order in which they are drawn: row by row."""
    return re.findall(r'<g id="patch_\d+">\s*<path [^>]*style="fill: (#\w+)"', svg)


def test_rows_are_spaces_and_columns_aspects_with_mean_and_deviation_in_each_cell(tmp_path):
    scores = [score("hybrid", "result", value, seed=seed) for seed, value in ((1, 30.0), (2, 32.0))]
    scores.append(score("hybrid_in_result", "background", 20.0))
    scores.append(score("hybrid_in_concatenated", "methodology", 90.0, metric="ndcg"))
    scores += [score("plain", "result", 77.0), score("hybrid", "cite", 66.0, benchmark="holdout")]
    assert texts(heat_map(tmp_path, scores)) == [
        *("background", "methodology", "result"),
        *("encoder", "–", "–", "31.0", "± 1.4"),
        *("result", "20.0", "–", "–"),
        *("concatenated", "–", "–", "–"),
        "hybrid",
    ]


def test_colours_go_from_the_lowest_to_the_highest_value_of_all_models(tmp_path):
    models = {name: {"spaces": ["result"]} for name in ("one", "other")}
    values = {"one": 10.0, "one_in_result": 30.0, "other": 50.0, "other_in_result": 30.0}
    scores = [score(name, "result", value) for name, value in values.items()]
    lowest, middle, highest, same = ground_of(heat_map(tmp_path, scores, {**CONFIGURATION, "models": models}))
    assert (lowest, highest) == ("#f1f6fa", "#56b4e9")
    assert middle == same not in (lowest, highest)


@pytest.mark.parametrize(
    ("other", "entry", "task", "aspect"),
    [
        ("facets", {"kind": "csfcube", "tasks": ["csfcube_method"]}, "csfcube_method", "method"),
        ("hard", {"kind": "aspects"}, "result", "result"),
    ],
)
def test_two_benchmarks_are_told_apart_and_the_facets_of_csfcube_are_aspects_too(tmp_path, other, entry, task, aspect):
    benchmarks = {"own": {"kind": "aspects"}, other: entry}
    scores = [score("hybrid", "result", 34.0), score("hybrid", task, 12.0, benchmark=other)]
    heat_map(tmp_path, scores, {**CONFIGURATION, "benchmarks": benchmarks})
    first, second = read_figure(tmp_path / "figure.svg", "MAP").panels
    assert 'aria-label="MAP: own: hybrid"' in first
    assert f'aria-label="MAP: {other}: hybrid"' in second
    assert "34.0" in texts(first)
    assert {aspect, "12.0"} <= set(texts(second))
    assert "34.0" not in texts(second)


def test_black_letters_are_readable_on_every_colour(tmp_path):
    scores = [score("hybrid", task, value) for task, value in (("background", 0.0), ("result", 100.0))]
    grounds = ground_of(heat_map(tmp_path, scores))
    assert len(grounds) == 2
    assert min((luminance(*bytes.fromhex(ground[1:])) + 0.05) / 0.05 for ground in grounds) >= 7  # WCAG 2, level AAA


def test_a_run_with_spaces_has_the_section_with_a_value_of_every_space_on_every_aspect(tmp_path):
    configuration = resolve(yaml.safe_load(PLANTED.read_text()))
    text = page_of(configuration, tmp_path).read_text()
    assert "Which space finds which aspect?" in text
    assert "MAP by space and aspect: hybrid" in text
    svg = heat_map(tmp_path, scores_of(configuration), configuration)
    assert len(ground_of(svg)) == 2 * 5 * 3
    assert "–" not in texts(svg)
