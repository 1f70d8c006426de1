"""Durations and sizes as people read them."""

import pytest

from cocite.core.usage import about, byte_size, clock_time


def test_days_are_written_as_hours():
    assert [clock_time(seconds) for seconds in (0.4, 59.6, 90_061.0)] == ["0:00:00", "0:01:00", "25:01:01"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (119.4, "119 s"), (120, "2 min"), (7140, "119 min"), (7200, "2.0 h")]
)
def test_a_duration_has_the_unit_that_fits(seconds, said):
    assert about(seconds) == said


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (44_100_000_000, "44.1 GB"), (1_234_500_000_000_000, "1,234.5 TB")],
)
def test_a_size_has_the_unit_that_fits(size, said):
    assert byte_size(size) == said


@pytest.mark.parametrize(("size", "said"), [(999, "999 B"), (1_500, "1.5 kB"), (2_345_678, "2.35 MB"), (3e9, "3 GB")])
def test_a_size_has_as_many_figures_as_are_asked_for(size, said):
    assert byte_size(size, ".3g") == said
