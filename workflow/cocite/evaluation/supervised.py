"""Classification and regression on fixed vectors, scored as SciRepEval scores them.

The tables keep documents in the order of their ids, not of the published files, so the training documents are put in
an order drawn from the evaluation seed; folds are then cut from that order without shuffling, as published.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer
from threadpoolctl import threadpool_limits

from cocite.config.tasks import POSITIVE, Task
from cocite.evaluation.failures import UnscorableError
from cocite.evaluation.few_shot import feasible_stages, few_shot_samples
from cocite.evaluation.machines.fitting import FOLDS, Protocol, classes_of, fit_classes, fit_labels, fit_regression
from cocite.ground.randomness import generator

FEW_SHOT_C = 1.0
"""C of the machines that are trained on small samples, in tasks of one label."""


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


@dataclass(frozen=True, kw_only=True)
class SupervisedScore:
    """A task's metric, by name, its value × 100, and what the training on everything predicts."""

    metric: str
    """Where few-shot stages count, the name says so: `f1_with_few_shot` is ½ training on everything + ¼ + ¼. Where the
    training documents do not suffice for them, the metric is the plain one."""
    value: float
    predicted: list[list[str]]
    """The labels, or the number as text, of each test document."""


@dataclass(frozen=True)
class Classes:
    """The classes of documents: a number each (single-label), or documents × classes of 0 and 1."""

    names: list[str]
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    def named(self, predicted: NDArray[np.int64]) -> list[list[str]]:
        """The names of the predicted classes of each document."""
        if predicted.ndim == 1:
            return [[self.names[number]] for number in predicted]
        return [[self.names[column] for column in np.flatnonzero(row)] for row in predicted]


def score_supervised(protocol: Protocol, examples: Examples) -> SupervisedScore:
    """Fit the task's machines and score them. Raises `UnscorableError` where there are too few documents or classes."""
    ordered = examples.reordered(protocol.seed, protocol.task.name)
    score = _score_regression if protocol.task.kind == "regression" else _score_classification
    # Products of matrices keep to one thread, since their last bits depend on how many there are; it is folds and
    # labels that share the threads.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return score(protocol, ordered)


def _score_regression(protocol: Protocol, examples: Examples) -> SupervisedScore:
    """Kendall's τ-b; 0 where it is undefined because one side is constant."""
    target = np.array([float(label) for [label] in examples.train_labels])
    truth = np.array([float(label) for [label] in examples.test_labels])
    _check_folds(protocol.task, len(target))
    predicted = fit_regression(protocol, examples.train, target).outputs(examples.test)[:, 0]
    tau = float(kendalltau(truth, predicted).statistic)
    return SupervisedScore(
        metric=protocol.task.metrics[0],
        value=0.0 if np.isnan(tau) else 100 * tau,
        predicted=[[repr(float(value))] for value in predicted],
    )


def _score_classification(protocol: Protocol, examples: Examples) -> SupervisedScore:
    """F1 of training on everything, or that and the mean F1 over the runs of each few-shot stage."""
    task = protocol.task
    classes = encode_classes(task, examples)
    if len(np.unique(classes.train, axis=0)) < 2:
        raise UnscorableError(f"The task {task.name} has only one class among its training documents.")
    _check_folds(task, _size_of_largest(classes.train))
    everything = np.arange(len(classes.train))
    predicted = _predict(protocol, examples, classes, everything, c=None)
    whole = _f1(task, classes, predicted)
    few = [
        np.mean(
            [
                _f1(task, classes, _predict(protocol, examples, classes, sample, c=FEW_SHOT_C))
                for sample in few_shot_samples(stage, classes.train, protocol.seed, task.name)
            ]
        )
        for stage in feasible_stages(task.few_shot, classes.train)
    ]
    metric = task.metrics[0] + ("_with_few_shot" if few else "")
    value = whole / 2 + float(np.mean(few)) / 2 if few else whole
    return SupervisedScore(metric=metric, value=100 * value, predicted=classes.named(predicted))


def _predict(
    protocol: Protocol, examples: Examples, classes: Classes, sample: NDArray[np.int64], *, c: float | None
) -> NDArray[np.int64]:
    """The classes of the test documents by machines that are trained on a sample; multi-label ones choose their C."""
    points, known = examples.train[sample], classes.train[sample]
    if known.ndim == 1:
        machine = fit_classes(protocol, points, known, c=c)
        return np.unique(known)[classes_of(machine.outputs(examples.test))]
    predicted: NDArray[np.int64] = (fit_labels(protocol, points, known).outputs(examples.test) > 0).astype(np.int64)
    return predicted


def _size_of_largest(classes: NDArray[np.int64]) -> int:
    """Documents of the largest class; of several labels, those at least that either have a label or do not."""
    if classes.ndim == 1:
        return int(np.unique(classes, return_counts=True)[1].max())
    return -(-len(classes) // 2)


def _check_folds(task: Task, alike: int) -> None:
    """Raise where no class has as many training documents as there are folds, which cannot be cut then."""
    if alike < FOLDS:
        raise UnscorableError(
            f"The task {task.name} has only {alike} training documents (of a class); {FOLDS} are needed."
        )


def encode_classes(task: Task, examples: Examples) -> Classes:
    """The classes of a classification task as numbers."""
    if task.kind == "multilabel":
        binarizer = MultiLabelBinarizer().fit([*examples.train_labels, *examples.test_labels])
        train, test = (binarizer.transform(labels) for labels in (examples.train_labels, examples.test_labels))
        return Classes(list(binarizer.classes_), train, test)
    train_names, test_names = (
        [label for [label] in labels] for labels in (examples.train_labels, examples.test_labels)
    )
    names, codes = np.unique([*train_names, *test_names], return_inverse=True)
    return Classes(names.tolist(), codes[: len(train_names)], codes[len(train_names) :])


def _f1(task: Task, classes: Classes, predicted: NDArray[np.int64]) -> float:
    """F1 of the positive class, or the mean over the classes that a test document has or that are predicted."""
    if task.kind == "binary":
        is_positive: Any = [name == POSITIVE for name in classes.names]
        truth, found = (np.array(is_positive)[codes] for codes in (classes.test, predicted))
        return float(f1_score(truth, found, zero_division=0))
    truth, found = classes.test, predicted
    if task.kind == "multilabel":
        seen = (truth | found).any(axis=0)
        truth, found = truth[:, seen], found[:, seen]
    return float(f1_score(truth, found, average="macro", zero_division=0)) if found.size else 0.0
