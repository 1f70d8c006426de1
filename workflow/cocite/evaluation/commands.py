"""`cocite evaluation …`: prepare benchmarks and score on them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.options import Citations, MemoryMb, Omissions, Output, Papers, Queries, Seed, Settings, Threads

app = typer.Typer(no_args_is_help=True)

Seeds = Annotated[list[int], typer.Argument(help="Evaluation seeds; supervised tasks are scored once with each.")]
Name = Annotated[str, typer.Option(help="Name of the benchmark.")]
Mode = Annotated[
    Literal["compat", "correct"],
    typer.Option(help="compat fits as published; correct fits an intercept to standardised inputs."),
]
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
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    embeddings: Annotated[Path, typer.Option(help="Table document_embeddings of the model.")],
    output: Output,
) -> None:
    """Score a model's vectors on every task of a benchmark."""
    from cocite.evaluation.benchmark import BenchmarkFiles, read_benchmark
    from cocite.evaluation.scoring import Run, read_vectors, score_vectors

    tasks = read_benchmark(BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers))
    run = Run(model=model, training_seed=training_seed, benchmark=benchmark, mode=mode, evaluation_seeds=seeds)
    score_vectors(tasks, read_vectors(embeddings), run, output)


@app.command("score-random")
def score_random_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    mode: Mode,
    seed: Seed,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    output: Output,
) -> None:
    """Score random vectors on every task of a benchmark: what chance reaches."""
    from cocite.evaluation.benchmark import BenchmarkFiles, read_benchmark
    from cocite.evaluation.scoring import Run, random_vectors, score_vectors

    tasks = read_benchmark(BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers))
    run = Run(model="random", training_seed=0, benchmark=benchmark, mode=mode, evaluation_seeds=seeds)
    score_vectors(tasks, random_vectors(documents, seed), run, output)


@app.command("score-bm25")
def score_bm25_command(
    seeds: Seeds,
    *,
    benchmark: Name,
    documents: Documents,
    judgements: Judgements,
    labels: Labels,
    reviewers: Reviewers,
    output: Output,
) -> None:
    """Score BM25 on the ranking tasks of a benchmark."""
    from cocite.evaluation.benchmark import BenchmarkFiles, read_benchmark
    from cocite.evaluation.bm25 import read_document_texts, score_bm25
    from cocite.evaluation.scoring import Run

    tasks = read_benchmark(BenchmarkFiles(judgements=judgements, labels=labels, reviewers=reviewers))
    run = Run(model="bm25", training_seed=0, benchmark=benchmark, mode="both", evaluation_seeds=seeds)
    score_bm25(tasks, read_document_texts(documents), run, output)
