"""Linear machines with squared hinge loss, for all classes at once, by Newton's method on the primal.

A machine minimises ½‖w‖² + C Σ max(0, 1 − y xᵀw)² (LinearSVC's default). The objective is quadratic wherever the set
of documents inside the margin stays the same, so Newton's method ends after a few steps (Keerthi & DeCoste, 2005, "A
Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs"). Each step is solved by conjugate
gradients for all classes together, so that the work is products of matrices, not of vectors. They are taken along the
principal axes of the inputs, where dividing by what the axis would have if the margin held an average sample of
the documents is a good preconditioner: embeddings have axes of very different lengths.

A machine is done when the duality gap proves its objective to be within `GAP` of the least one, relatively.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

GAP = 1e-4
LARGEST_STEPS = 100
LARGEST_INNER_STEPS = 300
RESIDUAL = 0.1
"""What is left of the residual, and of the slope along a line, when an inner search ends."""
LARGEST_SEARCH = 20


@dataclass(frozen=True)
class Axes:
    """Inputs along their principal axes."""

    inputs: Matrix
    """documents × axes"""
    lengths: Matrix
    """The squared length of all documents along each axis."""
    directions: Matrix
    """The axes, dimension × axes."""


@dataclass(frozen=True)
class State:
    """Machines on their way: what their weights mean for each document and each machine."""

    weights: Matrix
    """axes × machines"""
    outputs: Matrix
    """documents × machines"""

    def moved(self, steps: Matrix, by: "State") -> "State":
        """The state after so long a step (one for each machine) along a direction."""
        return State(self.weights + steps * by.weights, self.outputs + steps * by.outputs)


def squared_hinge_path(inputs: Matrix, targets: Matrix, grid: Sequence[float]) -> Iterator[Matrix]:
    """The weights (dimension × machines) for each C of a rising grid, each found from the one before.

    `inputs` are documents × dimension, `targets` documents × machines of −1 and 1.
    """
    axes = _along_axes(inputs)
    state = State(np.zeros((len(axes.lengths), targets.shape[1])), np.zeros(targets.shape))
    for c in grid:
        state = _minimise(axes, targets, c, state)
        yield axes.directions @ state.weights


def _along_axes(inputs: Matrix) -> Axes:
    """Turn the inputs; with fewer documents than dimensions, their products say all, and axes are as few as they."""
    if len(inputs) >= inputs.shape[1]:
        lengths, directions = np.linalg.eigh(inputs.T @ inputs)
        return Axes(inputs @ directions, lengths.clip(min=0), directions)
    lengths, turned = np.linalg.eigh(inputs @ inputs.T)
    kept = lengths > lengths[-1] * len(inputs) * np.finfo(float).eps
    root = np.sqrt(lengths[kept])
    return Axes(turned[:, kept] * root, lengths[kept], inputs.T @ (turned[:, kept] / root))


def _minimise(axes: Axes, targets: Matrix, c: float, start: State) -> State:
    """Take Newton steps with every machine until its gap is closed."""
    weights, outputs = start.weights.copy(), start.outputs.copy()
    open_ = np.arange(targets.shape[1])
    for _ in range(LARGEST_STEPS):
        state, labels = State(weights[:, open_], outputs[:, open_]), targets[:, open_]
        slack = np.maximum(1 - labels * state.outputs, 0)
        gradient = state.weights - 2 * c * (axes.inputs.T @ (labels * slack))
        left = _relative_gap(state, slack, gradient, c) > GAP
        if not left.any():
            break
        open_, labels = open_[left], labels[:, left]
        state = State(state.weights[:, left], state.outputs[:, left])
        direction = _newton_direction(axes, slack[:, left] > 0, gradient[:, left], c)
        moved = state.moved(_line_search(state, direction, labels, c), direction)
        weights[:, open_], outputs[:, open_] = moved.weights, moved.outputs
    return State(weights, outputs)


def _relative_gap(state: State, slack: Matrix, gradient: Matrix, c: float) -> Matrix:
    """The gap between primal and dual objective of each machine, by the primal; the dual's point is 2 C slack."""
    losses = c * (slack**2).sum(axis=0)
    primal = (state.weights**2).sum(axis=0) / 2 + losses
    dual = 2 * c * slack.sum(axis=0) - ((state.weights - gradient) ** 2).sum(axis=0) / 2 - losses
    gap: Matrix = (primal - dual) / primal
    return gap


def _newton_direction(axes: Axes, inside: NDArray[np.bool_], gradient: Matrix, c: float) -> State:
    """Solve (I + 2 C Xᵀ D X) d = −gradient for each machine, D being the documents inside its margin."""
    scale = 1 + 2 * c * axes.lengths[:, None] * inside.mean(axis=0)
    direction, left = np.zeros_like(gradient), np.arange(gradient.shape[1])
    residual = -gradient
    towards = residual / scale
    length = (residual * towards).sum(axis=0)
    enough = RESIDUAL**2 * length
    for _ in range(LARGEST_INNER_STEPS):
        curved = towards + 2 * c * (axes.inputs.T @ (inside * (axes.inputs @ towards)))
        step = length / np.maximum((towards * curved).sum(axis=0), np.finfo(float).tiny)
        direction[:, left] += step * towards
        residual = residual - step * curved
        scaled = residual / scale
        shorter = (residual * scaled).sum(axis=0)
        longer = shorter > enough
        if not longer.any():
            break
        towards = scaled + shorter / np.maximum(length, np.finfo(float).tiny) * towards
        length = shorter
        if not longer.all():
            left, length, enough = left[longer], length[longer], enough[longer]
            inside = inside[:, longer]
            scale, residual, towards = (part[:, longer] for part in (scale, residual, towards))
    return State(direction, axes.inputs @ direction)


def _line_search(state: State, direction: State, labels: Matrix, c: float) -> Matrix:
    """Step lengths where the slope has all but vanished: Newton's method on a line, kept between bounds."""
    step, low, high = (np.full(labels.shape[1], value) for value in (1.0, 0.0, np.inf))
    first, _ = _slope(state, direction, labels, c)
    for _ in range(LARGEST_SEARCH):
        slope, curvature = _slope(state.moved(step, direction), direction, labels, c)
        flat = np.abs(slope) <= RESIDUAL * np.abs(first)
        if flat.all():
            break
        low, high = np.where(slope < 0, step, low), np.where(slope > 0, step, high)
        proposed = step - slope / curvature
        between = np.where(np.isinf(high), 2 * step, (low + high) / 2)
        step = np.where(flat, step, np.where((proposed > low) & (proposed < high), proposed, between))
    return step


def _slope(state: State, direction: State, labels: Matrix, c: float) -> tuple[Matrix, Matrix]:
    """First and second derivative of each machine's objective along a direction."""
    slack = np.maximum(1 - labels * state.outputs, 0)
    first = (state.weights * direction.weights).sum(axis=0) - 2 * c * (labels * slack * direction.outputs).sum(axis=0)
    second = (direction.weights**2).sum(axis=0) + 2 * c * ((slack > 0) * direction.outputs**2).sum(axis=0)
    return first, second
