"""The section `triplets`: sets of triplets, each found by a sampler."""

from typing import TYPE_CHECKING

from cocite.config.plugins import one_of
from cocite.config.sampler import Sampler

SAMPLERS = "cocite.triplets.samplers"

if TYPE_CHECKING:
    TripletSet = Sampler
else:
    TripletSet = one_of(SAMPLERS, "sampler")
