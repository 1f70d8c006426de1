"""What a model's vectors, random vectors and BM25 score on the tasks of a benchmark.

The table scores has a row for each evaluation seed and mode where they can change the value (classification,
regression). Rankings and the disambiguation of authors have no random choice and no modes: they have one row, under the
first evaluation seed, with the mode `both`. The table outcomes says what each query or test document contributed, so
that models can be compared on the same ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, read_task, table_in, write_rows
from cocite.evaluation.ranking import by_cosine, by_distance, score_ranking
from cocite.evaluation.scored import Row, Run, Scored, UnscorableError, check_missing
from cocite.evaluation.vectors import Vectors, blocks_of, random_vectors, read_vectors, stored_blocks
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


def score_model(task: Task, benchmark: Benchmark, embeddings: Path, run: Run) -> Scored:
    """Score the vectors of a model. Of a collection, no more than a block is in memory at a time."""
    if task.kind == "retrieval":
        from cocite.evaluation.retrieval import score_search

        queries = read_vectors(embeddings, benchmark.judgements[task.name])
        return score_search(task, benchmark, queries, stored_blocks(embeddings, benchmark.collections[task.name]), run)
    return score_task(task, benchmark, read_vectors(embeddings, benchmark.documents_of(task)), run)


def score_random(task: Task, benchmark: Benchmark, tables: Path, seed: int, run: Run) -> Scored:
    """Score random vectors: what chance reaches."""
    vectors = random_vectors(table_in(tables, "documents"), seed)
    if task.kind == "retrieval":
        from cocite.evaluation.retrieval import score_search

        return score_search(task, benchmark, vectors, blocks_of(vectors, benchmark.collections[task.name]), run)
    return score_task(task, benchmark, vectors, run)


def score_bm25(task: Task, benchmark: Benchmark, tables: Path, run: Run) -> Scored:
    """Score BM25 on a ranking task; supervised tasks have no words to match."""
    from cocite.evaluation.bm25 import read_document_texts, score_words

    texts = read_document_texts(table_in(tables, "documents"), benchmark.documents_of(task))
    return score_words(task, benchmark, texts, run)


def score_task(task: Task, benchmark: Benchmark, vectors: Vectors, run: Run) -> Scored:
    """Score vectors on one task of a benchmark, which need not hold any other.

    Raises `UnscorableError` where a larger share of the task's documents than the run allows has no vector, and where
    there is too little to fit or to rank.
    """
    counts = check_missing(task, benchmark, vectors.rows.keys(), run)
    # scikit-learn takes a second to import, which benchmarks of rankings alone need not wait for.
    if task.is_supervised:
        from cocite.evaluation.supervised import score_fits

        return score_fits(task, benchmark, vectors, run, counts)
    if task.kind == "disambiguation":
        from cocite.evaluation.disambiguation import score_disambiguation

        return score_disambiguation(task, benchmark, vectors, run, counts)
    similarity = by_cosine(vectors) if task.kind == "reviewers" else by_distance(vectors)
    return score_ranking(benchmark, task, similarity, vectors.rows, run, counts)
