"""BM25 as a baseline: the words of the query's text against those of its candidates.

Words are counted over all documents of the task, without English stop words and without stemming; a document's text
is its title, its abstract and what the task adds (Lù, 2024, "BM25S: Orders of magnitude faster lexical search via eager
sparse scoring").
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import bm25s
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.ranking import Similarity
from cocite.evaluation.retrieval import best_hits
from cocite.evaluation.scored import Counts, Run, Scored
from cocite.evaluation.scoring import score_ranking, score_run
from cocite.files import open_table
from cocite.tasks import Task

COLUMNS = ["document", "title", "abstract", "more"]
ROWS_AT_ONCE = 8192


def read_document_texts(path: Path, documents: Collection[str]) -> dict[str, str]:
    """The text of each of some documents, its parts joined by spaces; empty where it has none."""
    wanted = pa.array(sorted(documents), pa.string())
    with open_table(path, "documents") as file:
        batches = file.iter_batches(ROWS_AT_ONCE, columns=COLUMNS)
        rows = [row for batch in batches for row in batch.filter(pc.is_in(batch["document"], wanted)).to_pylist()]
    return {row["document"]: " ".join(filter(None, (row["title"], row["abstract"], *row["more"]))) for row in rows}


def score_words(task: Task, benchmark: Benchmark, texts: dict[str, str], run: Run) -> Scored:
    """Score BM25 on one ranking task of a benchmark, which need not hold any other."""
    documents = sorted(benchmark.documents_of(task))
    if task.kind == "retrieval":
        return _score_search(task, benchmark, texts, run)
    similarity = by_words({document: texts[document] for document in documents})
    return score_ranking(benchmark, task, similarity, documents, run, Counts(documents=len(documents), missing=0))


def _score_search(task: Task, benchmark: Benchmark, texts: dict[str, str], run: Run) -> Scored:
    """Score the search of a collection; words are counted over it and the queries."""
    similarity, collection = by_words(texts), sorted(benchmark.collections[task.name])
    queries = list(benchmark.judgements[task.name])
    found = best_hits(task, queries, [(collection, [similarity(query, collection) for query in queries])])
    counts = Counts(documents=len(benchmark.documents_of(task)), missing=0)
    return score_run(benchmark, task, found, run, counts)


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
