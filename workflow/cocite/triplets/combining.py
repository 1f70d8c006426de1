"""Sets that are made of other sets: which table they are, and the examples of several sets, each once.

Sets of triplets make a set of triplets. Where one set has examples, all of them make a set of examples, and a triplet
is the smallest one: a positive and a negative, without an aspect and without a kind.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.core.randomness import priorities
from cocite.core.tables.files import read_table
from cocite.triplets.sampled import ROLES, WORDS, Block, in_order, read_chosen, table_in

LISTS = ("positives", "negatives")
QUERIES_AT_ONCE = 50_000
"""Queries whose rows are joined together: memory holds them several times."""


def table_made_of(sets: Sequence[Path]) -> str:
    """The table of a set that is made of these. Raises `InputError` where one of them is no set."""
    tables = {path: table_in(path) for path in sets}
    for path, table in tables.items():
        if table not in WORDS:
            raise InputError(f"{path}: is neither the table triplets nor sampled_examples.")
    return "sampled_examples" if "sampled_examples" in tables.values() else "triplets"


def joined(block: Block, table: str) -> tuple[pa.Table, int]:
    """The rows of all sources for the queries of a block, each once, and how many there are before."""
    sets = [(path, read_table(path, table_in(path), ["query"])["query"].to_numpy()) for path in block.sources]
    pieces, found = [], 0
    for first in range(0, len(block.queries), QUERIES_AT_ONCE):
        queries = block.queries[first : first + QUERIES_AT_ONCE]
        parts = [_read_as(table, path, np.isin(of_rows, queries)) for path, of_rows in sets]
        rows = pa.concat_tables(parts, promote_options="default")
        pieces.append(in_order(rows) if table == "triplets" else each_once(rows))
        found += len(rows)
    return pa.concat_tables(pieces), found


def _read_as(table: str, path: Path, is_chosen: NDArray[np.bool_]) -> pa.Table:
    """The chosen rows of a set, as those of a table."""
    rows = read_chosen(path, is_chosen)
    return rows if table_in(path) == table else as_examples(rows)


def as_examples(triplets: pa.Table) -> pa.Table:
    """Triplets as examples: lists of one positive and of one negative."""
    starts = pa.array(np.arange(len(triplets) + 1, dtype=np.int32))
    lists = (pa.ListArray.from_arrays(starts, pa.array(triplets[role].to_numpy())) for role in ROLES[1:])
    others = {name: triplets[name] for name in ("query", "split")}
    return pa.table({**others, **dict(zip(LISTS, lists, strict=True))})


def each_once(examples: pa.Table) -> pa.Table:
    """The examples of each query, in the order in which they come, numbered; of those that say the same, the first."""
    chosen = np.sort(first_of_each(examples))
    queries = examples["query"].to_numpy()[chosen]
    order = np.argsort(queries, kind="stable")
    rows, queries = examples.take(pa.array(chosen[order])), queries[order]
    numbers = 1 + np.arange(len(rows)) - np.searchsorted(queries, queries)
    return rows.set_column(rows.column_names.index("number"), "number", pa.array(numbers))


def first_of_each(examples: pa.Table) -> Ids:
    """The place of the first of the examples that say the same, which is known by a hash of the papers in each role."""
    keys = [examples["query"].to_numpy().view(np.uint64)]
    keys += [_hashes_of(examples[name]) for name in LISTS]
    if "aspect" in examples.column_names:
        aspects = examples["aspect"].combine_chunks().dictionary_encode().indices
        keys.append(aspects.fill_null(-1).to_numpy().astype(np.uint64))
    first: Ids = np.unique(np.stack(keys, axis=1), axis=0, return_index=True)[1]
    return first


def _hashes_of(lists: pa.ChunkedArray) -> NDArray[np.uint64]:
    """One number for the papers of each list, whatever their order."""
    hashes = np.zeros(len(lists), dtype=np.uint64)
    first = 0
    for chunk in lists.chunks:
        of_each = first + pc.list_parent_indices(chunk).to_numpy()
        np.add.at(hashes, of_each, priorities(0, "paper of an example", chunk.flatten().to_numpy()))
        first += len(chunk)
    return hashes
