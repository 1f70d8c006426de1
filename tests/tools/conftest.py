"""Runs whose recorded configuration has what a test is about."""

import pytest
from tests.configurations import recorded


@pytest.fixture(autouse=True)
def of_what_counts(monkeypatch):
    """Lets a recorded configuration have what a test is about; the rest is the least that there is."""
    for place in ("plan.recorded", "tools.publishing.mteb", "tools.publishing.folder"):
        monkeypatch.setattr(f"cocite.{place}.recorded_configuration", recorded)
