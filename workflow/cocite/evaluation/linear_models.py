"""The linear support vector machines that SciRepEval fits to fixed vectors.

`compat` is the published protocol: no intercept, no scaling. `correct` has an intercept and standardised inputs, and
for regression a standardised target; `sklearn` has scikit-learn's solvers, as SciRepEval's code without lightning. C is
chosen by 3-fold cross-validation on the training documents, by accuracy or R², the smallest of equally good ones; folds
are not shuffled, and each is standardised by its own training documents.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from cocite.config.tasks import Task
from cocite.evaluation.solvers import BLOCK, GAP, GAP_OF_NUMBERS, Loss, Matrix, path, path_of_few

CLASSIFICATION_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
REGRESSION_GRID = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
FOLDS = 3
WIDTH = 0.1
"""The width of what is rounded off, by the margin of the hinge or the mean deviation of the targets."""
SWEEPS, SWEEPS_FOR_LABELS = 1_000, 10_000

Points = NDArray[np.floating]
Rows = NDArray[np.int64]
Fold = tuple[Rows, Rows]
"""Documents to train on, and the others."""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The settings of a fit, apart from its data."""

    task: Task
    seed: int
    mode: str
    """compat, correct or sklearn."""
    threads: int = 1
    """Threads that fits may use; no result depends on them."""


@dataclass(frozen=True)
class LinearModel:
    """A fitted model: what inputs are scaled by, weights (dimension × outputs), and what is added to every output."""

    scaler: StandardScaler | None
    weights: Matrix
    constant: float | NDArray[np.float64] = 0.0

    def outputs(self, points: Points) -> Matrix:
        """The model's value for each document, documents × outputs."""
        return inputs_of(points, self.scaler) @ self.weights + self.constant


def scaler_of(protocol: Protocol, points: Points) -> StandardScaler | None:
    """What inputs are standardised by in the mode correct."""
    if protocol.mode != "correct":
        return None
    scaler = StandardScaler()
    for start in range(0, len(points), BLOCK):
        scaler.partial_fit(points[start : start + BLOCK].astype(np.float64))
    return scaler


def inputs_of(points: Points, scaler: StandardScaler | None) -> NDArray[np.float64]:
    """Documents as inputs: unchanged, or standardised, with a one for the intercept."""
    if scaler is None:
        return points.astype(np.float64)
    # In place, since there may be room for few copies.
    inputs = np.ones((len(points), points.shape[1] + 1))
    inputs[:, :-1] = points
    inputs[:, :-1] -= scaler.mean_
    inputs[:, :-1] /= scaler.scale_
    return inputs


def squared_hinge(targets: Matrix) -> Loss:
    """max(0, 1 − y o)² for targets y of −1 and 1."""
    low, high = np.where(targets > 0, 0.0, -np.inf), np.where(targets > 0, np.inf, 0.0)
    return Loss(targets=targets, low=low, high=high, width=np.full(targets.shape[1], 0.5), is_round=True)


def hinge(targets: Matrix) -> Loss:
    """max(0, 1 − y o) for targets y of −1 and 1."""
    low, high = targets.clip(max=0), targets.clip(min=0)
    return Loss(targets=targets, low=low, high=high, width=np.full(targets.shape[1], WIDTH), is_round=False)


def absolute_errors(targets: Matrix) -> Loss:
    """|t − o| for any targets."""
    ones = np.ones_like(targets)
    deviation = np.abs(targets - np.median(targets, axis=0)).mean(axis=0)
    width = WIDTH * np.where(deviation > 0, deviation, 1.0)
    return Loss(targets=targets, low=-ones, high=ones, width=width, is_round=False, gap=GAP_OF_NUMBERS)


def _fit_best(
    protocol: Protocol,
    loss: Callable[[Matrix], Loss],
    grid: Sequence[float],
    points: Points,
    targets: Matrix,
    folds: Iterable[Fold],
    score: Callable[[Matrix, Rows], float],
) -> LinearModel:
    """The model that minimises a loss of targets (documents × outputs), with the C of the best mean over the folds."""

    def weights_of(inputs: Matrix, some: Matrix, grid: Sequence[float]) -> Iterator[Matrix]:
        """The weights, dimension × outputs, for each C; one model with hinge loss has a solver for few documents."""
        if loss is hinge and len(inputs) < inputs.shape[1]:
            return path_of_few(inputs, some, grid, GAP)
        return path(inputs, loss(some), grid)

    def scores(fold: Fold) -> list[float]:
        rows, held_out = fold
        scaler = scaler_of(protocol, points[rows])
        unseen = inputs_of(points[held_out], scaler)
        found = weights_of(inputs_of(points[rows], scaler), targets[rows], grid)
        return [float(score(unseen @ weights, held_out)) for weights in found]

    if len(grid) > 1:
        with ThreadPoolExecutor(protocol.threads) as pool:
            grid = grid[: np.mean(list(pool.map(scores, folds)), axis=0).argmax() + 1]
    scaler = scaler_of(protocol, points)
    *_, weights = weights_of(inputs_of(points, scaler), targets, grid)
    return LinearModel(scaler, weights)


