"""`cocite evaluation …`: prepare benchmarks, score on them, and sum up the scores."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from cocite.evaluation.preparation.commands import Tables
from cocite.evaluation.preparation.commands import app as preparation
from cocite.ground.options import Output, Seed, Threads

if TYPE_CHECKING:
    from cocite.config.tasks import Task

app = typer.Typer(no_args_is_help=True)
app.add_typer(preparation)

Seeds = Annotated[list[int], typer.Argument(help="Evaluation seeds; supervised tasks are scored once with each.")]
Modes = Literal["compat", "correct"]
Mode = Annotated[
    Literal[Modes, "both"],
    typer.Option(help="compat fits as published; correct fits an intercept to standardised inputs; both does both."),
]
LargestMissing = Annotated[
    float, typer.Option(help="Share of a task's documents that may be without a vector; with more there is no score.")
]
Scores = Annotated[Path, typer.Option(help="Table scores, written.")]
Outcomes = Annotated[Path, typer.Option(help="Table outcomes, written.")]
Failures = Annotated[Path, typer.Option(help="Table failures, written: a row where the data make a score impossible.")]
TaskNames = Annotated[str, typer.Option(help="Names of the tasks that are scored, with commas between them.")]
Suites = Annotated[
    str,
    typer.Option(help='JSON object: the names of the tasks of each suite, as {"small": ["fos"]}.'),
]
Runs = Annotated[
    str, typer.Option(help="Models and baselines with a seed, such as cocite-1, with commas between them.")
]


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
    from cocite.evaluation.scored import Run
    from cocite.evaluation.scoring import ResultFiles, score_model, write_results

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
    from cocite.evaluation.scored import Run
    from cocite.evaluation.scoring import ResultFiles, score_bm25, score_random, write_results

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
    from cocite.evaluation.averages import write_averages

    asked = _suites(suites)
    write_averages(_files(scores, asked, runs), [task for tasks in asked.values() for task in tasks], output)


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
    from cocite.evaluation.comparisons import compare_models

    compare_models(_files(outcomes, _suites(suites), runs), resamples=resamples, seed=seed, output=output)


def _tasks(tasks: str) -> list["Task"]:
    from cocite.config.benchmarks import declared, names

    return [declared(name) for name in names(tasks)]


def _modes(mode: str) -> tuple[str, ...]:
    return get_args(Modes) if mode == "both" else (mode,)


def _suites(suites: str) -> dict[str, list["Task"]]:
    """The tasks of each suite."""
    from cocite.config.benchmarks import declared

    return {suite: [declared(name) for name in tasks] for suite, tasks in json.loads(suites).items()}


def _files(folder: Path, suites: Mapping[str, Sequence["Task"]], runs: str) -> list[Path]:
    """The table of each run on each suite that it can be scored on."""
    from cocite.config.benchmarks import names
    from cocite.config.runs import scored_runs

    return [folder / suite / f"{run}.parquet" for suite, run in scored_runs(suites, names(runs))]
