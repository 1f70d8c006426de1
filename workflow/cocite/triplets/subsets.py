"""A random part of a set of triplets: queries, or triplets, ranked by hashes of their ids."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids
from cocite.ground.randomness import priorities
from cocite.triplets.pairing import UNSERVED
from cocite.triplets.sampled import ROLES, Block, Sampled, sampled_before


def take_part(block: Block, *, share: float | None, count: int | None, by: str) -> Sampled:
    """The part of the block's triplets that is within the share or the count of the whole set, by query or triplet.

    Raises `InputError` where there are fewer training triplets than `count`.
    """
    whole = pa.concat_tables(sampled_before(block, of_block=False))
    is_chosen = np.zeros(len(whole), dtype=bool)
    part = _share(whole, share, count)
    ranked = _ranked(whole, by, block.seed)
    for split in ("train", "validation"):
        rows = ranked[np.asarray(whole["split"].to_numpy() == split)[ranked]]
        is_chosen[rows[: round(part * len(rows))]] = True
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


def _share(whole: pa.Table, share: float | None, count: int | None) -> float:
    if count is None:
        return share or 0.0
    training = int(pc.sum(pc.equal(whole["split"], "train")).as_py() or 0)
    if count > training:
        raise InputError(f"Setting count is {count}, but there are only {training} training triplets.")
    return count / training


def _ranked(whole: pa.Table, by: str, seed: int) -> Ids:
    """The rows in a random order, those of a query together if whole queries are taken."""
    columns = [whole[role].to_numpy() for role in ROLES]
    order = priorities(seed, "subset of triplets", *columns)
    if by == "triplet":
        return np.argsort(order, kind="stable")
    return np.lexsort((order, priorities(seed, "subset of queries", columns[0])))
