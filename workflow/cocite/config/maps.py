"""The section `maps`: documents of a benchmark in two dimensions, as models place them, and clusters found there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cocite.config.benchmark import Benchmark
from cocite.config.map import MapSettings
from cocite.config.plugins import one_of
from cocite.config.settings import validated

METHODS = "cocite.report.map_methods"

if TYPE_CHECKING:
    Map = MapSettings
else:
    Map = one_of(METHODS, "method", default="tsne")


def usual_maps(benchmarks: Mapping[str, Benchmark]) -> dict[str, Map]:
    """The map of a configuration that says nothing of maps: that of its first benchmark about held-out papers."""
    held_out = [name for name, entry in benchmarks.items() if entry.made_by is not None]
    return {name: validated(Map, {"benchmark": name}) for name in held_out[:1]}
