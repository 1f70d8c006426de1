"""The page opens from disk: everything it shows is in it."""

import re
from html.parser import HTMLParser

import polars as pl
import pytest

from cocite.randomness import generator
from cocite.report.figures import draw_map, draw_validation_curves
from cocite.report.page import write_page

TABLES = {
    "models": pl.DataFrame({"model": ["cocite", "<b>"], "holdout: cite MAP": ["82.0", "–"]}),
    "losses": pl.DataFrame(schema=["loss"]),
    "graph_embeddings": pl.DataFrame({"embedding": ["g"], "mrr": ["0.5"]}),
    "omissions": pl.DataFrame({"stage": ["corpus"], "count": ["3"]}),
}


@pytest.fixture
def page(tmp_path):
    curve = pl.DataFrame(
        {"step": [1, 1, 2, 2], "metric": ["validation_loss", "validation_accuracy"] * 2, "value": [2.0, 0.5, 1.0, 0.7]}
    )
    vectors = generator(1, "page").normal(size=(30, 4))
    draw_validation_curves({"cocite": curve}, tmp_path / "validation_curves.svg")
    draw_map({"cocite": vectors}, ["physics"] * 20 + ["biology"] * 10, 1, tmp_path / "map.svg")
    figures = {"validation_curves": tmp_path / "validation_curves.svg", "map": tmp_path / "map.svg"}
    figures["link_prediction"] = figures["validation_curves"]
    provenance = {"release": "2026-01-06", "versions": {"python": "3.11"}, "configuration": {"seed": 1}}
    write_page(tables=TABLES, figures=figures, provenance=provenance, output=tmp_path / "index.html")
    return (tmp_path / "index.html").read_text()


def test_the_page_fetches_nothing(page):
    fetched = re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)|@import|<script', page)
    assert fetched == []


def test_text_of_a_table_is_not_markup(page):
    assert "&lt;b&gt;" in page
    assert "<td><b>" not in page


def test_figures_are_drawn_with_their_fields(page):
    assert page.count("<svg") == 3
    assert ">physics</text>" in page or "physics" in re.sub(r"<!--.*?-->", "", page)


def test_ids_of_figures_do_not_clash(page):
    class Ids(HTMLParser):
        def __init__(self):
            super().__init__()
            self.map_ids, self.curve_ids = set(), set()

        def handle_starttag(self, tag, attrs):
            name = dict(attrs).get("id") or ""
            if name.startswith("map-"):
                self.map_ids.add(name)
            elif name.startswith("validation_curves-"):
                self.curve_ids.add(name)

    ids = Ids()
    ids.feed(page)
    assert ids.map_ids
    assert ids.curve_ids
    assert set(re.findall(r'href="#([^"]+)"', page)) <= ids.map_ids | ids.curve_ids


def test_an_empty_comparison_is_left_out(page):
    assert "Which loss?" not in page
