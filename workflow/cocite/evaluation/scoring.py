"""Scores of the vectors of a model or a baseline, of BM25, of citations only, and of an index on a benchmark's tasks.

The table scores has a row for each evaluation seed and mode if they can change the value (classification, regression).
Other tasks have one row, under the first evaluation seed, with the mode `both`. The table outcomes lists the
contribution of each query or test document, so that models can be compared on the same ones.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import typer
from numpy.typing import NDArray

from cocite.config.benchmarks import declared, names
from cocite.config.settings import parse_settings
from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.options import Threads
from cocite.core.progress import report
from cocite.core.tables.files import read_table
from cocite.core.written_ids import look_up
from cocite.evaluation.benchmark import Benchmark, Metrics, ScoredTasks, Tables, read_task, with_metrics, write_rows
from cocite.evaluation.ranking import by_cosine, by_distance, score_collection, score_ranking, score_search
from cocite.evaluation.scored import Row, Run, Scored, UnscorableError, Vectors, count_missing, joined, read_blocks

Score = Callable[[Task, Benchmark], Scored]
Modes = Literal["compat", "correct"]


def score_run(
    seeds: Annotated[list[int], typer.Argument(help="Evaluation seeds; supervised tasks are scored once with each.")],
    *,
    tables: Tables,
    tasks: ScoredTasks,
    model: Annotated[str, typer.Option(help="Name of the model or baseline.")],
    training_seed: Annotated[int, typer.Option(help="Seed that the model was trained with; 0 for none.")],
    mode: Annotated[
        Literal[Modes, "sklearn", "both"],
        typer.Option(
            help="compat fits as published; correct fits an intercept to standardised inputs; both does both; sklearn "
            "fits as SciRepEval's code does without lightning."
        ),
    ],
    largest_missing: Annotated[
        float,
        typer.Option(help="Share of a task's documents that may be without a vector; with more there is no score."),
    ],
    threads: Threads,
    embeddings: Annotated[
        list[Path] | None,
        typer.Option(
            help="Table of its document embeddings; in screening, several are joined, and none is by words only."
        ),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="For a ranker by words, k1, b and method of BM25 as JSON; it scores only rankings, and "
            "depends on no seed or mode. In screening, words are weighted by TF-IDF, and {} is enough."
        ),
    ] = None,
    by_citations: Annotated[
        bool, typer.Option("--by-citations", help="Rank papers by how often training sees them cited, and score that.")
    ] = False,
    answers: Annotated[Path | None, typer.Option(help="Table answers of an index, which ranks candidates.")] = None,
    scores: Annotated[Path, typer.Option(help="Table scores, written.")],
    outcomes: Annotated[Path, typer.Option(help="Table outcomes, written.")],
    failures: Annotated[
        Path, typer.Option(help="Table failures to write: a row for each score that the data make impossible.")
    ],
    metrics: Metrics = "",
) -> None:
    """Score the vectors of a model or baseline, or the words of the texts, on tasks of a benchmark."""
    run = Run(
        model=model,
        training_seed=training_seed,
        benchmark=tables.name,
        modes=get_args(Modes) if mode == "both" else (mode,),
        evaluation_seeds=seeds,
        largest_missing=largest_missing,
        threads=threads,
    )
    asked = with_metrics(map(declared, names(tasks)), metrics)
    is_screening = any(task.kind == "screening" for task in asked)
    if [bool(embeddings), words is not None, by_citations, answers is not None].count(True) != 1 and not is_screening:
        raise InputError("Exactly one of --embeddings, --words, --by-citations and --answers must be given.")
    if is_screening:
        score = screened(embeddings or [], tables / "documents.parquet" if words is not None else None, run)
    elif by_citations:
        score = by_popularity(tables / "popularity.parquet", run)
    elif answers:
        score = by_index(answers, run)
    else:
        score = embedded(embeddings[0], run) if embeddings else by_words(tables / "documents.parquet", words or "", run)
    files = {"scores": scores, "outcomes": outcomes, "failures": failures}
    # What has no embeddings ranks, and passes over the other tasks.
    write_results([task for task in asked if embeddings or task.is_by_words], tables, run, files, score)


def write_results(tasks: Sequence[Task], tables: Path, run: Run, files: Mapping[str, Path], score: Score) -> None:
    """Score tasks, each read by itself, and write scores, outcomes and failures; what cannot be scored is a failure."""
    rows: dict[str, list[Row]] = {"failures": [], "outcomes": [], "scores": []}
    for task in tasks:
        benchmark = read_task(task, tables)
        if task.name not in benchmark.tasks:
            report(f"{run.benchmark} does not contain the task {task.name}; there is nothing to score.")
            continue
        try:
            scored = score(task, benchmark)
        except UnscorableError as error:
            report(f"NOT SCORED: {run.model} (seed {run.training_seed}) on {task.name} of {run.benchmark}. {error}")
            rows["failures"].append((run.model, run.training_seed, run.benchmark, task.name, str(error)))
        else:
            rows["scores"] += scored.scores
            rows["outcomes"] += scored.outcomes
    for table, of_table in rows.items():
        write_rows(files[table], table, of_table)


def embedded(embeddings: Path, run: Run) -> Score:
    """How a task is scored by the embeddings of a model. Of a collection, a block is in memory at a time."""

    def score(task: Task, asked: Benchmark) -> Scored:
        blocks = partial(read_blocks, embeddings, task, asked.queries_alone(task))
        if task.kind == "retrieval":
            queries = joined(blocks(asked.judgements[task.name]))
            return score_search(task, asked, queries, blocks(asked.collections[task.name]), run)
        return score_task(task, asked, joined(blocks(asked.documents_of(task))), run)

    return score


def screened(embeddings: Sequence[Path], documents: Path | None, run: Run) -> Score:
    """How papers of reviews are screened by their vectors in some tables, and by their words if the texts are given."""
    from cocite.evaluation.bm25 import read_document_texts
    from cocite.evaluation.screening import score_screening

    def score(task: Task, asked: Benchmark) -> Scored:
        papers = asked.documents_of(task)
        vectors = [joined(read_blocks(path, task, (), papers)) for path in embeddings]
        scored = count_missing(task, asked, papers.intersection(*(each.rows for each in vectors)), run)
        score_screening(scored, asked, vectors, read_document_texts(documents, papers) if documents else None)
        return scored

    return score


def by_words(documents: Path, formula: str, run: Run) -> Score:
    """How a task is scored by the words of its documents' texts, with the formula of BM25 as JSON."""
    from cocite.evaluation.bm25 import Formula, read_document_texts, score_words

    asked_for = parse_settings(Formula, formula, "--words")

    def score(task: Task, asked: Benchmark) -> Scored:
        return score_words(task, asked, read_document_texts(documents, asked.documents_of(task)), run, asked_for)

    return score


