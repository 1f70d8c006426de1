"""The sampler `subset`."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Count, Refers, inconsistent
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class Subset(Sampler):
    """A random part of a named set, such as the 1% and the 10% of SciNCL's ablation (Ostendorff et al., 2022).

    Queries, or triplets, are ranked by hashes that depend on the seed and on their ids; examples by those of the query
    and of their number, which they keep. So a smaller part of a set lies within a larger one, and parts of several sets
    with the same queries hold the same queries.
    """

    sampler: Literal["subset"]
    of: Annotated[str, Refers("triplets")]
    """Name of the set that a part is taken of, of triplets or of examples."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the triplets, or of the examples, that is taken."""
    count: Count | None = None
    """Instead of share, the number of training triplets or examples; for validation, the same share."""
    by: Literal["query", "triplet"] = "query"
    """query takes whole queries, but for the last one; triplet takes each triplet, or example, for itself."""

    @property
    def has_negatives(self) -> bool:
        """It finds none beside those of its parts."""
        return False

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
        """Take a part of a table, of its rows for training and of those for validation alike.

        Raises `InputError` where there are fewer training triplets, or examples, than `count`.
        """
        import numpy as np

        from cocite.core.errors import InputError
        from cocite.core.randomness import priorities
        from cocite.core.tables import TABLES
        from cocite.core.tables.files import read_table
        from cocite.triplets.sampled import UNSERVED, WORDS, Sampled, read_chosen, table_made_of

        [path] = block.sources
        table = table_made_of([path])
        many, key = WORDS[table][0], TABLES[table].key
        whole = read_table(path, table, [*key, "split"])
        splits, columns = whole["split"].to_numpy(), [whole[name].to_numpy().astype(np.int64) for name in key]
        training = int(np.count_nonzero(splits == "train"))
        if (self.count or 0) > training:
            raise InputError(f"Setting count is {self.count}, but there are only {training} training {many}.")
        share = self.share or (self.count or 0) / training
        keys = [priorities(block.seed, f"subset of {many}", *columns)]
        if self.by == "query":  # keeps those of a query together
            keys.append(priorities(block.seed, "subset of queries", columns[0]))
        ranked = np.lexsort(keys)
        is_chosen = np.zeros(len(whole), dtype=bool)
        for split in ("train", "validation"):
            rows = ranked[np.asarray(splits == split)[ranked]]
            is_chosen[rows[: round(share * len(rows))]] = True
        is_ours = np.isin(columns[0], block.queries)
        omissions = {
            f"{UNSERVED[table]}: not in the part": len(block.queries) - len(np.unique(columns[0][is_chosen & is_ours])),
            f"{many} that are not in the part": int(np.count_nonzero(is_ours & ~is_chosen)),
        }
        return Sampled(rows=read_chosen(path, is_chosen & is_ours), omissions=omissions)
