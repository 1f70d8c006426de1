"""`cocite evaluation …`: prepare benchmarks, score on them, and sum up the scores."""

from pathlib import Path
from typing import Annotated, get_args

import typer

from cocite.evaluation.options import (
    Collections,
    Documents,
    Failures,
    Judgements,
    Labels,
    LargestMissing,
    Mode,
    Modes,
    Name,
    Outcomes,
    Reviewers,
    Runs,
    Scores,
    Seeds,
    Signatures,
    TaskName,
    TaskNames,
)
from cocite.evaluation.preparation.commands import app as preparation
from cocite.options import Output, Seed, Threads

app = typer.Typer(no_args_is_help=True)
app.add_typer(preparation)


@app.command("score")
def score_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    task: TaskName,
    model: Annotated[str, typer.Option(help="Name of the model.")],
    training_seed: Annotated[int, typer.Option(help="Seed that the model was trained with; 0 for none.")],
    mode: Mode,
    largest_missing: LargestMissing,
    threads: Threads,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    collections: Collections,
    signatures: Signatures,
    embeddings: Annotated[Path, typer.Option(help="Table document_embeddings of the model.")],
    scores: Scores,
    outcomes: Outcomes,
    failures: Failures,
) -> None:
    """Score a model's vectors on a task of a benchmark."""
    from cocite.benchmarks import declared
    from cocite.evaluation.benchmark import BenchmarkFiles, read_task
    from cocite.evaluation.competitors import score_model
    from cocite.evaluation.results import ResultFiles, write_results
    from cocite.evaluation.scored import Run

    asked = declared(task)
    tables = BenchmarkFiles(
        judgements=judgements, labels=labels, reviewers=reviewers, collections=collections, signatures=signatures
    )
    asks = read_task(asked, tables)
    run = Run(
        model=model,
        training_seed=training_seed,
        benchmark=benchmark,
        modes=_modes(mode),
        evaluation_seeds=seeds,
        largest_missing=largest_missing,
        threads=threads,
    )
    files = ResultFiles(scores=scores, outcomes=outcomes, failures=failures)
    write_results(asked, asks, run, files, lambda: score_model(asked, asks, embeddings, run))


@app.command("score-random")
def score_random_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    task: TaskName,
    mode: Mode,
    seed: Seed,
    threads: Threads,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    collections: Collections,
    signatures: Signatures,
    scores: Scores,
    outcomes: Outcomes,
    failures: Failures,
) -> None:
    """Score random vectors on a task of a benchmark: what chance reaches."""
    from cocite.benchmarks import declared
    from cocite.evaluation.benchmark import BenchmarkFiles, read_task
    from cocite.evaluation.competitors import score_random
    from cocite.evaluation.results import ResultFiles, write_results
    from cocite.evaluation.scored import Run

    asked = declared(task)
    tables = BenchmarkFiles(
        judgements=judgements, labels=labels, reviewers=reviewers, collections=collections, signatures=signatures
    )
    asks = read_task(asked, tables)
    run = Run(
        model="random",
        training_seed=0,
        benchmark=benchmark,
        modes=_modes(mode),
        evaluation_seeds=seeds,
        threads=threads,
    )
    files = ResultFiles(scores=scores, outcomes=outcomes, failures=failures)
    write_results(asked, asks, run, files, lambda: score_random(asked, asks, documents, seed, run))


@app.command("score-bm25")
def score_bm25_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    task: TaskName,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    collections: Collections,
    signatures: Signatures,
    scores: Scores,
    outcomes: Outcomes,
    failures: Failures,
) -> None:
    """Score BM25 on a ranking task of a benchmark; supervised tasks have no words to match."""
    from cocite.benchmarks import declared
    from cocite.evaluation.benchmark import BenchmarkFiles, read_task
    from cocite.evaluation.competitors import score_bm25
    from cocite.evaluation.results import ResultFiles, write_results
    from cocite.evaluation.scored import Run

    asked = declared(task)
    tables = BenchmarkFiles(
        judgements=judgements, labels=labels, reviewers=reviewers, collections=collections, signatures=signatures
    )
    asks = read_task(asked, tables)
    run = Run(model="bm25", training_seed=0, benchmark=benchmark, modes=(), evaluation_seeds=seeds)
    files = ResultFiles(scores=scores, outcomes=outcomes, failures=failures)
    write_results(asked, asks, run, files, lambda: score_bm25(asked, asks, documents, run))


@app.command()
def average(
    scores: Annotated[Path, typer.Argument(help="Folder of the tables scores of one benchmark: <task>/<run>.parquet.")],
    *,
    tasks: TaskNames,
    runs: Runs,
    output: Output,
) -> None:
    """Average the scores of each model over formats, groups, metrics and all tasks, and over its seeds."""
    from cocite.benchmarks import declared, names
    from cocite.evaluation.summaries.aggregating import write_averages
    from cocite.runs import scored_runs

    asked = [declared(name) for name in names(tasks)]
    paths = [scores / task / f"{run}.parquet" for task, run in scored_runs(asked, names(runs))]
    write_averages(paths, asked, output)


@app.command()
def compare(
    outcomes: Annotated[
        Path, typer.Argument(help="Folder of the tables outcomes of one benchmark: <task>/<run>.parquet.")
    ],
    *,
    tasks: TaskNames,
    runs: Runs,
    resamples: Annotated[int, typer.Option(help="Bootstrap samples of the queries or documents of a task.")],
    seed: Seed,
    output: Output,
) -> None:
    """Test whether models differ: a paired bootstrap between any two of them on each task."""
    from cocite.benchmarks import declared, names
    from cocite.evaluation.summaries.comparing import compare_models
    from cocite.runs import scored_runs

    pairs = scored_runs([declared(name) for name in names(tasks)], names(runs))
    paths = [outcomes / task / f"{run}.parquet" for task, run in pairs]
    compare_models(paths, resamples=resamples, seed=seed, output=output)


def _modes(mode: str) -> tuple[str, ...]:
    return get_args(Modes) if mode == "both" else (mode,)