def by_popularity(popularity: Path, run: Run) -> Score:
    """How a task about papers of the corpus is scored by how often training sees each paper cited."""
    from cocite.evaluation.corpus_scoring import Popularity

    known = Popularity.read(popularity)

    def citations(documents: Sequence[str]) -> NDArray[np.floating]:
        # A text of a paper is named by a prefix and the id: title:7.
        papers = np.array([int(name.rpartition(":")[2]) for name in documents], np.int64)
        return known.citations_of(papers).astype(np.float64)

    def score(task: Task, asked: Benchmark) -> Scored:
        scored = count_missing(task, asked, asked.documents_of(task), run)
        if not known.citations.any():
            raise UnscorableError("No paper is cited in training, so that citations rank nothing.")
        if task.kind == "retrieval":
            collection = sorted(asked.collections[task.name])
            score_collection(scored, asked, collection, [citations(collection)] * len(asked.judgements[task.name]))
        else:
            score_ranking(scored, asked, lambda _, documents: citations(documents), asked.documents_of(task))
        return scored

    return score


def by_index(answers: Path, run: Run) -> Score:
    """How the candidates of held-out papers are ranked by the scores that an index gives them."""
    table = read_table(answers, "answers")
    queries, papers, scores = (table[name].to_numpy() for name in ("query", "paper", "score"))

    def similarity(query: str, documents: Sequence[str]) -> NDArray[np.floating]:
        start, end = np.searchsorted(queries, [int(query), int(query) + 1])
        places, is_there = look_up(papers[start:end], np.array(documents, np.int64))
        if not is_there.all():
            raise InputError(f"{answers}: has no score of a candidate of {query}; make it again.")
        return scores[start:end][places]

    def score(task: Task, asked: Benchmark) -> Scored:
        documents = asked.documents_of(task)
        scored = count_missing(task, asked, documents, run)
        score_ranking(scored, asked, similarity, documents)
        return scored

    return score


def score_task(task: Task, benchmark: Benchmark, vectors: Vectors, run: Run) -> Scored:
    """Score vectors on a task. Raises `UnscorableError` for too many without a vector, or too little to fit or rank."""
    scored = count_missing(task, benchmark, vectors.rows.keys(), run)
    if task.is_supervised or task.kind == "disambiguation":
        # scikit-learn takes a second to import, which benchmarks with only rankings do not need.
        from cocite.evaluation.supervised import score_disambiguation, score_fits

        (score_fits if task.is_supervised else score_disambiguation)(scored, benchmark, vectors)
    else:
        compares_angles = task.kind == "reviewers" or task.similarity == "cosine"
        similarity = by_cosine(vectors) if compares_angles else by_distance(vectors)
        score_ranking(scored, benchmark, similarity, vectors.rows)
    return scored
