"""The linear models that SciRepEval's code fits since January 2026, if lightning is not installed: scikit-learn's own.

They differ from the published ones: each has an intercept, which is penalised as a weight is, labels have the squared
hinge loss as classes do, and the solver stops after 1,000 sweeps (10,000 for labels) wherever it is. So the scores are
those of scikit-learn's version and, where it stops short, of its random order, which follows the evaluation seed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC, LinearSVR

from cocite.evaluation.linear_models.fitting import (
    CLASSIFICATION_GRID,
    FOLDS,
    REGRESSION_GRID,
    Inputs,
    LinearModel,
    Matrix,
    Points,
    Protocol,
    in_threads,
)

SWEEPS_FOR_LABELS = 10_000
UNCHANGED = Inputs(None)


def fit_classes(protocol: Protocol, points: Points, classes: NDArray[Any], *, c: float | None = None) -> LinearModel:
    """One output for each of the sorted classes, or for the second of two.

    `c` is used where it is given, and chosen by the accuracy of cross-validation otherwise.
    """
    machine = LinearSVC(random_state=protocol.seed)
    return _fitted(machine, points, classes, (protocol.task.grid or CLASSIFICATION_GRID) if c is None else (c,))


def fit_labels(protocol: Protocol, points: Points, labels: NDArray[np.int64]) -> LinearModel:
    """One output for each label (a column of 0 and 1), positive where it is predicted; each has a C of its own."""

    def fit(column: NDArray[np.int64]) -> LinearModel:
        if np.ptp(column) == 0:
            return LinearModel(UNCHANGED, np.zeros((points.shape[1], 1)), np.full(1, 2.0 * column[0] - 1))
        machine = LinearSVC(max_iter=SWEEPS_FOR_LABELS, random_state=protocol.seed)
        return _fitted(machine, points, column, CLASSIFICATION_GRID)

    models = in_threads(protocol.threads, fit, labels.T)
    constants = np.concatenate([np.atleast_1d(model.constant) for model in models])
    return LinearModel(UNCHANGED, np.hstack([model.weights for model in models]), constants)


def fit_regression(protocol: Protocol, points: Points, targets: NDArray[np.float64]) -> LinearModel:
    """The model of a regression: absolute errors, C by the R² of cross-validation."""
    return _fitted(LinearSVR(random_state=protocol.seed), points, targets, REGRESSION_GRID)


def _fitted(machine: Any, points: Points, targets: NDArray[Any], grid: Sequence[float]) -> LinearModel:
    """What a machine finds with the best C of a grid, the first of equally good ones; one C needs no search."""
    inputs = UNCHANGED.of(points)
    if len(grid) > 1:
        machine = GridSearchCV(machine, {"C": list(grid)}, cv=FOLDS).fit(inputs, targets).best_estimator_
    else:
        machine = machine.set_params(C=grid[0]).fit(inputs, targets)
    weights: Matrix = np.atleast_2d(machine.coef_).T
    return LinearModel(UNCHANGED, weights, np.atleast_1d(machine.intercept_))
