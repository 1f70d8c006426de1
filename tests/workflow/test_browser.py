"""The report of a finished run as a browser shows it: all of it drawn, readable on a telephone, without complaints."""

import pytest
from tests.browser import started

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.fixture(params=[(1280, False), (400, True)], ids=["wide", "narrow and dark"])
def page(request, browser, finished):
    width, dark = request.param
    browser.complaints  # noqa: B018 Those of other tests.
    return browser.open(finished.folder / "results/report/index.html", width=width, dark=dark)


def test_every_figure_is_drawn_and_nothing_is_complained_about(page):
    figures = page.all("figure.drawn")
    assert len(figures) == 7
    panels = page.run("[...document.querySelectorAll('.panels > svg')].map(panel => panel.getBBox().width)")
    assert len(panels) > 12
    assert min(panels) > 100
    assert page.run("performance.getEntriesByType('resource').length") == 0
    assert page.complaints == []


def test_nothing_is_wider_than_the_window_but_tables_that_scroll(page):
    assert page.overflow <= 0
    heads = "[...document.querySelectorAll('th')].filter(head => head.scrollWidth > head.clientWidth + 1).length"
    assert page.run(heads) == 0


def test_the_matrix_has_every_model_and_baseline(page):
    names = ["cocite", "specter", "untrained_small", "bm25", "random"]
    assert page.texts("#matrix tbody th") == names
    assert page.texts("#matrix thead th")[1:] == names


def test_what_is_generated_is_said_and_nothing_published_stands_beside_it(page):
    assert page.texts(".notice strong") == ["Generated data."]
    words = page.one("body").text
    assert "published" not in page.one("#scores table").text
    assert "CoCite 25-5000" not in words
    assert "ODC-BY" not in words


def test_the_page_is_light(finished):
    assert (finished.folder / "results/report/index.html").stat().st_size < 5_000_000
