"""What tables are declared with: types, columns, and a table itself."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import pyarrow as pa

ID = pa.int64()
COUNT = pa.int64()
TEXT = pa.string()
VECTOR = pa.list_(pa.float32())
"""A fixed-size list of float32 of any dimension; the files have the fixed-size type."""
Trait = Literal["unordered", "read once"]


@dataclass(frozen=True)
class Column:
    """One column: its type, its meaning with its unit, whether it may be null, and whether it has corpus ids.

    An optional column exists only if the configuration needs it. `encoding` is a Parquet encoding, for columns for
    which the usual one of their type is slow.
    """

    type: pa.DataType
    meaning: str
    nullable: bool = False
    of_papers: bool = False
    optional: bool = False
    encoding: str = ""


@dataclass(frozen=True)
class Table:
    """One table.

    `path` is relative to the results folder. Names in braces are columns of the DuckDB view that come from the path
    (`graph/{graph}/…`), except `{bucket}` and `{suite}`, which only shard. A table that is `read_once` and then dropped
    has no checksums, and statistics only of its buckets.
    """

    name: str
    path: str
    description: str
    key: tuple[str, ...]
    columns: dict[str, Column]
    ordered: bool = True
    read_once: bool = False


def table(name: str, path: str, description: str, key: tuple[str, ...], /, *traits: Trait, **columns: Column) -> Table:
    """A table with some traits, and its columns as keywords."""
    return Table(name, path, description, key, columns, "unordered" not in traits, "read once" in traits)


required = Column
"""A column that is never null."""
optional = partial(Column, nullable=True)
"""A column that may be null."""
extra = partial(Column, optional=True)
"""A column that exists only if the configuration needs it."""
corpus_id = partial(Column, ID, of_papers=True)
"""A column of corpus ids."""
corpus_ids = partial(Column, pa.list_(ID), of_papers=True)
"""A column of lists of corpus ids."""
