"""The sampler `subset`."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Count, Refers, inconsistent
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class Subset(Sampler):
    """A random part of a named set of triplets, such as the 1% and the 10% of SciNCL's ablation (Ostendorff et al.,
    2022).

    Queries, or triplets, are ranked by hashes that depend on the seed and on their ids. So a smaller part of a set
    lies within a larger one, and parts of several sets with the same queries hold the same queries.
    """

    sampler: Literal["subset"]
    of: Annotated[str, Refers("triplets")]
    """Name of the set of triplets that a part is taken of."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the triplets that is taken."""
    count: Count | None = None
    """Instead of share, the number of training triplets; for validation, the same share."""
    by: Literal["query", "triplet"] = "query"
    """query takes whole queries, but for the last one; triplet takes each triplet for itself."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The set that a part is taken of."""
        return (self.of,)

    @model_validator(mode="after")
    def _has_one_size(self) -> "Subset":
        if (self.share is None) == (self.count is None):
            raise inconsistent(" needs exactly one of share and count.")
        return self

    def sample(self, block: "Block") -> "Sampled":
        """Take a part of the table `triplets`."""
        from cocite.triplets.subsets import take_part

        return take_part(block, share=self.share, count=self.count, by=self.by)
