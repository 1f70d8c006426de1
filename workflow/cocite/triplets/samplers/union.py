"""The sampler `union`."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cocite.config.entries import Names, Refers
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class Union(Sampler):
    """Several named sets of triplets as one; a triplet that more than one of them holds is taken once."""

    sampler: Literal["union"]
    of: Annotated[Names, Field(min_length=2), Refers("triplets")]
    """Names of the sets of triplets that are joined."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The sets that are joined."""
        return self.of

    def sample(self, block: "Block") -> "Sampled":
        """Join the tables `triplets`; ranks and kind of a common one are those of the set that is named first."""
        import numpy as np
        import pyarrow as pa

        from cocite.triplets.pairing import UNSERVED
        from cocite.triplets.sampled import Sampled, in_order, sampled_before

        before = pa.concat_tables(sampled_before(block))
        triplets = in_order(before)
        served = len(np.unique(triplets["query"].to_numpy()))
        return Sampled(
            rows=triplets,
            omissions={
                f"{UNSERVED}: in none of the sets": len(block.queries) - served,
                "triplets that another set holds as well": len(before) - len(triplets),
            },
        )
