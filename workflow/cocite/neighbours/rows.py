"""What every ranking of neighbours shares: its shard of the queries, the refusal of leaks, and what it writes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.core.tables.splits import read_kept_out
from cocite.neighbours.distances import FARTHEST, Keys, Numbers, distances_in, numbers_in

ROWS_WRITTEN = 500_000
"""Rows of neighbours that are written at once."""

IdsOf = Callable[[Numbers], Ids]
"""The ids of papers by the numbers that stand for them."""


def check_shard(shard: tuple[int, int]) -> None:
    """Raise `InputError` where there is no shard of that number."""
    if not 0 <= shard[0] < shard[1]:
        raise InputError(f"--shard is {shard[0]}, but of {shard[1]} shards it must be from 0 to {shard[1] - 1}.")


def count_papers(batches: Iterable[Ids], queries: Path, source: Path) -> int:
    """How many papers a source holds. Raises `InputError` where one of them is kept out."""
    kept_out = read_kept_out(queries)["corpusid"].to_numpy()
    papers, leaked = 0, []
    for ids in batches:
        papers += len(ids)
        leaked += ids[np.isin(ids, kept_out)].tolist()
    if leaked:
        raise InputError(
            f"{source}: holds {len(leaked)} papers that are kept out, {leaked[0]} among them; "
            f"a graph must be built without the papers that {queries} keeps out."
        )
    return papers


def rows_of(queries: Numbers, files: Sequence[Path], size: int, ids_of: IdsOf) -> Iterator[pa.RecordBatch]:
    """The rows of the table `neighbours`, from the files of the keys of each group of `size` queries."""
    for start, file in zip(range(0, len(queries), size), files, strict=True):
        keys = np.load(file, mmap_mode="r")
        step = max(1, ROWS_WRITTEN // keys.shape[1])
        for first in range(0, len(keys), step):
            part = np.array(keys[first : first + step])
            yield _as_rows(queries[start + first : start + first + len(part)], part, ids_of)


def _as_rows(queries: Numbers, keys: Keys, ids_of: IdsOf) -> pa.RecordBatch:
    met = keys != FARTHEST
    ranks = np.broadcast_to(np.arange(1, keys.shape[1] + 1, dtype=np.int32), keys.shape)
    return pa.record_batch(
        {
            "query": np.repeat(ids_of(queries), met.sum(axis=1)),
            "rank": ranks[met],
            "neighbour": ids_of(numbers_in(keys[met])),
            "distance": distances_in(keys[met]).astype(np.float32),
        }
    )
