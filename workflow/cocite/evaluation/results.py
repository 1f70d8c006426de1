"""Scoring tasks, and writing what came of it: scores, the outcomes behind them, or why there are none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, read_task, write_rows
from cocite.evaluation.failures import UnscorableError
from cocite.evaluation.scored import Row, Run, Scored
from cocite.ground.progress import report


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """Where scores, outcomes and failures are written."""

    scores: Path
    outcomes: Path
    failures: Path


def write_results(
    tasks: Sequence[Task], tables: Path, run: Run, files: ResultFiles, score: Callable[[Task, Benchmark], Scored]
) -> None:
    """Score tasks, each read by itself, and write what came of them; one that cannot be scored is a failure.

    A task that the benchmark does not hold is neither; it was counted when the benchmark was prepared.
    """
    scores, outcomes, failures = list[Row](), list[Row](), list[Row]()
    for task in tasks:
        benchmark = read_task(task, tables)
        if not benchmark.holds(task):
            report(f"{run.benchmark} does not hold the task {task.name}; there is nothing to score.")
            continue
        try:
            scored = score(task, benchmark)
        except UnscorableError as error:
            report(f"NOT SCORED: {run.model} (seed {run.training_seed}) on {task.name} of {run.benchmark}. {error}")
            failures.append((run.model, run.training_seed, run.benchmark, task.name, str(error)))
        else:
            scores += scored.scores
            outcomes += scored.outcomes
    write_rows(files.failures, "failures", failures)
    write_rows(files.outcomes, "outcomes", outcomes)
    write_rows(files.scores, "scores", scores)
