"""The report of a finished run as a browser shows it: all of it drawn, readable on a telephone, without complaints."""

import pytest
from tests.browser import started

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), pytest.param(400, True, marks=pytest.mark.long)], ids=["wide", "narrow and dark"]
)
def test_the_page_is_drawn_whole_fits_its_window_and_complains_of_nothing(finished, browser, width, dark):
    browser.complaints  # noqa: B018 Those of other tests.
    file = finished.folder / "results/report/index.html"
    assert file.stat().st_size < 5_000_000
    page = browser.open(file, width=width, dark=dark)
    assert len(page.all("figure.drawn")) == 7
    panels = page.run("[...document.querySelectorAll('.panels > svg')].map(panel => panel.getBBox().width)")
    assert len(panels) > 12
    assert min(panels) > 100
    assert page.run("performance.getEntriesByType('resource').length") == 0
    assert page.complaints == []
    assert page.overflow <= 0  # tables scroll
    heads = "[...document.querySelectorAll('th')].filter(head => head.scrollWidth > head.clientWidth + 1).length"
    assert page.run(heads) == 0
    names = ["cocite", "specter", "untrained_small", "bm25", "popularity", "random"]
    assert page.texts("#matrix tbody th") == page.texts("#matrix thead th")[1:] == names
    assert page.texts(".notice strong") == ["Generated data."]
    assert "published" not in page.one("#scores table").text
    assert not [words for words in ("CoCite 25-5000", "ODC-BY") if words in page.one("body").text]
