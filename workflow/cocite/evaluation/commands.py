"""`cocite evaluation …`: prepare benchmarks and score on them."""

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from cocite.options import Citations, MemoryMb, Omissions, Output, Papers, Queries, Seed, Settings, Threads

app = typer.Typer(no_args_is_help=True)

Seeds = Annotated[list[int], typer.Argument(help="Evaluation seeds; supervised tasks are scored once with each.")]
Name = Annotated[str, typer.Option(help="Name of the benchmark.")]
Modes = Literal["compat", "correct"]
Mode = Annotated[
    Literal[Modes, "both"],
    typer.Option(help="compat fits as published; correct fits an intercept to standardised inputs; both does both."),
]
LargestMissing = Annotated[
    float, typer.Option(help="Share of a task's documents that may be without a vector; more are an error.")
]
Scores = Annotated[Path, typer.Option(help="Table scores, written.")]
Outcomes = Annotated[Path, typer.Option(help="Table outcomes, written.")]
Documents = Annotated[Path, typer.Option(help="Table documents.")]
Judgements = Annotated[Path, typer.Option(help="Table judgements.")]
Labels = Annotated[Path, typer.Option(help="Table labels.")]
Reviewers = Annotated[Path, typer.Option(help="Table reviewers.")]


@app.command("prepare-holdout")
def prepare_holdout_command(
    *,
    papers: Papers,
    citations: Citations,
    queries: Queries,
    settings: Settings,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    omissions: Omissions,
) -> None:
    """Make the hold-out benchmark: what held-out papers cite and are cited with, among random papers."""
    from cocite.evaluation.benchmark import BenchmarkFiles
    from cocite.evaluation.holdout import Budget, HoldoutSettings, Release, prepare_holdout
    from cocite.settings import parse_settings

    prepare_holdout(
        Release(papers=papers, citations=citations, queries=queries),
        parse_settings(HoldoutSettings, settings),
        seed,
        Budget(memory_mb=memory_mb, threads=threads, spill_to=documents.parent),
        documents=documents,
        files=BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers),
        omissions=omissions,
    )


@app.command("prepare-scirepeval")
def prepare_scirepeval_command(
    folder: Annotated[Path, typer.Argument(help="Folder in SciRepEval's layout: metadata/ and test/.")],
    *,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    omissions: Omissions,
) -> None:
    """Read a benchmark in SciRepEval's layout."""
    from cocite.evaluation.benchmark import BenchmarkFiles
    from cocite.evaluation.scirepeval import prepare_scirepeval

    files = BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers)
    prepare_scirepeval(folder, documents=documents, files=files, omissions=omissions)


@app.command("score")
def score_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    model: Annotated[str, typer.Option(help="Name of the model.")],
    training_seed: Annotated[int, typer.Option(help="Seed that the model was trained with; 0 for none.")],
    mode: Mode,
    largest_missing: LargestMissing,
    threads: Threads,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    embeddings: Annotated[Path, typer.Option(help="Table document_embeddings of the model.")],
    scores: Scores,
    outcomes: Outcomes,
) -> None:
    """Score a model's vectors on every task of a benchmark."""
    from cocite.evaluation.benchmark import BenchmarkFiles, read_benchmark
    from cocite.evaluation.scoring import Run, ScoreFiles, read_vectors, score_vectors

    tasks = read_benchmark(BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers))
    run = Run(
        model=model,
        training_seed=training_seed,
        benchmark=benchmark,
        modes=_modes(mode),
        evaluation_seeds=seeds,
        largest_missing=largest_missing,
        threads=threads,
    )
    score_vectors(tasks, read_vectors(embeddings, tasks.documents()), run, ScoreFiles(scores=scores, outcomes=outcomes))


@app.command("score-random")
def score_random_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    mode: Mode,
    seed: Seed,
    threads: Threads,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    scores: Scores,
    outcomes: Outcomes,
) -> None:
    """Score random vectors on every task of a benchmark: what chance reaches."""
    from cocite.evaluation.benchmark import BenchmarkFiles, read_benchmark
    from cocite.evaluation.scoring import Run, ScoreFiles, random_vectors, score_vectors

    tasks = read_benchmark(BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers))
    run = Run(
        model="random",
        training_seed=0,
        benchmark=benchmark,
        modes=_modes(mode),
        evaluation_seeds=seeds,
        threads=threads,
    )
    score_vectors(tasks, random_vectors(documents, seed), run, ScoreFiles(scores=scores, outcomes=outcomes))


@app.command("score-bm25")
def score_bm25_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    scores: Scores,
    outcomes: Outcomes,
) -> None:
    """Score BM25 on the ranking tasks of a benchmark."""
    from cocite.evaluation.benchmark import BenchmarkFiles, read_benchmark
    from cocite.evaluation.bm25 import read_document_texts, score_bm25
    from cocite.evaluation.scoring import Run, ScoreFiles

    tasks = read_benchmark(BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers))
    run = Run(model="bm25", training_seed=0, benchmark=benchmark, modes=(), evaluation_seeds=seeds)
    score_bm25(tasks, read_document_texts(documents), run, ScoreFiles(scores=scores, outcomes=outcomes))


@app.command()
def average(
    scores: Annotated[list[Path], typer.Argument(help="Tables scores of all models on one benchmark.")],
    *,
    output: Output,
) -> None:
    """Average the scores of each model over formats, groups, metrics and all tasks, and over its seeds."""
    from cocite.evaluation.aggregating import write_averages

    write_averages(scores, output)


@app.command()
def compare(
    outcomes: Annotated[list[Path], typer.Argument(help="Tables outcomes of all models on one benchmark.")],
    *,
    resamples: Annotated[int, typer.Option(help="Bootstrap samples of the queries or documents of a task.")],
    seed: Seed,
    output: Output,
) -> None:
    """Test whether models differ: a paired bootstrap between any two of them on each task."""
    from cocite.evaluation.comparing import compare_models

    compare_models(outcomes, resamples=resamples, seed=seed, output=output)


def _modes(mode: str) -> tuple[str, ...]:
    return get_args(Modes) if mode == "both" else (mode,)
