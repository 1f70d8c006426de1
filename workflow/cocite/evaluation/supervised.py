"""Classification, regression and disambiguation on fixed vectors, scored as SciRepEval scores them.

Training documents are put in an order drawn from the evaluation seed; folds are cut from it without shuffling, as
published. Authors are told apart by the embeddings of papers only: the clustering of S2AND (Subramanian et al., 2021)
without its trained classifier of pairs.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MultiLabelBinarizer
from threadpoolctl import threadpool_limits

from cocite.config.tasks import POSITIVE, WITH_FEW_SHOT, FewShot, Task
from cocite.core.progress import progress
from cocite.core.randomness import generator
from cocite.core.searching import of_unit_length
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.linear_models import FOLDS, Protocol, classes_of, fit_classes, fit_labels, fit_regression
from cocite.evaluation.metrics import b3_statistic, f1, kendall_tau, on_all
from cocite.evaluation.scored import Scored, UnscorableError, Vectors

FEW_SHOT_C = 1.0
"""C of the linear models that are trained on small samples, in tasks of one label."""
DISTANCES = 100
"""Distances to merge up to that are tried: quantiles of those that merge something in the blocks to train on."""

Blocks = Mapping[str, Sequence[str]]
"""The signatures of each block."""


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
        return replace(self, train=self.train[order], train_labels=[self.train_labels[row] for row in order])


class SupervisedScore(NamedTuple):
    """A metric of a task with its value × 100, and the predictions of the full training for each test document. If
    few-shot stages count, the metric's name shows it: `f1_with_few_shot` is ½ full training + ¼ + ¼."""

    metric: str
    value: float
    predicted: list[list[str]]


@dataclass(frozen=True)
class Classes:
    """The classes of documents: a number each (single-label), or documents × classes of 0 and 1."""

    names: list[str]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


def score_fits(scored: Scored, benchmark: Benchmark, vectors: Vectors) -> None:
    """Fit and score a supervised task once with each evaluation seed and mode. It may raise `UnscorableError`."""
    run, task = scored.run, scored.task
    asked = [benchmark.labels.get((task.name, split), {}) for split in ("train", "test")]
    train, test = ({name: of for name, of in labels.items() if name in vectors.rows} for labels in asked)
    if not test:
        raise UnscorableError(f"The task {task.name} has no test document with a vector.")
    examples = Examples(
        train=vectors.as_stored(list(train)),
        train_labels=list(train.values()),
        test=vectors.as_stored(list(test)),
        test_labels=list(test.values()),
    )
    for seed, mode in product(run.evaluation_seeds, run.modes):
        protocol = Protocol(task=task, seed=seed, mode=mode, threads=run.threads)
        metric, value, predicted = score_supervised(protocol, examples)
        pairs = zip(test.items(), predicted, strict=True)
        items = [(document, None, 1.0, found, names) for (document, names), found in pairs]
        scored.add(metric, value, items, len(asked[1]), seed=seed, mode=mode)


def score_supervised(protocol: Protocol, examples: Examples) -> SupervisedScore:
    """Fit and score a task's models. Raises `UnscorableError` if there are too few documents or classes."""
    ordered = examples.reordered(protocol.seed, protocol.task.name)
    score = _score_regression if protocol.task.kind == "regression" else _score_classification
    # Products of matrices keep to one thread, since their last bits depend on how many there are; folds and labels
    # share the threads instead.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        # In the mode sklearn, these are part of the protocol: solvers that stop early, and folds without a class.
        for category in (ConvergenceWarning, FitFailedWarning):
            warnings.filterwarnings("ignore", category=category)
        warnings.filterwarnings("ignore", message="One or more of the test scores are non-finite")
        return score(protocol, ordered)


def _score_regression(protocol: Protocol, examples: Examples) -> SupervisedScore:
    target = np.array([float(label) for [label] in examples.train_labels])
    truth = np.array([float(label) for [label] in examples.test_labels])
    _check_folds(protocol.task, len(target))
    predicted = fit_regression(protocol, examples.train, target).outputs(examples.test)[:, 0]
    named = [[repr(float(value))] for value in predicted]
    return SupervisedScore(protocol.task.metrics[0], 100 * kendall_tau(truth, predicted), named)


