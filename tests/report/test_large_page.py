"""The page of a large experiment, 50 models with 3 seeds on 6 benchmarks, is light, quick and readable."""

import time

import pytest
from selenium.webdriver.support.ui import Select
from tests.report.made_page import page_of
from tests.report.made_run import configuration_of


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return page_of(configuration_of(models=50, seeds=3), tmp_path_factory.mktemp("large"))


@pytest.mark.parametrize("width", [400, 1280])
def test_it_is_light_opens_at_once_and_is_no_wider_than_its_window(browser, large, width):
    assert 1_000_000 < large.stat().st_size < 5_000_000
    start = time.process_time()
    page = browser.open(large, width=width)
    assert time.process_time() - start < 10
    assert page.overflow <= 0
    assert len(page.all("#matrix tbody tr")) == 53


def test_its_tables_scroll_below_their_heads_and_say_so(browser, large):
    page = browser.open(large)
    assert page.run("document.documentElement.scrollHeight") < 22_000
    wide = page.one("figure.table:has(#models-caption) .wide")
    hint = page.run("arguments[0].nextElementSibling.textContent", wide)
    assert hint == "This table goes on to the right and below (53 rows): scroll it."
    page.run("arguments[0].scrollTop = 1e6", wide)
    page.run("new Promise(done => setTimeout(done, 100))")
    assert "more-below" not in wide.get_attribute("class")
    top, last, below = page.run(
        """(wide => ['thead th', 'tbody tr:last-child td'].map(
            selector => wide.querySelector(selector).getBoundingClientRect()
        ).flatMap((box, at) => at ? [box.bottom] : [box.top - wide.getBoundingClientRect().top]
        ).concat(wide.getBoundingClientRect().bottom))(arguments[0])""",
        wide,
    )
    assert abs(top) < 2
    assert last <= below


def test_its_matrix_and_its_tables_answer_at_once(browser, large):
    page = browser.open(large)
    start = time.process_time()
    Select(page.one("#matrix-measure")).select_by_visible_text("mdcr: all values, counted")
    page.one("figure.table:has(#tasks_mdcr-caption) thead button").click()
    assert len(page.one("#matrix tbody td:nth-child(3) small").text) > 0
    assert time.process_time() - start < 10


def test_its_legend_leaves_room_for_its_panels(browser, large):
    page = browser.open(large, width=400)
    legend = page.one("#validation_curves-figure .legend")
    assert legend.rect["height"] <= 0.31 * 900
    assert legend.get_property("scrollHeight") > legend.rect["height"]
    assert all(panel.rect["width"] > 300 for panel in page.all("#validation_curves-figure .panels > svg"))
