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


def table_of(entry: Mapping[str, Any]) -> str:
    """The table that a set is sampled into, `triplets` or `sampled_examples`."""
    sampler: Any = plugins(SAMPLERS, "sampler")[entry["sampler"]]
    return str(sampler.gives)
