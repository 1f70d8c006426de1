"""Classification and regression on fixed vectors, scored as SciRepEval scores them.

The tables keep documents in the order of their ids, not of the published files, so the training documents are put in
an order drawn from the evaluation seed; folds are then cut from that order without shuffling, as published.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from cocite.errors import InputError
from cocite.evaluation.few_shot import feasible_stages, few_shot_samples
from cocite.evaluation.machines import FOLDS, Protocol, classifier, few_shot_classifier, regressor
from cocite.evaluation.tasks import Task
from cocite.progress import report
from cocite.randomness import generator

POSITIVE = "1"
"""The class of binary tasks whose F1 is measured."""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Training and test documents of a task: vectors (documents × dimension) and the labels of each."""

    train: NDArray[np.floating]
    train_labels: list[list[str]]
    test: NDArray[np.floating]
    test_labels: list[list[str]]

    def reordered(self, seed: int, task: str) -> "Examples":
        """The same with the training documents in an order drawn from the evaluation seed."""
        order = generator(seed, "order of training documents", task).permutation(len(self.train))
        return Examples(
            train=self.train[order],
            train_labels=[self.train_labels[row] for row in order],
            test=self.test,
            test_labels=self.test_labels,
        )


def score_supervised(task: Task, examples: Examples, *, seed: int, mode: str) -> tuple[str, float]:
    """The task's metric, by name, and its value × 100.

    Where few-shot stages count, the name says so: `f1_with_few_shot` is ½ training on everything + ¼ + ¼. Where the
    training documents do not suffice for them, the metric is the plain one.
    """
    protocol = Protocol(task=task, seed=seed, mode=mode)
    ordered = examples.reordered(seed, task.name)
    with _counted_warnings(task):
        if task.kind == "regression":
            return task.metrics[0], 100 * _score_regression(protocol, ordered)
        whole, *stages = _score_classification(protocol, ordered)
    if not stages:
        return task.metrics[0], 100 * whole
    return f"{task.metrics[0]}_with_few_shot", 100 * (whole / 2 + float(np.mean(stages)) / 2)


def _score_regression(protocol: Protocol, examples: Examples) -> float:
    """Kendall's τ-b; 0 where it is undefined because one side is constant."""
    target = np.array([float(label) for [label] in examples.train_labels])
    truth = np.array([float(label) for [label] in examples.test_labels])
    _check_folds(protocol.task, len(target))
    predicted = regressor(protocol).fit(examples.train, target).predict(examples.test)
    tau = float(kendalltau(truth, predicted).statistic)
    return 0.0 if np.isnan(tau) else tau


def _score_classification(protocol: Protocol, examples: Examples) -> list[float]:
    """F1 of training on everything, then the mean F1 over the runs of each few-shot stage."""
    task = protocol.task
    classes, truth = _class_arrays(task, examples)
    if len(np.unique(classes, axis=0)) < 2:
        raise InputError(f"The task {task.name} has only one class among its training documents.")
    _check_folds(task, _size_of_largest(classes))
    model = classifier(protocol).fit(examples.train, classes)
    scores = [_f1(task, truth, model.predict(examples.test))]
    model = few_shot_classifier(protocol)
    for stage in feasible_stages(task.few_shot, classes):
        runs = [
            _f1(task, truth, model.fit(examples.train[sample], classes[sample]).predict(examples.test))
            for sample in few_shot_samples(stage, classes, protocol.seed, task.name)
        ]
        scores.append(float(np.mean(runs)))
    return scores


def _size_of_largest(classes: NDArray[Any]) -> int:
    """Documents of the largest class; of several labels, those at least that either have a label or do not."""
    if classes.ndim == 1:
        return int(np.unique(classes, return_counts=True)[1].max())
    return -(-len(classes) // 2)


def _check_folds(task: Task, alike: int) -> None:
    """Raise where no class has as many training documents as there are folds, which cannot be cut then."""
    if alike < FOLDS:
        raise InputError(f"The task {task.name} has only {alike} training documents (of a class); {FOLDS} are needed.")


def _class_arrays(task: Task, examples: Examples) -> tuple[NDArray[Any], NDArray[Any]]:
    """The classes of training and test documents: one name each, or documents × classes of 0 and 1."""
    if task.kind != "multilabel":
        return np.array([label for [label] in examples.train_labels]), np.array(
            [label for [label] in examples.test_labels]
        )
    binarizer = MultiLabelBinarizer().fit([*examples.train_labels, *examples.test_labels])
    return binarizer.transform(examples.train_labels), binarizer.transform(examples.test_labels)


def _f1(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    if task.kind == "binary":
        return float(f1_score(truth, predicted, pos_label=POSITIVE, zero_division=0))
    return float(f1_score(truth, predicted, average="macro", zero_division=0))


@contextmanager
def _counted_warnings(task: Task) -> Iterator[None]:
    """Tell in one line how many fits stopped before they converged; drop the warnings about rare classes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    stopped = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    if stopped:
        report(f"Task {task.name}: {stopped} fits reached the largest number of iterations before they converged.")
