"""The plain reading of SciRepEval's protocol, as the rival: scikit-learn's machines, fitted one by one."""

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.stats import kendalltau
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC, LinearSVR
from threadpoolctl import threadpool_limits

from cocite.config.benchmarks import TASKS
from cocite.config.tasks import Task
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.scored import joined, read_blocks
from cocite.evaluation.supervised import Classes, Examples, encode_classes, feasible_stages, few_shot_samples

SEED = 1


def main(vectors: Path, labels: Path, output: Path) -> None:
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        _score(vectors, labels, output)


def _score(vectors: Path, labels: Path, output: Path) -> None:
    rows = read_table(labels, "labels").to_pylist()
    task = TASKS[rows[0]["task"]]
    examples = _examples(vectors, task, rows).reordered(SEED, task.name)
    value = 100 * (_regression(examples) if task.kind == "regression" else _classification(task, examples))
    texts = {"model": "plain", "benchmark": "b", "task": task.name, "metric": "plain", "mode": "compat"}
    numbers = {"seed": 1, "evaluation_seed": 1, "value": value, "documents": 0, "missing": 0, "scored": 0}
    others = {"format": task.format, "unscored": 0, **dict.fromkeys(("searched", "copies", "unfindable"))}
    write_table(output, "scores", pa.Table.from_pylist([texts | numbers | others]))


def _examples(vectors: Path, task: Task, rows: list[dict[str, object]]) -> Examples:
    of_split = {
        split: {row["document"]: row["labels"] for row in rows if row["split"] == split} for split in ("train", "test")
    }
    found = joined(read_blocks(vectors, task, [], [str(row["document"]) for row in rows]))
    train, test = (found.of(list(documents)) for documents in of_split.values())
    train_labels, test_labels = (list(documents.values()) for documents in of_split.values())
    return Examples(train=train, train_labels=train_labels, test=test, test_labels=test_labels)


def _regression(examples: Examples) -> float:
    target, truth = (
        np.array([float(label) for [label] in side]) for side in (examples.train_labels, examples.test_labels)
    )
    machine = LinearSVR(epsilon=0.0, fit_intercept=False, random_state=SEED, max_iter=1000)
    search = GridSearchCV(machine, {"C": np.logspace(-4, 2, 7)}, cv=3).fit(examples.train, target)
    return float(kendalltau(truth, search.predict(examples.test)).statistic)


def _classification(task: Task, examples: Examples) -> float:
    classes = encode_classes(task, examples)
    grid = {"C": np.logspace(-2, 2, 5)}
    machine = LinearSVC(fit_intercept=False, random_state=SEED, max_iter=1000)
    few_shot = machine
    search = GridSearchCV(machine, grid, cv=3)
    if task.kind == "multilabel":
        machine = LinearSVC(loss="hinge", fit_intercept=False, random_state=SEED, max_iter=10_000)
        few_shot = search = OneVsRestClassifier(GridSearchCV(machine, grid, cv=3))
    whole = _fit_and_score(task, search, examples, classes, slice(None))
    stages = [
        np.mean(
            [
                _fit_and_score(task, few_shot, examples, classes, sample)
                for sample in few_shot_samples(stage, classes.train, SEED, task.name)
            ]
        )
        for stage in feasible_stages(task.few_shot, classes.train)
    ]
    return whole / 2 + float(np.mean(stages)) / 2 if stages else whole


def _fit_and_score(task: Task, model: object, examples: Examples, classes: Classes, sample: object) -> float:
    predicted = model.fit(examples.train[sample], classes.train[sample]).predict(examples.test)
    if task.kind == "binary":
        return float(f1_score(classes.test, predicted, pos_label=classes.names.index("1")))
    return float(f1_score(classes.test, predicted, average="macro", zero_division=0))
