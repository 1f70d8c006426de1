"""The vectors of some papers, looked up in a table that has those of many more.

The table is read once, some thousand rows at a time, so that memory holds what is asked for, however many papers the
table has.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.lookup import look_up
from cocite.core.tables.files import checked_files, open_table, vectors_of

BUFFER = 1 << 20
"""Bytes that a column is read through, since a row group of vectors is large."""
ROWS_AT_ONCE = 8192


def vectors_of_papers(
    source: Path | Sequence[Path], name: str, rising: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The vectors of papers by their ids, which rise, papers × dimension, and which of the papers the table has.

    `source` is one file of the table `name`, several, or a folder of buckets; the rows of the others are 0. Raises
    `InputError` where a file is missing, broken or another table.
    """
    vectors, is_there = np.empty((0, 0), np.float32), np.zeros(len(rising), dtype=np.bool_)
    for path in checked_files(source, name):
        with open_table(path, name, buffer_size=BUFFER) as file:
            if not vectors.size:
                wide = file.schema_arrow.field("vector").type.list_size
                vectors = np.zeros((len(rising), wide), np.float32)
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=["corpusid", "vector"]):
                places, is_asked = look_up(rising, batch["corpusid"].to_numpy())
                vectors[places[is_asked]] = vectors_of(pa.table(batch))[is_asked]
                is_there[places[is_asked]] = True
    return vectors, is_there
