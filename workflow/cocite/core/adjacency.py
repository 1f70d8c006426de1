"""The links of papers in a folder of arrays, which is read without being loaded; `neighbours.adjacency` writes it.

    ids.npy       corpus ids of all papers with an edge, rising; a paper is identified by its position here
    starts.npy    where the links of each paper start, and at the end how many there are
    others.npy    the positions of the papers that it is linked to, rising (int32)
    weights.npy   the weights of these links (float32); only if weights are needed
    degrees.npy   the number of links of each paper, or the sum of their weights (float64)

Two papers that cite each other have two edges, and so two links in each direction.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.written_ids import Ids

Places = NDArray[np.int32]
Starts = NDArray[np.int64]


class Adjacency(NamedTuple):
    """The links of all papers, as memory-mapped arrays."""

    ids: Ids
    starts: Starts
    others: Places
    weights: NDArray[np.float32]
    """Empty where links have no weights."""
    degrees: NDArray[np.float64]


def open_adjacency(folder: Path) -> Adjacency:
    """The links in a folder. Raises `InputError` if it does not exist."""
    if not (folder / "ids.npy").is_file():
        raise InputError(f"{folder}: contains no links of papers; `cocite neighbours adjacency` makes it.")

    def array(name: str) -> NDArray:
        return np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)

    has_weights = (folder / "weights.npy").exists()
    weights = array("weights") if has_weights else np.empty(0, dtype=np.float32)
    return Adjacency(array("ids"), array("starts"), array("others"), weights, array("degrees"))
