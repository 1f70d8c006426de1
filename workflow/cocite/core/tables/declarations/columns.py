"""What tables are declared with: types, columns, and a table itself."""

from dataclasses import dataclass

import pyarrow as pa

ID = pa.int64()
COUNT = pa.int64()
TEXT = pa.string()
VECTOR = pa.list_(pa.float32())
"""A fixed-size list of float32 of any dimension; the files have the fixed-size type."""


@dataclass(frozen=True, kw_only=True)
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


def required(type: pa.DataType, meaning: str) -> Column:
    """A column that is never null."""
    return Column(type=type, meaning=meaning)


def optional(type: pa.DataType, meaning: str) -> Column:
    """A column that may be null."""
    return Column(type=type, meaning=meaning, nullable=True)


def extra(type: pa.DataType, meaning: str, *, nullable: bool = False) -> Column:
    """A column that exists only if the configuration needs it."""
    return Column(type=type, meaning=meaning, nullable=nullable, optional=True)


def corpus_id(meaning: str, encoding: str = "") -> Column:
    """A column of corpus ids."""
    return Column(type=ID, meaning=meaning, of_papers=True, encoding=encoding)


def corpus_ids(meaning: str) -> Column:
    """A column of lists of corpus ids."""
    return Column(type=pa.list_(ID), meaning=meaning, of_papers=True)
