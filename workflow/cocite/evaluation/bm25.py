"""BM25 as a baseline: the words of the query's text against those of its candidates.

Words are counted over all documents of the task, without English stop words and without stemming; a document's text
is its title, its abstract and what the task adds (Lù, 2024, "BM25S: Orders of magnitude faster lexical search via eager
sparse scoring").
"""

from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
from numpy.typing import NDArray

from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.ranking import Similarity
from cocite.evaluation.scoring import Counts, Run, Scored, ScoreFiles, score_ranking, write_scores
from cocite.evaluation.tasks import Task
from cocite.files import read_table
from cocite.progress import progress


def read_document_texts(path: Path) -> dict[str, str]:
    """The text of each document, its parts joined by spaces; empty where it has none."""
    rows = read_table(path, "documents", ["document", "title", "abstract", "more"]).to_pylist()
    return {row["document"]: " ".join(filter(None, (row["title"], row["abstract"], *row["more"]))) for row in rows}


def score_bm25(benchmark: Benchmark, texts: dict[str, str], run: Run, files: ScoreFiles) -> None:
    """Score BM25 on every ranking task and write scores and outcomes; supervised tasks have no words to match."""
    tasks = progress([task for task in benchmark.tasks() if not task.is_supervised], of="Tasks", unit="task")
    write_scores((score_words(task, benchmark, texts, run) for task in tasks), files)


def score_words(task: Task, benchmark: Benchmark, texts: dict[str, str], run: Run) -> Scored:
    """Score BM25 on one ranking task of a benchmark, which need not hold any other."""
    documents = sorted(benchmark.documents_of(task))
    similarity = by_words({document: texts[document] for document in documents})
    return score_ranking(benchmark, task, similarity, documents, run, Counts(documents=len(documents), missing=0))


def by_words(texts: dict[str, str]) -> Similarity:
    """BM25 of each document to the text of the query; 0 where they share no word."""
    words = dict(zip(texts, _words_of(list(texts.values())), strict=True))
    position = {document: number for number, document in enumerate(texts)}
    if not any(words.values()):
        return lambda query, documents: np.zeros(len(documents))
    index = bm25s.BM25()
    index.index(list(words.values()), show_progress=False)

    def similarity(query: str, documents: Sequence[str]) -> NDArray[np.floating]:
        known = [word for word in words[query] if word in index.vocab_dict]
        scores = index.get_scores(known) if known else np.zeros(len(position))
        return scores[[position[document] for document in documents]]

    return similarity


def _words_of(texts: list[str]) -> list[list[str]]:
    words: list[list[str]] = bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
    return words