def _score_classification(protocol: Protocol, examples: Examples) -> SupervisedScore:
    """F1 of training on everything, or that and the mean F1 over the runs of each few-shot stage."""
    task = protocol.task
    classes = encode_classes(task, examples)
    if len(np.unique(classes.train, axis=0)) < 2:
        raise UnscorableError(f"The task {task.name} has only one class among its training documents.")
    # Of the largest class; with several labels, of the larger side of any label, which half of them at least are on.
    single = classes.train.ndim == 1
    alike = np.unique(classes.train, return_counts=True)[1].max() if single else -(-len(classes.train) // 2)
    _check_folds(task, int(alike))
    predicted = _predict(protocol, examples, classes, np.arange(len(classes.train)), c=None)
    whole = _f1(task, classes, predicted)
    few = []
    for stage in feasible_stages(task.few_shot, classes.train):
        samples = few_shot_samples(stage, classes.train, protocol.seed, task.name)
        runs = (_predict(protocol, examples, classes, sample, c=FEW_SHOT_C) for sample in samples)
        few.append(np.mean([_f1(task, classes, found) for found in runs]))
    metric = task.metrics[0] + (WITH_FEW_SHOT if few else "")
    value = whole / 2 + float(np.mean(few)) / 2 if few else whole
    numbers = ([number] if single else np.flatnonzero(number) for number in predicted)
    return SupervisedScore(metric, 100 * value, [[classes.names[number] for number in each] for each in numbers])


def _predict(
    protocol: Protocol, examples: Examples, classes: Classes, sample: NDArray[np.int64], *, c: float | None
) -> NDArray[np.int64]:
    """The classes of the test documents, by linear models trained on a sample; multi-label ones choose their C."""
    points, known = examples.train[sample], classes.train[sample]
    if known.ndim == 1:
        model = fit_classes(protocol, points, known, c=c)
        return np.unique(known)[classes_of(model.outputs(examples.test))]
    return (fit_labels(protocol, points, known).outputs(examples.test) > 0).astype(np.int64)


def _check_folds(task: Task, alike: int) -> None:
    if alike < FOLDS:
        lacking = f"has only {alike} training documents (of a class)"
        raise UnscorableError(f"The task {task.name} {lacking}; {FOLDS} are needed.")


def encode_classes(task: Task, examples: Examples) -> Classes:
    """The classes of a classification task as numbers."""
    labels, trained = [*examples.train_labels, *examples.test_labels], len(examples.train_labels)
    if task.kind == "multilabel":
        binarizer = MultiLabelBinarizer()
        codes = binarizer.fit_transform(labels)
        names = list(binarizer.classes_)
    else:
        distinct, codes = np.unique([label for [label] in labels], return_inverse=True)
        names = distinct.tolist()
    return Classes(names, codes[:trained], codes[trained:])


def _f1(task: Task, classes: Classes, predicted: NDArray[np.int64]) -> float:
    """F1 of the positive class, or the mean over the classes that a test document has or that are predicted."""
    numbers = np.arange(len(classes.names))
    if task.kind == "binary":
        numbers = numbers[np.array(classes.names) == POSITIVE]
    truth, found = (side > 0 if side.ndim > 1 else side[:, None] == numbers for side in (classes.test, predicted))
    return f1(truth, found)


def feasible_stages(stages: Sequence[FewShot], classes: NDArray[np.generic]) -> Sequence[FewShot]:
    """All stages, or none if the training documents, with a class or classes of 0 and 1 each, do not suffice for one:
    runs of a stage must differ, and each fold have two classes, or each class enough documents for a sample."""
    for stage in stages:
        if len(classes) < stage.size * stage.runs:
            return ()
        if classes.ndim == 1:
            fewest, needed = np.sort(np.unique(classes, return_counts=True)[1])[-2], -(-len(classes) // stage.size)
        else:
            fewest, needed = np.count_nonzero(classes, axis=0).min(), stage.size
        if fewest < needed:
            return ()
    return stages


def few_shot_samples(stage: FewShot, classes: NDArray[np.generic], seed: int, task: str) -> Iterator[NDArray[np.int64]]:
    """The documents of each run, as rows of `classes`: a stratified fold or, of multi-label tasks, `size` documents of
    each class, with a generator for each run, so that neighbouring seeds share no samples as the published ones do."""
    if classes.ndim == 1:
        folds = StratifiedKFold(-(-len(classes) // stage.size)).split(np.zeros(len(classes)), classes)
        yield from islice((fold for _, fold in folds), stage.runs)
        return
    for run in range(stage.runs):
        draw = generator(seed, "few-shot", task, stage.size, run)
        yield np.unique([draw.choice(np.flatnonzero(column), stage.size, replace=False) for column in classes.T])


def score_disambiguation(scored: Scored, benchmark: Benchmark, vectors: Vectors) -> None:
    """Cluster the test signatures of a task and score them by B³ (Bagga & Baldwin, 1998): within each block, by average
    linkage on the cosine distance of papers, up to the distance that does best on the blocks to train on."""
    task = scored.task
    signatures = benchmark.signatures[task.name]
    authors = {signature: author for signature, (_, _, author, _) in signatures.items()}
    documents = {signature: document for signature, (document, *_) in signatures.items()}
    blocks: dict[str, dict[str, list[str]]] = {"train": {}, "test": {}}
    for signature, (document, block, _, split) in signatures.items():
        if document in vectors.rows:
            blocks[split].setdefault(block, []).append(signature)
    for split, of_split in blocks.items():
        if not of_split:
            raise UnscorableError(f"The task {task.name} has no signature with a vector to {split} on.")
    train, test = blocks.values()
    with threadpool_limits(1):  # The last bits of products of matrices depend on how many threads there are.
        merges = _merges(train, documents, vectors)
        # The distance with the highest B³ F1 on the blocks to train on; the smallest of equal ones.
        merging = np.concatenate([[0.0], *(merged[:, 2] for merged in merges.values())])
        tried = np.unique(np.quantile(merging, np.linspace(0, 1, DISTANCES), method="nearest"))
        values = [_b3("b3_f1", clusters_up_to(distance, train, merges), authors) for distance in tried]
        distance = float(tried[int(np.argmax(values))])
        clusters = clusters_up_to(distance, test, _merges(test, documents, vectors))
    asked = sum(split == "test" for *_, split in signatures.values())
    items = [(signature, None, 1.0, [cluster], [authors[signature]]) for signature, cluster in clusters.items()]
    for metric in task.metrics:
        scored.add(metric, _b3(metric, clusters, authors), items, asked)


def _b3(metric: str, clusters: Mapping[str, str], authors: Mapping[str, str]) -> float:
    expected, predicted = [[authors[signature]] for signature in clusters], [[name] for name in clusters.values()]
    return on_all(b3_statistic(expected, predicted, metric), len(clusters))


def _merges(blocks: Blocks, documents: Mapping[str, str], vectors: Vectors) -> dict[str, NDArray[np.float64]]:
    """The dendrogram of each block, as SciPy has it; none for a single signature."""
    return {
        block: linkage(cosine_distances(vectors.of([documents[signature] for signature in signatures])), "average")
        for block, signatures in progress(blocks.items(), of="Blocks", unit="block")
        if len(signatures) > 1
    }


def cosine_distances(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 − cosine of each pair of rows, in SciPy's condensed form; 1 to a vector of zeros."""
    unit = of_unit_length(matrix)
    return squareform(np.maximum(1 - unit @ unit.T, 0), checks=False)


def clusters_up_to(distance: float, blocks: Blocks, merges: Mapping[str, NDArray[np.float64]]) -> dict[str, str]:
    """The name of each signature's cluster, where all that is within a distance is merged."""
    clusters = dict[str, str]()
    for block, signatures in blocks.items():
        numbers = fcluster(merges[block], distance, "distance") if block in merges else [1]
        clusters.update((s, f"{block}:{number}") for s, number in zip(signatures, numbers, strict=True))
    return clusters
