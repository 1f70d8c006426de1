"""What vectors score on the tasks of a benchmark: rows of the table scores, and of the table outcomes behind them.

A row for each evaluation seed and mode where they can change the value (classification, regression). Rankings have no
random choice and the two modes agree on them: one row, under the first evaluation seed, with the mode `both`. The
outcomes tell what each query or test document contributed, so that models can be compared on the same ones.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cocite.errors import InputError
from cocite.evaluation.benchmark import Benchmark, write_rows
from cocite.evaluation.ranking import (
    ADJUSTED,
    Similarity,
    Vectors,
    by_cosine,
    by_distance,
    measure,
    rank_candidates,
    rank_reviewers,
)
from cocite.evaluation.tasks import LARGEST_MISSING_SHARE, Task
from cocite.files import open_table, read_table, vectors_of
from cocite.progress import progress
from cocite.randomness import generator

RANDOM_DIMENSION = 64
VECTORS_AT_ONCE = 8192

Row = tuple[object, ...]
"""A row of the table scores or outcomes."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Who is scored, on what, and how."""

    model: str
    training_seed: int
    benchmark: str
    modes: Sequence[str]
    """compat, correct or both of them."""
    evaluation_seeds: Sequence[int]
    largest_missing: float = LARGEST_MISSING_SHARE
    """Share of a task's documents that may be without a vector."""
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Documents that a task asks for, and those among them without a vector."""

    documents: int
    missing: int


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What came of a task: rows of the table scores, and of the table outcomes."""

    scores: Sequence[Row]
    outcomes: Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class ScoreFiles:
    """Where scores and outcomes are written."""

    scores: Path
    outcomes: Path


def read_vectors(path: Path, documents: Collection[str]) -> Vectors:
    """Read the embeddings of some documents, those that have one.

    Raises `InputError` where a vector holds a number that is not finite.
    """
    wanted = pa.array(sorted(documents), pa.string())
    # Batch by batch: a filtered scan of the whole file holds more of it at once than it has.
    with open_table(path, "document_embeddings") as file:
        batches = [batch.filter(pc.is_in(batch["document"], wanted)) for batch in file.iter_batches(VECTORS_AT_ONCE)]
        table = pa.Table.from_batches(batches, file.schema_arrow)
    matrix = vectors_of(table)
    found = table.column("document").to_pylist()
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(broken):
        raise InputError(
            f"{path}: {len(broken)} vectors hold values that are not finite, first that of the document "
            f"{found[broken[0]]!r}; the model's training has probably diverged."
        )
    return Vectors({document: row for row, document in enumerate(found)}, matrix)


def random_vectors(path: Path, seed: int) -> Vectors:
    """A standard normal vector for each document of a benchmark: what chance scores."""
    documents = read_table(path, "documents", ["document"]).column("document").to_pylist()
    matrix = generator(seed, "random vectors").standard_normal((len(documents), RANDOM_DIMENSION), dtype=np.float32)
    return Vectors({document: row for row, document in enumerate(documents)}, matrix)


def score_vectors(benchmark: Benchmark, vectors: Vectors, run: Run, files: ScoreFiles) -> None:
    """Score the vectors on every task and write the tables scores and outcomes."""
    tasks = progress(benchmark.tasks(), of="Tasks", unit="task")
    write_scores((score_task(task, benchmark, vectors, run) for task in tasks), files)


def write_scores(scored: Iterable[Scored], files: ScoreFiles) -> None:
    """Write what came of some tasks."""
    of_tasks = list(scored)
    write_rows(files.outcomes, "outcomes", (row for task in of_tasks for row in task.outcomes))
    write_rows(files.scores, "scores", (row for task in of_tasks for row in task.scores))


