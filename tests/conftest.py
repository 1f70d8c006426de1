"""Fixtures that every stage's tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

# How long an example takes is a matter of the machine.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, through COCITE_SHARED or beside the checkout; skips where it is absent."""
    folder = Path(os.environ.get("COCITE_SHARED", ROOT.parent / "shared")).resolve()
    if not (folder / "data" / "releases").is_dir():
        pytest.skip(f"no real corpora: COCITE_SHARED is not set and {folder} holds none")
    return folder
