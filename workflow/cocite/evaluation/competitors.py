"""Who is scored on a task: a model by its stored vectors, random vectors, and BM25."""

from pathlib import Path

from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, table_in
from cocite.evaluation.scored import Run, Scored
from cocite.evaluation.scoring import score_task
from cocite.evaluation.vectors import Vectors, blocks_of, random_vectors, read_vectors, stored_blocks


def score_model(task: Task, benchmark: Benchmark, embeddings: Path, run: Run) -> Scored:
    """Score the vectors of a model. Of a collection, no more than a block is in memory at a time."""
    if task.kind == "retrieval":
        from cocite.evaluation.retrieval import score_search

        queries = read_vectors(embeddings, benchmark.judgements[task.name])
        return score_search(task, benchmark, queries, stored_blocks(embeddings, benchmark.collections[task.name]), run)
    return score_task(task, benchmark, read_vectors(embeddings, benchmark.documents_of(task)), run)


def score_random(task: Task, benchmark: Benchmark, tables: Path, seed: int, run: Run) -> Scored:
    """Score random vectors: what chance reaches."""
    vectors: Vectors = random_vectors(table_in(tables, "documents"), seed)
    if task.kind == "retrieval":
        from cocite.evaluation.retrieval import score_search

        return score_search(task, benchmark, vectors, blocks_of(vectors, benchmark.collections[task.name]), run)
    return score_task(task, benchmark, vectors, run)


def score_bm25(task: Task, benchmark: Benchmark, tables: Path, run: Run) -> Scored:
    """Score BM25 on a ranking task; supervised tasks have no words to match."""
    from cocite.evaluation.bm25 import read_document_texts, score_words

    texts = read_document_texts(table_in(tables, "documents"), benchmark.documents_of(task))
    return score_words(task, benchmark, texts, run)
