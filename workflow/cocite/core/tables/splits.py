"""The table queries as every stage reads it: the queries, and the papers that are kept out of everything.

Kept out are the papers held out for our own benchmarks, those that the configuration excludes, and all papers from the
year on that `queries.holdout_from` names. No graph, index, triplet or vocabulary may hold them.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.tables.files import open_table

VALIDATION = "validation"
QUERIES = ("train", VALIDATION)
HELD_OUT = "holdout"
EXCLUDED = "excluded"
HELD_OUT_BY_TIME = "holdout-by-time"
LATER = "later"
FROM_THE_CUT_ON = (HELD_OUT_BY_TIME, LATER)
KEPT_OUT = (HELD_OUT, EXCLUDED, *FROM_THE_CUT_ON)


def read_queries(path: Path) -> pa.Table:
    """The papers that anchor triplets: corpusid, split (train or validation)."""
    return _of_splits(path, QUERIES)


def read_validation_queries(path: Path) -> NDArray[np.int64]:
    """The queries that are validated on, by their corpus ids."""
    ids: NDArray[np.int64] = _of_splits(path, (VALIDATION,))["corpusid"].to_numpy()
    return ids


def read_kept_out(path: Path) -> pa.Table:
    """The papers that are kept out: corpusid, split (one of `KEPT_OUT`)."""
    return _of_splits(path, KEPT_OUT)


def _of_splits(path: Path, splits: tuple[str, ...]) -> pa.Table:
    table = open_table(path, "queries").read(["corpusid", "split"])
    return table.filter(pc.is_in(table["split"], pa.array(splits)))
