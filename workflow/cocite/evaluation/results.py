"""Writing what came of scoring a task: scores, the outcomes behind them, or why there are none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cocite.evaluation.benchmark import Benchmark, write_rows
from cocite.evaluation.failures import UnscorableError
from cocite.evaluation.scored import Run, Scored
from cocite.progress import report
from cocite.tasks import Task


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """Where scores, outcomes and failures are written."""

    scores: Path
    outcomes: Path
    failures: Path


def write_results(task: Task, benchmark: Benchmark, run: Run, files: ResultFiles, score: Callable[[], Scored]) -> None:
    """Score a task and write what came of it: of one that cannot be scored a row of the table failures.

    A task that the benchmark does not hold has neither; it was counted when the benchmark was prepared.
    """
    scored, failures = Scored(scores=(), outcomes=()), list[tuple[object, ...]]()
    if benchmark.holds(task):
        try:
            scored = score()
        except UnscorableError as error:
            report(f"NOT SCORED: {run.model} (seed {run.training_seed}) on {task.name} of {run.benchmark}. {error}")
            failures.append((run.model, run.training_seed, run.benchmark, task.name, str(error)))
    else:
        report(f"{run.benchmark} does not hold the task {task.name}; there is nothing to score.")
    write_rows(files.failures, "failures", failures)
    write_rows(files.outcomes, "outcomes", scored.outcomes)
    write_rows(files.scores, "scores", scored.scores)
