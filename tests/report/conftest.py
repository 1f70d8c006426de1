"""A page of a small run, a browser that opens it, and the words of a figure."""

import re
from collections.abc import Iterator

import pytest
from tests.browser import Browser, started
from tests.configurations import recorded
from tests.report.made_page import small_page


def texts(svg: object) -> list[str]:
    """The words of a figure, or of a panel."""
    return re.findall(r"<text[^>]*>([^<]+)</text>", str(svg))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The page of a run with five models, two seeds, three benchmarks, and figures of all kinds."""
    return small_page(tmp_path_factory.mktemp("small"))


@pytest.fixture(autouse=True)
def of_what_counts(monkeypatch):
    """Lets a provenance have of its configuration what a test is about; the rest is the least that there is."""
    monkeypatch.setattr("cocite.report.results.recorded_configuration", recorded)
    monkeypatch.setattr("cocite.plan.recorded.recorded_configuration", recorded)
