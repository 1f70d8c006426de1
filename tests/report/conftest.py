"""A page of a small run, and a browser that opens it."""

from collections.abc import Iterator

import pytest
from tests.browser import Browser, started
from tests.report.made_page import small_page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The page of a run with five models, two seeds, three benchmarks, and figures of all kinds."""
    return small_page(tmp_path_factory.mktemp("small"))
