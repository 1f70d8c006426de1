"""The section `triplets`: sets of triplets, each found by a sampler."""

from cocite.config.plugins import one_of

SAMPLERS = "cocite.triplets.samplers"

TripletSet = one_of(SAMPLERS, "sampler")
