"""Solvers of linear models: Newton's method on the primal, and single coordinates of the dual for few documents.

A model minimises ½‖w‖² + C Σ loss(xᵀw). A loss of target t and output o is max a (t − o) over a *pull* a between two
bounds; smoothed, max a (t − o) − ½ width (a − centre)², its minimum is the same once the centres are the best pulls
(Rockafellar, 1976). Newton's method ends after a few steps on it (Keerthi & DeCoste, 2005, "A Modified Finite Newton
Method for Fast Solution of Large Scale Linear SVMs"), when the duality gap is within a share of the objective.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dposv

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Models = NDArray[np.generic]
"""Which models, by number or by a mask."""

GAP = 3e-4
"""Share of its value that the objective may be above the least one, for classes."""
GAP_OF_NUMBERS = 1e-5
"""The same for numbers: their order, which is what Kendall's τ sees, changes with the last bit of a weight."""
LARGEST_STEPS, LARGEST_DESCENT = 1_000, 100_000
SHARE = 0.5
"""Part of the gap that the steps, not the rounding, may account for when the centres are moved."""
FLAT = 0.1
"""Share of the first slope along a line at which the search on it ends."""
LARGEST_SEARCH = 30
EVERYTHING = -1
ROUNDING = 1e-10
"""What keeps a matrix of inner products positive, by its mean diagonal."""
BLOCK = 8_192


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The loss of each document for each model, and the bounds of its pull; all are documents × models."""

    targets: Matrix
    low: Matrix
    high: Matrix
    width: Matrix
    """Of each model."""
    is_round: bool
    """Whether the loss itself has no kinks, and so needs no centres."""
    gap: float = GAP

    def of(self, models: Models) -> "Loss":
        """The same for some models."""
        targets, low, high = (part[:, models] for part in (self.targets, self.low, self.high))
        return replace(self, targets=targets, low=low, high=high, width=self.width[models])

    def pulls(self, outputs: Matrix, centres: Matrix) -> Matrix:
        """The pull of each document."""
        free = centres + (self.targets - outputs) / self.width
        return np.minimum(np.maximum(free, self.low), self.high)

    def inside(self, pulls: Matrix) -> NDArray[np.bool_]:
        """Which pulls are at no bound: those documents bend the rounded loss, by 1/width."""
        return (pulls > self.low) & (pulls < self.high)

    def sides(self, outputs: Matrix, pulls: Matrix) -> tuple[Matrix, Matrix]:
        """What all documents lose, and what the pulls are worth to the dual objective, for each model."""
        errors = self.targets - outputs
        if self.is_round:
            lost: Matrix = (pulls * (errors - self.width / 2 * pulls)).sum(axis=0)
            return lost, (pulls * (self.targets - self.width / 2 * pulls)).sum(axis=0)
        return np.maximum(self.low * errors, self.high * errors).sum(axis=0), (pulls * self.targets).sum(axis=0)


@dataclass
class State:
    """Models in the course of a fit: weights (dimension × models), outputs and centres (documents × models)."""

    weights: Matrix
    outputs: Matrix
    centres: Matrix

    def of(self, models: Models) -> "State":
        """A copy for some models."""
        return State(self.weights[:, models], self.outputs[:, models], self.centres[:, models])

    def put(self, models: Models, found: "State") -> None:
        """Replace some models."""
        self.weights[:, models], self.outputs[:, models] = found.weights, found.outputs
        self.centres[:, models] = found.centres


class Products:
    """Sums of x xᵀ over the documents that each model has on a parabola."""

    def __init__(self, inputs: Matrix) -> None:
        self.inputs = inputs
        self.known: dict[int, tuple[Mask, Matrix]] = {}

    def changes(self, model: int, chosen: Mask) -> int:
        """How many documents must be added or taken away to find the sum over the chosen ones."""
        return int(np.count_nonzero(self._nearest(model, chosen)[0] != chosen))

    def of(self, model: int, chosen: Mask) -> Matrix:
        """The sum over the chosen documents."""
        before, total = self._nearest(model, chosen)
        total = total + self._sum(chosen & ~before) - self._sum(before & ~chosen)
        self.known[model] = chosen, total
        if chosen.all():
            self.known[EVERYTHING] = chosen, total
        return total

    def _nearest(self, model: int, chosen: Mask) -> tuple[Mask, Matrix]:
        """A known sum that differs in the fewest documents: this model's last one, that over all, or nothing."""
        nothing = np.zeros_like(chosen), np.broadcast_to(0.0, (self.inputs.shape[1],) * 2)
        sums = [self.known[key] for key in (model, EVERYTHING) if key in self.known]
        return min([*sums, nothing], key=lambda known: np.count_nonzero(known[0] != chosen))

    def _sum(self, chosen: Mask) -> Matrix:
        rows = np.flatnonzero(chosen)
        total = np.zeros((self.inputs.shape[1],) * 2)
        for start in range(0, len(rows), BLOCK):
            some = self.inputs[rows[start : start + BLOCK]]
            total += some.T @ some
        return total