def fit_classes(
    protocol: Protocol,
    points: Points,
    classes: NDArray[Any],
    *,
    c: float | None = None,
    loss: Callable[[Matrix], Loss] = squared_hinge,
    sweeps: int = SWEEPS,
) -> LinearModel:
    """One output per sorted class, or for the second of two. C is `c`, or of the best accuracy."""
    grid = (protocol.task.grid or CLASSIFICATION_GRID) if c is None else (c,)
    if protocol.mode == "sklearn":
        return _fitted(LinearSVC(max_iter=sweeps, random_state=protocol.seed), points, classes, grid)
    names, codes = np.unique(classes, return_inverse=True)
    columns = np.arange(len(names)) if len(names) > 2 else np.array([1])
    targets = np.where(codes[:, None] == columns, 1.0, -1.0)

    def accuracy(found: Matrix, rows: Rows) -> float:
        return float(np.mean(classes_of(found) == codes[rows]))

    folds = StratifiedKFold(FOLDS).split(points, codes)
    return _fit_best(protocol, loss, grid, points, targets, folds, accuracy)


def classes_of(outputs: Matrix) -> NDArray[np.int64]:
    """Numbers of the predicted classes, from the outputs of a model of classes."""
    return outputs.argmax(axis=1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).astype(np.int64)


def fit_labels(protocol: Protocol, points: Points, labels: NDArray[np.int64]) -> LinearModel:
    """One output per label (a column of 0 and 1), positive if it is predicted; hinge loss, but squared in the mode
    sklearn. Each label has its own C; one that no document has, or that all have, is predicted for none or all."""
    alone, is_constant = replace(protocol, threads=1), np.ptp(labels, axis=0) == 0

    def fit(column: NDArray[np.int64]) -> LinearModel:
        if np.ptp(column) == 0:
            return LinearModel(None, np.zeros((points.shape[1] + (protocol.mode == "correct"), 1)), np.zeros(1))
        return fit_classes(alone, points, column, loss=hinge, sweeps=SWEEPS_FOR_LABELS)

    # liblinear draws from one state of the whole process.
    with ThreadPoolExecutor(1 if protocol.mode == "sklearn" else protocol.threads) as pool:
        models = list(pool.map(fit, labels.T))
    constants = np.concatenate([np.atleast_1d(model.constant) for model in models])
    weights = np.hstack([model.weights for model in models])
    constants = np.where(is_constant, 2.0 * labels[0] - 1, constants)
    return LinearModel(scaler_of(protocol, points), weights, constants)


def fit_regression(protocol: Protocol, points: Points, targets: NDArray[np.float64]) -> LinearModel:
    """The model of a regression: absolute errors, C by the R² of cross-validation."""
    if protocol.mode == "sklearn":
        return _fitted(LinearSVR(random_state=protocol.seed), points, targets, REGRESSION_GRID)
    shift, spread = (targets.mean(), targets.std() or 1.0) if protocol.mode == "correct" else (0.0, 1.0)
    scaled = ((targets - shift) / spread)[:, None]
    folds, r2 = KFold(FOLDS).split(points), lambda found, rows: r2_score(scaled[rows], found)
    model = _fit_best(protocol, absolute_errors, REGRESSION_GRID, points, scaled, folds, r2)
    return LinearModel(model.scaler, spread * model.weights, shift)


def _fitted(machine: Any, points: Points, targets: NDArray[Any], grid: Sequence[float]) -> LinearModel:
    """What scikit-learn finds with the best C of a grid, the first of equally good ones; one C needs no search."""
    inputs = points.astype(np.float64)
    if len(grid) > 1:
        machine = GridSearchCV(machine, {"C": list(grid)}, cv=FOLDS).fit(inputs, targets).best_estimator_
    else:
        machine = machine.set_params(C=grid[0]).fit(inputs, targets)
    return LinearModel(None, np.atleast_2d(machine.coef_).T, np.atleast_1d(machine.intercept_))
