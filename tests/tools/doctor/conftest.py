"""A configuration for the doctor."""

import pytest

from cocite.config.configuration import resolve_or_explain


@pytest.fixture
def complete():
    """A whole configuration whose largest model asks for 9,000 MB."""
    model = {"triplets": "t", "encoder": "e", "seeds": [1]}
    sampled = {"sampler": "random"}
    config, faults = resolve_or_explain(
        {
            "release": "2026-01-06",
            "corpus": {"source": "demo"},
            "triplets": {"t": sampled},
            "encoders": {"e": {"build": {}}},
            "models": {"small": model, "large": {**model, "memory_mb": 9000, "threads": 6}},
        }
    )
    assert faults == []
    return config
