"""Looking numbers up in a rising array, where a set of ids (`core.id_sets`) would be too much or they are no ids."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]


def look_up(rising: NDArray[Any], asked: NDArray[Any]) -> tuple[Places, NDArray[np.bool_]]:
    """Where each of the asked numbers stands in a rising array, and whether it is there; if not, its place is any."""
    if len(rising) == 0:
        return np.zeros(len(asked), dtype=np.intp), np.zeros(len(asked), dtype=np.bool_)
    places = np.minimum(np.searchsorted(rising, asked), len(rising) - 1)
    return places, rising[places] == asked