def path(inputs: Matrix, loss: Loss, grid: Sequence[float]) -> Iterator[Matrix]:
    """The weights (dimension × models) for each C of a rising grid; `inputs` are documents × dimension."""
    rows, back = _compact(inputs)
    nothing = np.zeros_like(loss.targets)
    state = State(np.zeros((rows.shape[1], nothing.shape[1])), nothing, nothing.copy())
    products, last = Products(rows), grid[0]
    for c in grid:
        # Pulls at no bound are those of a model that loses nothing, and dual variables that stay as they are.
        at_none = loss.inside(state.centres).all(axis=0)
        state.centres *= np.where(at_none, last / c, 1.0)
        minimise(rows, loss, c, state, products)
        last = c
        yield back(state.weights)


def _compact(inputs: Matrix) -> tuple[Matrix, Callable[[Matrix], Matrix]]:
    """Inputs with the same inner products but no more columns than rows, and the way back from their weights."""
    if len(inputs) >= inputs.shape[1]:
        return inputs, np.copy
    inner = inputs @ inputs.T
    inner[np.diag_indices_from(inner)] += ROUNDING * max(np.trace(inner) / len(inner), np.finfo(float).tiny)
    rows = cholesky(inner.T, lower=True, overwrite_a=True)
    return rows, lambda weights: inputs.T @ solve_triangular(rows, weights, trans="T", lower=True)


def minimise(inputs: Matrix, loss: Loss, c: float, state: State, products: Products) -> None:
    """Take Newton steps with every model until its gap is closed."""
    state.outputs = inputs @ state.weights
    open_, now, here = np.arange(state.weights.shape[1]), state, loss
    for _ in range(LARGEST_STEPS):
        pulls = here.pulls(now.outputs, now.centres)
        gradient = now.weights - c * (inputs.T @ pulls)
        lost, earned = here.sides(now.outputs, pulls)
        primal = (now.weights**2).sum(axis=0) / 2 + c * lost
        gap = primal - (c * earned - ((now.weights - gradient) ** 2).sum(axis=0) / 2)
        closed = gap <= here.gap * primal
        settled = closed | ((gradient**2).sum(axis=0) / 2 <= SHARE * gap)
        if settled.any() and not here.is_round:  # Move the centres to the pulls.
            now.centres[:, settled] = pulls[:, settled]
            pulls[:, settled] = here.of(settled).pulls(now.outputs[:, settled], pulls[:, settled])
            gradient[:, settled] = now.weights[:, settled] - c * (inputs.T @ pulls[:, settled])
        if closed.any():
            state.put(open_[closed], now.of(closed))
            left = ~closed
            open_, now, here = open_[left], now.of(left), here.of(left)
            pulls, gradient = pulls[:, left], gradient[:, left]
        if len(open_) == 0:
            break
        change = _direction(here, pulls, gradient, c, products, open_)
        changed = inputs @ change
        step = _line_search(now, change, changed, (gradient * change).sum(axis=0), here, c)
        now.weights += step * change
        now.outputs += step * changed
    state.put(open_, now)


