"""`cocite evaluation …`: prepare benchmarks, score on them, and sum up the scores."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from cocite.evaluation.options import (
    Failures,
    LargestMissing,
    Mode,
    Modes,
    Outcomes,
    Runs,
    Scores,
    Seeds,
    Suites,
    Tables,
    TaskNames,
)
from cocite.evaluation.preparation.commands import app as preparation
from cocite.ground.options import Output, Seed, Threads

if TYPE_CHECKING:
    from cocite.config.tasks import Task

app = typer.Typer(no_args_is_help=True)
app.add_typer(preparation)


@app.command("score")
def score_command(
    seeds: Seeds,
    *,
    tables: Tables,
    tasks: TaskNames,
    model: Annotated[str, typer.Option(help="Name of the model.")],
    training_seed: Annotated[int, typer.Option(help="Seed that the model was trained with; 0 for none.")],
    mode: Mode,
    largest_missing: LargestMissing,
    threads: Threads,
    embeddings: Annotated[Path, typer.Option(help="Table document_embeddings of the model.")],
    scores: Scores,
    outcomes: Outcomes,
    failures: Failures,
) -> None:
    """Score a model's vectors on tasks of a benchmark."""
    from cocite.evaluation.competitors import score_model
    from cocite.evaluation.results import ResultFiles, write_results
    from cocite.evaluation.scored import Run

    run = Run(
        model=model,
        training_seed=training_seed,
        benchmark=tables.name,
        modes=_modes(mode),
        evaluation_seeds=seeds,
        largest_missing=largest_missing,
        threads=threads,
    )
    files = ResultFiles(scores=scores, outcomes=outcomes, failures=failures)
    write_results(_tasks(tasks), tables, run, files, lambda task, asks: score_model(task, asks, embeddings, run))


@app.command("score-baseline")
def score_baseline_command(
    baseline: Annotated[
        Literal["random", "bm25"],
        typer.Argument(help="random: random vectors, what chance reaches; bm25: the words of the texts, for rankings."),
    ],
    seeds: Seeds,
    *,
    tables: Tables,
    tasks: TaskNames,
    mode: Mode,
    seed: Seed,
    threads: Threads,
    scores: Scores,
    outcomes: Outcomes,
    failures: Failures,
) -> None:
    """Score a baseline, which needs no training, on tasks of a benchmark. BM25 depends on neither mode nor seed."""
    from cocite.evaluation.competitors import score_bm25, score_random
    from cocite.evaluation.results import ResultFiles, write_results
    from cocite.evaluation.scored import Run

    run = Run(
        model=baseline,
        training_seed=0,
        benchmark=tables.name,
        modes=_modes(mode) if baseline == "random" else (),
        evaluation_seeds=seeds,
        threads=threads,
    )
    files = ResultFiles(scores=scores, outcomes=outcomes, failures=failures)
    if baseline == "random":
        write_results(_tasks(tasks), tables, run, files, lambda task, asks: score_random(task, asks, tables, seed, run))
    else:
        ranked = [task for task in _tasks(tasks) if task.is_ranking]
        write_results(ranked, tables, run, files, lambda task, asks: score_bm25(task, asks, tables, run))


@app.command()
def average(
    scores: Annotated[Path, typer.Argument(help="Folder of the scores of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    runs: Runs,
    output: Output,
) -> None:
    """Average the scores of each model over formats, groups, metrics and all tasks, and over its seeds."""
    from cocite.config.benchmarks import declared, names
    from cocite.config.runs import scored_runs
    from cocite.evaluation.summaries.aggregating import write_averages

    asked = {suite: [declared(name) for name in tasks] for suite, tasks in json.loads(suites).items()}
    paths = [scores / suite / f"{run}.parquet" for suite, run in scored_runs(asked, names(runs))]
    write_averages(paths, [task for tasks in asked.values() for task in tasks], output)


@app.command()
def compare(
    outcomes: Annotated[Path, typer.Argument(help="Folder of the outcomes of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    runs: Runs,
    resamples: Annotated[int, typer.Option(help="Bootstrap samples of the queries or documents of a task.")],
    seed: Seed,
    output: Output,
) -> None:
    """Test whether models differ: a paired bootstrap between any two of them on each task."""
    from cocite.config.benchmarks import declared, names
    from cocite.config.runs import scored_runs
    from cocite.evaluation.summaries.comparing import compare_models

    asked = {suite: [declared(name) for name in tasks] for suite, tasks in json.loads(suites).items()}
    paths = [outcomes / suite / f"{run}.parquet" for suite, run in scored_runs(asked, names(runs))]
    compare_models(paths, resamples=resamples, seed=seed, output=output)


def _tasks(tasks: str) -> list["Task"]:
    from cocite.config.benchmarks import declared, names

    return [declared(name) for name in names(tasks)]


def _modes(mode: str) -> tuple[str, ...]:
    return get_args(Modes) if mode == "both" else (mode,)
