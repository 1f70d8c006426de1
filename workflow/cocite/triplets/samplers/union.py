"""The sampler `union`."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cocite.config.entries import Names, Refers
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled

QUERIES_AT_ONCE = 50_000
"""Queries whose rows are joined together: memory holds them several times."""


class Union(Sampler):
    """Several named sets as one; a triplet, or an example, that more than one of them holds is taken once.

    With a set of examples among them, triplets become examples of one positive and one negative. Examples are the same
    that have the same query, aspect, positives and negatives, in whatever order.
    """

    sampler: Literal["union"]
    of: Annotated[Names, Field(min_length=2), Refers("triplets")]
    """Names of the sets that are joined, of triplets or of examples."""

    @property
    def has_negatives(self) -> bool:
        """It finds none beside those of its parts."""
        return False

    @property
    def parts(self) -> tuple[str, ...]:
        """The sets that are joined."""
        return self.of

    def sample(self, block: "Block") -> "Sampled":
        """Join the tables; ranks and kinds of a common row are those of the set that is named first.

        Raises `InputError` where a source is no set.
        """
        import numpy as np
        import pyarrow as pa

        from cocite.core.tables.files import read_table, table_in
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
            - len(np.unique(rows["query"].to_numpy())),
            f"{sampled.WORDS[table][0]} that another set holds as well": found - len(rows),
        }
        return sampled.Sampled(rows=rows, omissions=omissions)