def _direction(loss: Loss, pulls: Matrix, gradient: Matrix, c: float, products: Products, models: Models) -> Matrix:
    """Newton's changes of the weights: solve (I + C/width Σ x xᵀ) d = −gradient over the documents on a parabola."""
    inside, inputs = loss.inside(pulls), products.inputs
    found = np.empty_like(gradient)
    dimension = inputs.shape[1]
    for column, model in enumerate(models):
        bend, chosen, slope = c / loss.width[column], inside[:, column], gradient[:, column]
        count, changes = np.count_nonzero(chosen), products.changes(int(model), chosen)
        if count == 0:
            found[:, column] = -slope
        elif count * count * (dimension + count / 3) < dimension**2 * (changes + dimension / 3):
            near = inputs[chosen]
            found[:, column] = near.T @ _solve(near @ near.T, 1 / bend, near @ slope) - slope
        else:
            found[:, column] = -_solve(bend * products.of(int(model), chosen), 1.0, slope)
    return found


def _solve(matrix: Matrix, diagonal: float, right: Matrix) -> Matrix:
    """Solve (matrix + diagonal I) x = right; the matrix is symmetric, positive but for rounding, and overwritten."""
    matrix[np.diag_indices_from(matrix)] += diagonal + np.finfo(float).eps * np.trace(matrix)
    # Of a symmetric matrix the transpose is the same, and in the order of columns that LAPACK reads without a copy.
    _, solution, failure = dposv(matrix.T, right, lower=1, overwrite_a=1)
    if failure:
        raise ArithmeticError("A matrix of inner products is not positive; the vectors are too long or too short.")
    return np.asarray(solution)


def _line_search(now: State, change: Matrix, changed: Matrix, first: Matrix, loss: Loss, c: float) -> Matrix:
    """Step lengths at which the first slope has become small: Newton's method on a line, kept between bounds."""
    step, low, high = (np.full(now.weights.shape[1], value) for value in (1.0, 0.0, np.inf))
    squared = (change**2).sum(axis=0)
    for _ in range(LARGEST_SEARCH):
        pulls = loss.pulls(now.outputs + step * changed, now.centres)
        bend = (loss.inside(pulls) * changed**2).sum(axis=0) / loss.width
        slope = (now.weights * change).sum(axis=0) + step * squared - c * (pulls * changed).sum(axis=0)
        curvature = squared + c * bend
        flat = np.abs(slope) <= FLAT * np.abs(first)
        if flat.all():
            break
        low, high = np.where(slope < 0, step, low), np.where(slope > 0, step, high)
        proposed = step - slope / curvature
        between = np.where(np.isinf(high), 2 * step, (low + high) / 2)
        step = np.where(flat, step, np.where((proposed > low) & (proposed < high), proposed, between))
    return step


def path_of_few(inputs: Matrix, targets: Matrix, grid: Sequence[float], gap: float) -> Iterator[Matrix]:
    """The weights, dimension × 1, of one model with hinge loss for each C of a rising grid, each from the one before.

    `inputs` are documents × dimension, `targets`, of −1 and 1, documents × 1. The dual has few unknowns, so that the
    time between two steps counts, not their number. Each step changes the coordinate that gains the most (as in Fan,
    Chen & Lin, 2005, "Working Set Selection Using Second Order Information for Training Support Vector Machines")."""
    products, signs = inputs @ inputs.T, targets[:, 0]
    duals = np.zeros(len(inputs))
    for c in grid:
        descend(products, signs, c, duals, gap)
        yield inputs.T @ duals[:, None]


@njit(cache=True, nogil=True)
def descend(products: Matrix, signs: Vector, c: float, duals: Vector, gap: float) -> None:
    """Change the duals to their best values: at each step, the one that gains the most by its best change."""
    outputs = products @ duals
    for step in range(LARGEST_DESCENT):
        if step % len(signs) == 0:
            squares, losses, earned = 0.0, 0.0, 0.0
            for row in range(len(signs)):
                squares += duals[row] * outputs[row]
                losses += max(0.0, 1 - signs[row] * outputs[row])
                earned += signs[row] * duals[row]
            primal = squares / 2 + c * losses
            if primal - (earned - squares / 2) <= gap * primal:  # the duality gap
                break
        best, change, most = 0, 0.0, 0.0
        for row in range(len(signs)):
            slope, bend = signs[row] - outputs[row], max(products[row, row], 1e-300)
            share = signs[row] * (duals[row] + slope / bend)
            own = signs[row] * min(max(share, 0.0), c) - duals[row]
            gain = own * (slope - bend * own / 2)
            if gain > most:
                best, change, most = row, own, gain
        duals[best] += change
        for row in range(len(signs)):
            outputs[row] += change * products[best, row]
