"""Several named sets of triplets as one; a triplet that more than one of them holds is taken once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cocite.triplets.pairing import UNSERVED
from cocite.triplets.sampled import Block, Sampled, in_order, sampled_before

SCHEMA = {
    "required": ["of"],
    "properties": {
        "of": {
            "description": "Names of the sets of triplets that are joined.",
            "type": "array",
            "items": {"type": "string"},
            "minItems": 2,
            "uniqueItems": True,
        },
    },
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A union takes what its sets hold."""


def sample(block: Block, settings: Settings) -> Sampled:
    """Join the tables `triplets`; ranks and kind of a common one are those of the set that is named first."""
    before = pa.concat_tables(sampled_before(block))
    triplets = in_order(before)
    served = len(np.unique(triplets["query"].to_numpy()))
    return Sampled(
        triplets=triplets,
        omissions={
            f"{UNSERVED}: in none of the sets": len(block.queries) - served,
            "triplets that another set holds as well": len(before) - len(triplets),
        },
    )
