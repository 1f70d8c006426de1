"""A finished run, its server, and a browser, made once for all tests of a file."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.browser import Browser, started
from tests.tools.serving.made_run import Served, served, vectors_of_model, write_run

from cocite.tools.finished_run import Run, open_run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "small")


@pytest.fixture(scope="module")
def run(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The run, whose encoders give every text the vector of paper 7."""
    with open_run(results, [], tmp_path_factory.mktemp("cache")) as run:
        yield replace(run, embed=lambda name, text: vectors_of_model(name)[7].tolist())


@pytest.fixture(scope="module")
def server(run: Run) -> Iterator[Served]:
    with served(run) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser
