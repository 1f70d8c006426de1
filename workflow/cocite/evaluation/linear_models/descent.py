"""Linear models with hinge loss for few documents, one coordinate of the dual at a time.

A model minimises ½‖w‖² + C Σ max(0, 1 − y xᵀw). Its dual, max Σ y_i β_i − ½ βᵀKβ with y_i β_i between 0 and C and K
the documents' inner products, has as many unknowns as there are documents. With fewer documents than dimensions it is
so small that what counts is the time between two steps, not their number: few-shot runs ask for hundreds of thousands
of such models. Each step changes the coordinate that gains the most (as in Fan, Chen & Lin, 2005, "Working Set
Selection Using Second Order Information for Training Support Vector Machines"), so nothing is drawn at random.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LARGEST_STEPS = 100_000


def path_of_few(inputs: Matrix, targets: Matrix, grid: Sequence[float], gap: float) -> Iterator[Matrix]:
    """The weights, dimension × 1, for each C of a rising grid, each found from the one before.

    `inputs` are documents × dimension, `targets`, of −1 and 1, documents × 1. The objective is within the share `gap`
    of its value of the least one.
    """
    products, signs = inputs @ inputs.T, targets[:, 0]
    duals = np.zeros(len(inputs))
    for c in grid:
        descend(products, signs, c, duals, gap)
        yield inputs.T @ duals[:, None]


@njit(cache=True, nogil=True)
def descend(products: Matrix, signs: Vector, c: float, duals: Vector, gap: float) -> None:
    """Change the duals to their best values, with at most `LARGEST_STEPS` steps."""
    outputs = products @ duals
    for step in range(LARGEST_STEPS):
        if step % len(signs) == 0 and _is_done(signs, outputs, c, duals, gap):
            break
        best, change = _best_step(products, signs, outputs, c, duals)
        duals[best] += change
        for row in range(len(signs)):
            outputs[row] += change * products[best, row]


@njit(cache=True, nogil=True)
def _is_done(signs: Vector, outputs: Vector, c: float, duals: Vector, gap: float) -> bool:
    """Whether the duality gap is closed."""
    squares, losses, earned = 0.0, 0.0, 0.0
    for row in range(len(signs)):
        squares += duals[row] * outputs[row]
        losses += max(0.0, 1 - signs[row] * outputs[row])
        earned += signs[row] * duals[row]
    primal = squares / 2 + c * losses
    return primal - (earned - squares / 2) <= gap * primal


@njit(cache=True, nogil=True)
def _best_step(products: Matrix, signs: Vector, outputs: Vector, c: float, duals: Vector) -> tuple[int, float]:
    """The document whose dual gains the most by its best change between the bounds, and that change."""
    best, step, most = 0, 0.0, 0.0
    for row in range(len(signs)):
        slope = signs[row] - outputs[row]
        bend = max(products[row, row], 1e-300)
        share = signs[row] * (duals[row] + slope / bend)
        change = signs[row] * min(max(share, 0.0), c) - duals[row]
        gain = change * (slope - bend * change / 2)
        if gain > most:
            best, step, most = row, change, gain
    return best, step
