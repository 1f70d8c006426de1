"""Which triplets of a set are written with their texts, and in which order.

All sets of a group are cut to the size of its smallest (CoCite, 2024), and the validation triplets of all of them
together are the validation set of every model of the group. The order is one of hashes, so it is a shuffle that does
not depend on jobs: queries follow each other at random, and so do the triplets of a query, which stay together.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.ground.errors import InputError
from cocite.ground.randomness import priorities
from cocite.tables.files import open_table

ROLES = ("query", "positive", "negative")

Ids = NDArray[np.int64]
Rows = NDArray[np.int64]
"""Triplets × (query, positive, negative)."""


def training_rows(triplets: Path, group: Sequence[Path], seed: int) -> Rows:
    """The training triplets of one set of a group, shuffled by query and cut to the size of the group's smallest.

    Raises `InputError` where that has none.
    """
    sizes = [_count(path, "train") for path in group]
    smallest = min(sizes)
    if smallest == 0:
        empty = group[sizes.index(0)]
        raise InputError(f"{empty}: no training triplet; more query papers or a smaller queries.validation would do.")
    return _shuffled(_read(triplets, "train"), seed)[:smallest]


def validation_rows(group: Sequence[Path], seed: int) -> Rows:
    """The validation triplets of all sets of a group, cut alike, each triplet once, shuffled by query.

    Raises `InputError` where there is none.
    """
    sets = [_shuffled(_read(path, "validation"), seed) for path in group]
    smallest = min(map(len, sets))
    if smallest == 0:
        empty = next(path for path, rows in zip(group, sets, strict=True) if len(rows) == 0)
        raise InputError(f"{empty}: no validation triplet; more query papers or a larger queries.validation would do.")
    return _shuffled(np.unique(np.concatenate([rows[:smallest] for rows in sets]), axis=0), seed)


def shard_starts(queries: Ids, size: int) -> list[int]:
    """Where shards of about `size` triplets start, and behind them where the last one ends.

    `queries` holds the query of each triplet. A query's triplets, which follow each other, are never in two shards.
    """
    starts = np.flatnonzero(np.diff(queries)) + 1
    borders = np.searchsorted(starts, np.arange(size, len(queries), size))
    return sorted({0, len(queries), *starts[borders[borders < len(starts)]].tolist()})


def _read(path: Path, split: str) -> Rows:
    batches = open_table(path, "triplets").iter_batches(columns=[*ROLES, "split"])
    of_split = [batch.filter(pc.equal(batch.column("split"), split)) for batch in batches]
    rows = [np.stack([batch.column(role).to_numpy() for role in ROLES], axis=1) for batch in of_split]
    return np.concatenate([np.empty((0, len(ROLES)), np.int64), *rows])


def _count(path: Path, split: str) -> int:
    batches = open_table(path, "triplets").iter_batches(columns=["split"])
    return sum(pc.sum(pc.equal(batch.column("split"), split)).as_py() or 0 for batch in batches)


def _shuffled(rows: Rows, seed: int) -> Rows:
    keys = {
        "order of queries": priorities(seed, "order of queries", rows[:, 0]),
        "query": rows[:, 0],
        "order within a query": priorities(seed, "order of triplets", *rows.T),
    }
    return rows[pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys]).to_numpy()]
