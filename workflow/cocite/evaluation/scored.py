"""Who is scored on what, and the rows that come of it: of the table scores, and of the table outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass

from cocite.config.tasks import LARGEST_MISSING_SHARE, Task

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


def outcome_key(run: Run, task: Task, varied: tuple[str, int, str]) -> Row:
    """The first columns of a row, up to metric, evaluation seed and mode."""
    return (run.model, run.training_seed, run.benchmark, task.name, *varied)


def score_row(
    run: Run, task: Task, counts: Counts, varied: tuple[str, int, str], value: float, size: tuple[int, int]
) -> Row:
    """A row of the table scores, in the order of its columns; `size` is what was scored and what was not."""
    return (*outcome_key(run, task, varied), task.format, value, counts.documents, counts.missing, *size)
