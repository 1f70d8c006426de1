"""What vectors score on every task of a benchmark: the rows of the table scores.

A row for each evaluation seed where the seed can change the value (classification, regression). Rankings have no
random choice and the two modes agree on them: one row, under the first evaluation seed, with the mode `both`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cocite.errors import InputError
from cocite.evaluation.benchmark import Benchmark, write_rows
from cocite.evaluation.ranking import (
    Similarity,
    Vectors,
    by_cosine,
    by_distance,
    measure,
    rank_candidates,
    rank_reviewers,
)
from cocite.evaluation.tasks import LARGEST_MISSING_SHARE, Task
from cocite.files import read_table, vectors_of
from cocite.progress import progress
from cocite.randomness import generator

RANDOM_DIMENSION = 64

Row = tuple[object, ...]
"""A row of the table scores."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Who is scored, on what, and how."""

    model: str
    training_seed: int
    benchmark: str
    mode: str
    evaluation_seeds: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Documents that a task asks for, and those among them without a vector."""

    documents: int
    missing: int


def read_vectors(path: Path) -> Vectors:
    """Read document embeddings. Raises `InputError` where a vector holds a number that is not finite."""
    table = read_table(path, "document_embeddings")
    matrix = vectors_of(table)
    documents = table.column("document").to_pylist()
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(broken):
        raise InputError(
            f"{path}: {len(broken)} vectors hold values that are not finite, first that of the document "
            f"{documents[broken[0]]!r}; the model's training has probably diverged."
        )
    return Vectors({document: row for row, document in enumerate(documents)}, matrix)


def random_vectors(path: Path, seed: int) -> Vectors:
    """A standard normal vector for each document of a benchmark: what chance scores."""
    documents = read_table(path, "documents", ["document"]).column("document").to_pylist()
    matrix = generator(seed, "random vectors").standard_normal((len(documents), RANDOM_DIMENSION), dtype=np.float32)
    return Vectors({document: row for row, document in enumerate(documents)}, matrix)


def score_vectors(benchmark: Benchmark, vectors: Vectors, run: Run, output: Path) -> None:
    """Score the vectors on every task and write the table scores.

    Raises `InputError` where more than a hundredth of a task's documents have no vector.
    """
    rows: list[Row] = []
    for task in progress(benchmark.tasks(), of="Tasks", unit="task"):
        documents = benchmark.documents_of(task)
        missing = sorted(documents - vectors.rows.keys())
        if len(missing) > len(documents) * LARGEST_MISSING_SHARE:
            raise InputError(
                f"The task {task.name} of {run.benchmark}: {len(missing)} of {len(documents)} documents have no vector "
                f"of {run.model}, among them {missing[0]!r}; embed the benchmark's documents again."
            )
        counts = Counts(documents=len(documents), missing=len(missing))
        score_task = score_fits if task.is_supervised else score_distances
        rows += score_task(benchmark, task, vectors, run, counts)
    write_rows(output, "scores", rows)


def score_fits(benchmark: Benchmark, task: Task, vectors: Vectors, run: Run, counts: Counts) -> list[Row]:
    """Fit and score a supervised task once with each evaluation seed."""
    # scikit-learn takes a second to import, which benchmarks of rankings alone need not wait for.
    from cocite.evaluation.supervised import Examples, score_supervised

    train, test = (
        {
            document: labels
            for document, labels in benchmark.labels.get((task.name, split), {}).items()
            if document in vectors.rows
        }
        for split in ("train", "test")
    )
    examples = Examples(
        train=vectors.of(list(train)),
        train_labels=list(train.values()),
        test=vectors.of(list(test)),
        test_labels=list(test.values()),
    )
    return [
        score_row(
            run, task, counts, *score_supervised(task, examples, seed=seed, mode=run.mode), seed=seed, mode=run.mode
        )
        for seed in run.evaluation_seeds
    ]


def score_distances(benchmark: Benchmark, task: Task, vectors: Vectors, run: Run, counts: Counts) -> list[Row]:
    """Score a ranking by distance, or by cosine where reviewers are ranked."""
    similarity = by_cosine(vectors) if task.kind == "reviewers" else by_distance(vectors)
    return score_ranking(benchmark, task, similarity, vectors.rows, run, counts)


def score_ranking(
    benchmark: Benchmark, task: Task, similarity: Similarity, known: Collection[str], run: Run, counts: Counts
) -> list[Row]:
    """Score a ranking by any similarity, over the documents that are `known`."""
    judgements = benchmark.judgements[task.name]
    if task.kind == "reviewers":
        ranked = rank_reviewers(judgements, benchmark.reviewers, similarity, known)
    else:
        ranked = rank_candidates(judgements, similarity, known)
    values = measure(judgements, ranked, task.metrics)
    first_seed = run.evaluation_seeds[0]
    return [
        score_row(run, task, counts, metric, value, seed=first_seed, mode="both") for metric, value in values.items()
    ]


def score_row(run: Run, task: Task, counts: Counts, metric: str, value: float, *, seed: int, mode: str) -> Row:
    """A row of the table scores, in the order of its columns."""
    return (
        *(run.model, run.training_seed, run.benchmark, task.name, metric, seed),
        *(task.format, value, counts.documents, counts.missing, mode),
    )
