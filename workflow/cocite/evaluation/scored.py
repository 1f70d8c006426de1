"""Who is scored on what, and what comes of it: rows of the tables scores and outcomes, or why there are none.

What the data make impossible is a result: the task has no score, and the table failures says why. What the machine
makes impossible (memory, disk, a broken file) is not a result: it stops the job, which is run again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cocite.config.tasks import LARGEST_MISSING_SHARE, Task
from cocite.evaluation.benchmark import Benchmark
from cocite.ground.errors import InputError

Row = tuple[object, ...]
"""A row of the table scores or outcomes."""


class UnscorableError(InputError):
    """A task that cannot be scored on the data as they are, in one sentence that says why."""


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
    """How many documents a task asks for, and how many of them have no vector."""

    documents: int
    missing: int


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What came of a task: rows of the table scores, and of the table outcomes."""

    scores: Sequence[Row]
    outcomes: Sequence[Row]


def check_missing(task: Task, benchmark: Benchmark, known: Collection[str], run: Run) -> Counts:
    """Count the documents of a task, and those that have no vector because they are not `known`.

    Raises `UnscorableError` where these are a larger share than the run allows.
    """
    documents = benchmark.documents_of(task)
    missing = sorted(documents.difference(known))
    if len(missing) > len(documents) * run.largest_missing:
        raise UnscorableError(
            f"The task {task.name} of {run.benchmark}: {len(missing)} of {len(documents)} documents have no vector "
            f"of {run.model}, among them {missing[0]!r}; embed the benchmark's documents again."
        )
    return Counts(documents=len(documents), missing=len(missing))


def outcome_key(run: Run, task: Task, varied: tuple[str, int, str]) -> Row:
    """The first columns of a row; the last of them, `varied`, are metric, evaluation seed and mode."""
    return (run.model, run.training_seed, run.benchmark, task.name, *varied)


def score_row(
    run: Run, task: Task, counts: Counts, varied: tuple[str, int, str], value: float, size: tuple[int, int]
) -> Row:
    """A row of the table scores, in the order of its columns; `size` is how many were scored and how many were not."""
    return (*outcome_key(run, task, varied), task.format, value, counts.documents, counts.missing, *size)
