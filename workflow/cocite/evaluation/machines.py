"""The linear support vector machines that SciRepEval fits to fixed vectors.

`compat` is the published protocol: no intercept, no scaling. `correct` adds what a linear model on vectors of any
origin needs: an intercept and standardised inputs, and for regression a standardised target. C is chosen by 3-fold
cross-validation on the training documents, by accuracy or R².

Published were lightning's solvers, which no longer install; scikit-learn's minimise the same objectives.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from cocite.evaluation.tasks import Task
from cocite.randomness import derive_seed

CLASSIFICATION_GRID = np.logspace(-2, 2, 5)
REGRESSION_GRID = np.logspace(-4, 2, 7)
FOLDS = 3
ITERATIONS = 1_000
MULTILABEL_ITERATIONS = 10_000
"""Largest numbers of iterations of the solver, as published."""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a fit depends on beside the data."""

    task: Task
    seed: int
    """Evaluation seed; it reaches the coordinate descent of the solver."""
    mode: str
    """compat or correct."""

    @property
    def intercept(self) -> bool:
        """Whether there is an intercept, and inputs are standardised."""
        return self.mode == "correct"

    @property
    def random_state(self) -> int:
        """Seed of the solver, in the 32 bits that it takes."""
        return derive_seed(self.seed, "solver", self.task.name) % 2**32


def classifier(protocol: Protocol) -> Any:
    """The machine that a classification task is trained with on all its documents: C by cross-validation.

    Squared hinge loss; in multi-label tasks one machine with hinge loss for each label, each with a C of its own.
    """
    if protocol.task.kind == "multilabel":
        machine = _linear_classifier(protocol, loss="hinge", max_iter=MULTILABEL_ITERATIONS)
        return OneVsRestClassifier(_with_best_c(protocol, machine, CLASSIFICATION_GRID))
    return _with_best_c(protocol, _linear_classifier(protocol), CLASSIFICATION_GRID)


def few_shot_classifier(protocol: Protocol) -> Any:
    """The machine that is trained on a small sample: C is 1, or chosen as always in multi-label tasks."""
    if protocol.task.kind == "multilabel":
        return classifier(protocol)
    return _scaled(protocol, _linear_classifier(protocol))


def regressor(protocol: Protocol) -> Any:
    """The machine of a regression task: absolute errors (ε = 0), C by cross-validation."""
    machine = LinearSVR(
        epsilon=0.0, fit_intercept=protocol.intercept, random_state=protocol.random_state, max_iter=ITERATIONS
    )
    search = _with_best_c(protocol, machine, REGRESSION_GRID)
    return TransformedTargetRegressor(search, transformer=StandardScaler()) if protocol.intercept else search


def _linear_classifier(protocol: Protocol, loss: str = "squared_hinge", max_iter: int = ITERATIONS) -> LinearSVC:
    return LinearSVC(
        C=1.0,
        loss=loss,
        dual="auto",
        fit_intercept=protocol.intercept,
        random_state=protocol.random_state,
        max_iter=max_iter,
    )


def _with_best_c(protocol: Protocol, machine: Any, grid: NDArray[np.float64]) -> GridSearchCV:
    """The machine refitted with the best C, the smallest of equally good ones; folds are not shuffled."""
    parameter = f"{type(machine).__name__.lower()}__C" if protocol.intercept else "C"
    return GridSearchCV(_scaled(protocol, machine), {parameter: grid}, cv=FOLDS)


def _scaled(protocol: Protocol, machine: Any) -> Any:
    return make_pipeline(StandardScaler(), machine) if protocol.intercept else machine
