"""The table `edges` as blocks of arrays."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cocite.tables.files import checked_files

BLOCK_ROWS = 1_000_000

EdgeBlock = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]


def blocks_of_edges(edges: Sequence[Path], rows: int = BLOCK_ROWS) -> Iterator[EdgeBlock]:
    """Sources, targets and weights of all buckets, so many `rows` at a time at most."""
    for path in checked_files(edges, "edges"):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(rows, columns=["source", "target", "weight"]):
                source, target, weight = (batch.column(name).to_numpy() for name in ("source", "target", "weight"))
                yield source, target, weight
