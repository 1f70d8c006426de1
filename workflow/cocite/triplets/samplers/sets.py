"""Samplers of sets that are made of other sets: `union` and `subset`."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Count, Names, Refers, inconsistent
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled

QUERIES_AT_ONCE = 50_000  # queries whose rows are joined at once: memory is needed for several copies


class Union(Sampler):
    """Several named sets as one; triplets, or examples, that occur in more than one of them are taken once.

    If one of the sets has examples, triplets become examples of one positive and one negative. Examples are equal if
    they have the same query, aspect, positives and negatives, in whatever order.
    """

    sampler: Literal["union"]
    of: Annotated[Names, Field(min_length=2), Refers("triplets")]
    """Names of the sets that are joined, of triplets or of examples."""
    has_negatives: ClassVar[bool] = False  # except those of its parts

    def sample(self, block: "Block") -> "Sampled":
        """Join the tables; ranks and kinds of a common row are those of the set that is named first.

        Raises `InputError` if a source is not a set.
        """
        import numpy as np
        import pyarrow as pa

        from cocite.core.tables.files import read_table, table_in
        from cocite.core.written_ids import distinct
        from cocite.triplets import sampled

        table = sampled.table_made_of(block.sources)
        sets = [(path, read_table(path, table_in(path), ["query"])["query"].to_numpy()) for path in block.sources]
        pieces, found = [], 0
        for first in range(0, len(block.queries), QUERIES_AT_ONCE):
            queries = block.queries[first : first + QUERIES_AT_ONCE]
            parts = []
            for path, of_rows in sets:
                rows = sampled.read_chosen(path, np.isin(of_rows, queries))
                parts.append(rows if table_in(path) == table else sampled.as_examples(rows))
            rows = pa.concat_tables(parts, promote_options="default")
            pieces.append(sampled.in_order(rows) if table == "triplets" else sampled.each_once(rows))
            found += len(rows)
        rows = pa.concat_tables(pieces)
        omissions = {
            f"{sampled.UNSERVED[table]}: in none of the sets": len(block.queries)
            - len(distinct(rows["query"].to_numpy())),
            f"{sampled.WORDS[table][0]} that another set holds as well": found - len(rows),
        }
        return sampled.Sampled(rows=rows, omissions=omissions)


class Subset(Sampler):
    """A random part of a named set, such as the 1% and the 10% of SciNCL's ablation (Ostendorff et al., 2022).

    Queries, or triplets, are ranked by hashes of the seed and their id; examples by those of the query and their
    number, which they keep. So a smaller part of a set is contained in a larger one, and parts of several sets with the
    same queries have the same queries.
    """

    memory_of_source: ClassVar[int] = 30  # 190 bytes for a row of 7
    sampler: Literal["subset"]
    of: Annotated[str, Refers("triplets")]
    """Name of the set that a part is taken of, of triplets or of examples."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the triplets, or of the examples, that is taken."""
    count: Count | None = None
    """Instead of share, the number of training triplets or examples; for validation, the same share."""
    by: Literal["query", "triplet"] = "query"
    """query takes whole queries, but for the last one; triplet takes each triplet, or example, for itself."""
    has_negatives: ClassVar[bool] = False  # except those of its parts

    @model_validator(mode="after")
    def _has_one_size(self) -> "Subset":
        if (self.share is None) == (self.count is None):
            raise inconsistent(" needs exactly one of share and count.")
        return self

    def sample(self, block: "Block") -> "Sampled":
        """Take a part of a table, both of its rows for training and of those for validation.

        Raises `InputError` if there are fewer training triplets, or examples, than `count`.
        """
        import numpy as np

        from cocite.core.errors import InputError
        from cocite.core.randomness import priorities
        from cocite.core.tables import TABLES
        from cocite.core.tables.files import read_table
        from cocite.core.written_ids import distinct
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
            f"{UNSERVED[table]}: not in the part": len(block.queries) - len(distinct(columns[0][is_chosen & is_ours])),
            f"{many} that are not in the part": int(np.count_nonzero(is_ours & ~is_chosen)),
        }
        return Sampled(rows=read_chosen(path, is_chosen & is_ours), omissions=omissions)
