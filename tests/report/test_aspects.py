"""The report says what share of the citations has which intent, and of the queries an example of which aspect."""

import re

import polars as pl

from cocite.report.aspects import draw_aspects
from cocite.report.inputs import intents
from cocite.report.svg import read_figure

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


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]+)</text>", str(svg))


def test_the_table_has_a_share_and_a_count_of_each_intent():
    assert intents({"citation": COUNTS, "empty": NOTHING}).rows() == [
        ("citation", "4,000", "50.0% (2,000)", "12.5% (500)", "0.0% (0)", "12.5% (500)", "25.0% (1,000)"),
        ("empty", "0", *["0.0% (0)"] * 5),
    ]


def test_without_a_graph_of_aspects_there_is_no_row():
    assert intents({}).is_empty()


def test_a_graph_has_a_bar_an_intent_and_a_set_a_bar_an_aspect(tmp_path):
    draw_aspects({"citation": COUNTS}, {"by-aspect": CHECKS}, tmp_path / "aspects.svg")
    of_graph, of_set = read_figure(tmp_path / "aspects.svg", "Aspects").panels
    shares = ["50.0%", "12.5%", "0.0%", "12.5%", "25.0%"]
    drawn = [text for pair in zip(CLASSES, shares, strict=True) for text in pair]
    assert texts(of_graph) == [*drawn, "citation: citations"]
    assert texts(of_set) == ["background", "75.0%", "result", "0.8%", "by-aspect: queries"]


def test_the_length_of_a_bar_is_its_share(tmp_path):
    draw_aspects({"citation": COUNTS}, {}, tmp_path / "aspects.svg")
    bars = re.findall(
        r'<path d="M ([\d.]+) [\d.]+\s+L ([\d.]+) [^>]*fill: #0072b2', (tmp_path / "aspects.svg").read_text()
    )
    lengths = [float(right) - float(left) for left, right in bars]
    assert [round(length / lengths[0], 2) for length in lengths] == [1, 0.25, 0, 0.25, 0.5]
