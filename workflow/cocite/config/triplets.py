"""The section `triplets`: sets of triplets, or of examples, each found by a sampler."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cocite.config.plugins import one_of, plugins
from cocite.config.sampler import Sampler

SAMPLERS = "cocite.triplets.samplers"

if TYPE_CHECKING:
    TripletSet = Sampler
else:
    TripletSet = one_of(SAMPLERS, "sampler")


BY_ASPECT = "aspects"
"""The sampler whose examples know their aspect."""


def sets_by_aspect(config: Mapping[str, Any]) -> list[str]:
    """The sets whose examples are sampled by aspect."""
    return [name for name, entry in config["triplets"].items() if entry["sampler"] == BY_ASPECT]


def graphs_of_aspects(config: Mapping[str, Any]) -> list[str]:
    """The graphs that those are sampled from, each once."""
    return list(dict.fromkeys(config["triplets"][name]["graph"] for name in sets_by_aspect(config)))


def table_of(entry: Mapping[str, Any]) -> str:
    """The table that a set is sampled into, `triplets` or `sampled_examples`."""
    sampler: Any = plugins(SAMPLERS, "sampler")[entry["sampler"]]
    return str(sampler.gives)