def score_task(task: Task, benchmark: Benchmark, vectors: Vectors, run: Run) -> Scored:
    """Score the vectors on one task of a benchmark, which need not hold any other.

    Raises `InputError` where a larger share of the task's documents than the run allows has no vector.
    """
    documents = benchmark.documents_of(task)
    missing = sorted(documents - vectors.rows.keys())
    if len(missing) > len(documents) * run.largest_missing:
        raise InputError(
            f"The task {task.name} of {run.benchmark}: {len(missing)} of {len(documents)} documents have no vector "
            f"of {run.model}, among them {missing[0]!r}; embed the benchmark's documents again."
        )
    counts = Counts(documents=len(documents), missing=len(missing))
    if task.is_supervised:
        return _score_fits(benchmark, task, vectors, run, counts)
    similarity = by_cosine(vectors) if task.kind == "reviewers" else by_distance(vectors)
    return score_ranking(benchmark, task, similarity, vectors.rows, run, counts)


def _score_fits(benchmark: Benchmark, task: Task, vectors: Vectors, run: Run, counts: Counts) -> Scored:
    """Fit and score a supervised task once with each evaluation seed and mode."""
    # scikit-learn takes a second to import, which benchmarks of rankings alone need not wait for.
    from cocite.evaluation.machines import Protocol
    from cocite.evaluation.supervised import Examples, score_supervised

    asked = {split: benchmark.labels.get((task.name, split), {}) for split in ("train", "test")}
    train, test = (
        {document: names for document, names in labels.items() if document in vectors.rows} for labels in asked.values()
    )
    examples = Examples(
        train=vectors.as_stored(list(train)),
        train_labels=list(train.values()),
        test=vectors.as_stored(list(test)),
        test_labels=list(test.values()),
    )
    scores, outcomes = list[Row](), list[Row]()
    for seed in run.evaluation_seeds:
        for mode in run.modes:
            found = score_supervised(Protocol(task=task, seed=seed, mode=mode, threads=run.threads), examples)
            size = (len(test), len(asked["test"]) - len(test))
            scores.append(_score_row(run, task, counts, (found.metric, seed, mode), found.value, size))
            key = _key(run, task, (task.metrics[0], seed, mode))
            told = zip(test.items(), found.predicted, strict=True)
            outcomes += [(*key, document, None, 1.0, predicted, names) for (document, names), predicted in told]
    return Scored(scores=scores, outcomes=outcomes)


def score_ranking(
    benchmark: Benchmark, task: Task, similarity: Similarity, known: Collection[str], run: Run, counts: Counts
) -> Scored:
    """Score a ranking by any similarity, over the documents that are `known`.

    The value is the mean over the queries; of an adjusted metric, weighted by the inverse propensity of each query.
    What was clicked was seen, and what stood first was seen most often: a query whose click had a propensity of p
    stands for 1/p queries, and weights are normalised by their sum (Swaminathan & Joachims, 2015, "The Self-Normalized
    Estimator for Counterfactual Learning").
    """
    judgements = benchmark.judgements[task.name]
    if task.kind == "reviewers":
        ranked = rank_reviewers(judgements, benchmark.reviewers, similarity, known)
    else:
        ranked = rank_candidates(judgements, similarity, known)
    scores, outcomes = list[Row](), list[Row]()
    for metric, values in measure(judgements, ranked, task.metrics).items():
        weights = benchmark.weights[task.name] if metric.endswith(ADJUSTED) else dict.fromkeys(values, 1.0)
        value = float(np.average(list(values.values()), weights=[weights[query] for query in values]))
        varied = (metric, run.evaluation_seeds[0], "both")
        scores.append(_score_row(run, task, counts, varied, value, (len(ranked), len(judgements) - len(ranked))))
        key = _key(run, task, varied)
        outcomes += [(*key, query, of_query, weights[query], [], []) for query, of_query in values.items()]
    return Scored(scores=scores, outcomes=outcomes)


def _key(run: Run, task: Task, varied: tuple[str, int, str]) -> Row:
    """The first columns of a row, up to metric, evaluation seed and mode."""
    return (run.model, run.training_seed, run.benchmark, task.name, *varied)


def _score_row(
    run: Run, task: Task, counts: Counts, varied: tuple[str, int, str], value: float, size: tuple[int, int]
) -> Row:
    """A row of the table scores, in the order of its columns; `size` is what was scored and what was not."""
    return (*_key(run, task, varied), task.format, value, counts.documents, counts.missing, *size)
