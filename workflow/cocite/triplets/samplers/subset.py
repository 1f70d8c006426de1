"""A random part of a named set of triplets, such as the 1% and the 10% of SciNCL's ablation (Ostendorff et al., 2022).

Queries, or triplets, are ranked by hashes that depend on the seed and on their ids. So a smaller part of a set lies
within a larger one, and parts of several sets with the same queries hold the same queries.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, PositiveInt

from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids
from cocite.ground.randomness import priorities
from cocite.triplets.pairing import UNSERVED
from cocite.triplets.sampled import ROLES, Block, Sampled, sampled_before

SCHEMA = {
    "required": ["of"],
    "properties": {
        "of": {"description": "Name of the set of triplets that a part is taken of.", "type": "string"},
        "share": {
            "description": "Share of the triplets that is taken.",
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
        },
        "count": {
            "description": "Instead of share, the number of training triplets; for validation, the same share.",
            "type": "integer",
            "minimum": 1,
        },
        "by": {
            "description": "query takes whole queries, but for the last one; triplet takes each triplet for itself.",
            "enum": ["query", "triplet"],
            "default": "query",
        },
    },
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much is taken."""

    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the triplets of each split."""
    count: PositiveInt | None = None
    """Instead of a share: number of training triplets; of the validation triplets the same share is taken."""
    by: Literal["query", "triplet"] = "query"
    """query: whole queries, but for the last one; triplet: each triplet for itself."""


def sample(block: Block, settings: Settings) -> Sampled:
    """Take a part of the table `triplets`."""
    whole = pa.concat_tables(sampled_before(block, of_block=False))
    is_chosen = np.zeros(len(whole), dtype=bool)
    share = _share(settings, whole)
    ranked = _ranked(whole, settings.by, block.seed)
    for split in ("train", "validation"):
        rows = ranked[np.asarray(whole["split"].to_numpy() == split)[ranked]]
        is_chosen[rows[: round(share * len(rows))]] = True
    is_ours = np.isin(whole["query"].to_numpy(), block.queries)
    triplets = whole.filter(pa.array(is_chosen & is_ours))
    served = len(np.unique(triplets["query"].to_numpy()))
    return Sampled(
        triplets=triplets,
        omissions={
            f"{UNSERVED}: not in the part": len(block.queries) - served,
            "triplets that are not in the part": int(np.count_nonzero(is_ours & ~is_chosen)),
        },
    )


def _share(settings: Settings, whole: pa.Table) -> float:
    if settings.count is None:
        return settings.share or 0.0
    training = int(pc.sum(pc.equal(whole["split"], "train")).as_py() or 0)
    if settings.count > training:
        raise InputError(f"Setting count is {settings.count}, but there are only {training} training triplets.")
    return settings.count / training


def _ranked(whole: pa.Table, by: str, seed: int) -> Ids:
    """The rows in a random order, those of a query together if whole queries are taken."""
    columns = [whole[role].to_numpy() for role in ROLES]
    order = priorities(seed, "subset of triplets", *columns)
    if by == "triplet":
        return np.argsort(order, kind="stable")
    return np.lexsort((order, priorities(seed, "subset of queries", columns[0])))
