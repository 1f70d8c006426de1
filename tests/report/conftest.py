"""A page of a small run, a browser that opens it, and the words of a figure."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.browser import Browser, started
from tests.configurations import recorded
from tests.report.made_page import SMALL, page_of
from tests.report.made_run import configuration_of


def texts(svg: object) -> list[str]:
    """The words of a figure, or of a panel."""
    return re.findall(r"<text[^>]*>([^<]+)</text>", str(svg))


def drawn(folder: Path, draw: Callable[..., None], *given: object) -> str:
    """The text of the figure that a function draws of what it is given, which lies in this folder."""
    draw(*given, folder / "figure.svg")
    return (folder / "figure.svg").read_text()


def luminance(red: int, green: int, blue: int) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [part / 255 for part in (red, green, blue)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The page of a run with five models, two seeds, three benchmarks, and figures of all kinds."""
    return page_of(configuration_of(**SMALL), tmp_path_factory.mktemp("small"))


@pytest.fixture(autouse=True)
def of_what_counts(monkeypatch):
    """Lets a provenance have of its configuration what a test is about; the rest is the least that there is."""
    monkeypatch.setattr("cocite.report.results.recorded_configuration", recorded)
    monkeypatch.setattr("cocite.plan.recorded.recorded_configuration", recorded)
