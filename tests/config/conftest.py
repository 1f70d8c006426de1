"""The default configuration, as it is written."""

from pathlib import Path

import pytest
import yaml


@pytest.fixture
def written():
    return yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text())
