"""Shares of citations by intent and of queries by aspect, and a heat map with a row a space and a column an aspect."""

import re
from pathlib import Path

import polars as pl
import pytest
import yaml
from tests.configurations import recorded
from tests.report.conftest import texts
from tests.report.made_page import page_of
from tests.report.made_run import scores_of

from cocite.config.configuration import resolve
from cocite.report.canvas import read_figure
from cocite.report.figures import draw_aspects, draw_spaces
from cocite.report.inputs import intents

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
    draw_aspects({"citation": COUNTS}, {"by-aspect": CHECKS}, tmp_path / "aspects.svg")
    of_graph, of_set = read_figure(tmp_path / "aspects.svg", "Aspects").panels
    shares = ["50.0%", "12.5%", "0.0%", "12.5%", "25.0%"]
    drawn = [text for pair in zip(CLASSES, shares, strict=True) for text in pair]
    assert texts(of_graph) == [*drawn, "citation: citations"]
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


def drawn(folder, scores, configuration=CONFIGURATION):
    draw_spaces(pl.DataFrame(scores), recorded(configuration), folder / "spaces.svg")
    return (folder / "spaces.svg").read_text()


def ground_of(svg):
    """The colours of the cells, in the order in which they are drawn: row by row."""
    return re.findall(r'<g id="patch_\d+">\s*<path [^>]*style="fill: (#\w+)"', svg)


def test_rows_are_spaces_and_columns_aspects_with_mean_and_deviation_in_each_cell(tmp_path):
    scores = [score("hybrid", "result", value, seed=seed) for seed, value in ((1, 30.0), (2, 32.0))]
    scores.append(score("hybrid_in_result", "background", 20.0))
    scores.append(score("hybrid_in_concatenated", "methodology", 90.0, metric="ndcg"))
    scores += [score("plain", "result", 77.0), score("hybrid", "cite", 66.0, benchmark="holdout")]
    assert texts(drawn(tmp_path, scores)) == [
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
    lowest, middle, highest, same = ground_of(drawn(tmp_path, scores, {**CONFIGURATION, "models": models}))
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
    drawn(tmp_path, scores, {**CONFIGURATION, "benchmarks": benchmarks})
    first, second = read_figure(tmp_path / "spaces.svg", "MAP").panels
    assert 'aria-label="MAP: own: hybrid"' in first
    assert f'aria-label="MAP: {other}: hybrid"' in second
    assert "34.0" in texts(first)
    assert {aspect, "12.0"} <= set(texts(second))
    assert "34.0" not in texts(second)


def luminance(colour):
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_black_letters_are_readable_on_every_colour(tmp_path):
    scores = [score("hybrid", task, value) for task, value in (("background", 0.0), ("result", 100.0))]
    grounds = ground_of(drawn(tmp_path, scores))
    assert len(grounds) == 2
    assert min((luminance(ground) + 0.05) / 0.05 for ground in grounds) >= 7  # WCAG 2, level AAA


def test_a_run_with_spaces_has_the_section_with_a_value_of_every_space_on_every_aspect(tmp_path):
    configuration = resolve(yaml.safe_load(PLANTED.read_text()))
    text = page_of(configuration, tmp_path).read_text()
    assert "Which space finds which aspect?" in text
    assert "MAP by space and aspect: hybrid" in text
    svg = drawn(tmp_path, scores_of(configuration), configuration)
    assert len(ground_of(svg)) == 2 * 5 * 3
    assert "–" not in texts(svg)
