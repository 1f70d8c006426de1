"""Linear machines with hinge loss or absolute errors, by descent on one coordinate of the dual at a time.

The algorithm is liblinear's (Hsieh et al., 2008, "A Dual Coordinate Descent Method for Large-scale Linear SVM"; Ho &
Lin, 2012, "Large-scale Linear Support Vector Regression"), on dense rows, which need no index beside each number. Both
losses share one dual: maximise Σ t_i β_i − ½‖Xᵀβ‖² for β_i between bounds. With hinge loss t = y = ±1 and y_i β_i is
between 0 and C; with absolute errors t is the target and β_i between −C and C.

Now and then a pass over all documents measures the duality gap, which proves how far the objective is from its least
value, and leaves out of the next sweeps the documents that are pressed against a bound.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numba import njit
from numpy.random import Generator
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.floating]

GAP = 1e-3
"""Share of its value that the objective may be above the least one."""
SWEEPS_BETWEEN_CHECKS = 10


def hinge_path(
    inputs: Matrix, targets: Vector, grid: Sequence[float], draw: Generator, sweeps: int
) -> Iterator[Vector]:
    """The weights for each C of a rising grid, each found from the one before; `targets` are −1 and 1."""
    yield from _path(inputs, targets, grid, draw, sweeps, one_sided=True)


def absolute_path(
    inputs: Matrix, targets: Vector, grid: Sequence[float], draw: Generator, sweeps: int
) -> Iterator[Vector]:
    """The same with absolute errors (ε = 0); `targets` are numbers."""
    yield from _path(inputs, targets, grid, draw, sweeps, one_sided=False)


def _path(
    inputs: Matrix, targets: Vector, grid: Sequence[float], draw: Generator, sweeps: int, *, one_sided: bool
) -> Iterator[Vector]:
    rows = _compact(inputs)
    duals = np.zeros(len(rows))
    for c in grid:
        low = np.where(targets > 0, 0.0, -c) if one_sided else np.full(len(rows), -c)
        high = np.where(targets > 0, c, 0.0) if one_sided else np.full(len(rows), c)
        descend(rows, targets, low, high, duals, draw, sweeps)
        yield inputs.T @ duals


def _compact(inputs: Matrix) -> Rows:
    """Rows with the same inner products; no more columns than rows."""
    if len(inputs) >= inputs.shape[1]:
        return inputs.astype(np.float32)
    products = inputs @ inputs.T
    products[np.diag_indices(len(products))] += 1e-10 * (np.trace(products) / len(products) + 1e-300)
    return np.linalg.cholesky(products).astype(np.float32)


@njit(nogil=True, cache=True, fastmath=True)
def descend(
    rows: Rows,
    targets: Vector,
    low: Vector,
    high: Vector,
    duals: Vector,
    draw: Generator,
    sweeps: int,
) -> float:
    """Change `duals` to their best values between the bounds, by at most so many sweeps; return the relative gap."""
    norms = np.empty(len(rows))
    for row in range(len(rows)):
        norms[row] = _product(rows, row, rows[row])
    weights = _weights(rows, duals)
    active = np.arange(len(rows))
    gap = np.inf
    for sweep in range(sweeps):
        if sweep % SWEEPS_BETWEEN_CHECKS == 0:
            weights = _weights(rows, duals)
            gap, active = _check(rows, targets, low, high, duals, weights)
            if gap <= GAP:
                break
        _shuffle(active, draw)
        for place in range(len(active)):
            row = active[place]
            if norms[row] > 0:
                slope = _product(rows, row, weights) - targets[row]
                moved = min(max(duals[row] - slope / norms[row], low[row]), high[row])
                change = moved - duals[row]
                if change != 0:
                    duals[row] = moved
                    _add(rows, row, change, weights)
    return gap


@njit(nogil=True, cache=True)
def _shuffle(places: NDArray[np.int64], draw: Generator) -> None:
    """Bring the places in random order. Scaled uniform numbers are drawn much faster than bounded integers."""
    for last in range(len(places) - 1, 0, -1):
        other = int(draw.random() * (last + 1))
        places[last], places[other] = places[other], places[last]


@njit(nogil=True, cache=True, fastmath=True)
def _weights(rows: Rows, duals: Vector) -> Vector:
    """The weights that the duals make, Xᵀβ."""
    weights = np.zeros(rows.shape[1])
    for row in range(len(rows)):
        if duals[row] != 0:
            _add(rows, row, duals[row], weights)
    return weights


@njit(nogil=True, cache=True, fastmath=True)
def _add(rows: Rows, row: int, factor: float, weights: Vector) -> None:
    for column in range(len(weights)):
        weights[column] += factor * np.float64(rows[row, column])


@njit(nogil=True, cache=True, fastmath=True)
def _product(rows: Rows, row: int, weights: Rows) -> float:
    """The inner product of a row and the weights."""
    total = 0.0
    for column in range(len(weights)):
        total += np.float64(rows[row, column]) * np.float64(weights[column])
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _check(
    rows: Rows,
    targets: Vector,
    low: Vector,
    high: Vector,
    duals: Vector,
    weights: Vector,
) -> tuple[float, NDArray[np.int64]]:
    """The relative duality gap, and the documents that are not pressed against a bound harder than any pulls away.

    With either loss, what a document loses is what its dual would gain at the bound that its slope points to.
    """
    slopes = np.empty(len(rows))
    for row in range(len(rows)):
        slopes[row] = _product(rows, row, weights) - targets[row]
    strongest = 0.0
    for row in range(len(rows)):
        if (slopes[row] > 0 and duals[row] > low[row]) or (slopes[row] < 0 and duals[row] < high[row]):
            strongest = max(strongest, abs(slopes[row]))
    squares = np.dot(weights, weights)
    losses, gained = 0.0, 0.0
    active = np.empty(len(rows), np.int64)
    count = 0
    for row in range(len(rows)):
        losses += max(high[row] * -slopes[row], low[row] * -slopes[row])
        gained += targets[row] * duals[row]
        pressed = (duals[row] <= low[row] and slopes[row] > strongest) or (
            duals[row] >= high[row] and slopes[row] < -strongest
        )
        if not pressed:
            active[count] = row
            count += 1
    primal = squares / 2 + losses
    return (primal - (gained - squares / 2)) / max(primal, 1e-300), active[:count]
