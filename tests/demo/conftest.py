"""Releases that the tests of this stage share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Rows

from cocite.demo.release import generate_release


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of 1,200 papers on 12 topics, two in each field."""
    folder = tmp_path_factory.mktemp("generated") / "release"
    generate_release(folder, release="2026-01-06", papers=1200, topics=12, shards=3, seed=7)
    return folder


def _rows(name: str) -> Callable[..., Rows]:
    """A fixture: the records of one of its datasets."""
    return pytest.fixture(scope="session", name=name)(lambda release, read_rows: read_rows(release / name))


papers, abstracts, citations = map(_rows, ("papers", "abstracts", "citations"))
