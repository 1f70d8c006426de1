"""BM25 as a baseline: the words of the query's text against those of its candidates.

Words are counted over all documents of the task, or over the collection that is searched, without English stop words
and without stemming (Lù, 2024, "BM25S: Orders of magnitude faster lexical search via eager sparse scoring").
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import bm25s
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csc_array, csr_array

from cocite.config.entries import Entry, NonNegative
from cocite.config.tasks import Task
from cocite.core.tables.files import open_table
from cocite.core.words import tokens_of
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.ranking import score_collection, score_ranking
from cocite.evaluation.scored import Run, Scored, count_missing

ROWS_AT_ONCE = 8192


class Formula(Entry):
    """What a word is worth, as bm25s takes it."""

    k1: NonNegative = 1.5
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    method: Literal["lucene", "robertson", "atire"] = "lucene"


def read_document_texts(path: Path, documents: Collection[str]) -> dict[str, str]:
    """The text of each of some documents, its parts joined by spaces; empty if it has none."""
    wanted = pa.array(sorted(documents), pa.string())
    with open_table(path, "documents") as file:
        batches = file.iter_batches(ROWS_AT_ONCE, columns=["document", "title", "abstract", "more"])
        rows = [row for batch in batches for row in batch.filter(pc.is_in(batch["document"], wanted)).to_pylist()]
    return {row["document"]: " ".join(filter(None, (row["title"], row["abstract"], *row["more"]))) for row in rows}


def score_words(
    task: Task, benchmark: Benchmark, texts: Mapping[str, str], run: Run, formula: Formula = Formula()
) -> Scored:
    """Score BM25 on one ranking task of a benchmark; a search counts words over its collection only."""
    documents = sorted(benchmark.documents_of(task))
    scored = count_missing(task, benchmark, documents, run)
    if task.kind == "retrieval":
        collection, queries = sorted(benchmark.collections[task.name]), list(benchmark.judgements[task.name])
        words = Words({document: texts[document] for document in collection}, formula)
        score_collection(scored, benchmark, collection, (words.to_all(texts[query]) for query in queries))
    else:
        words = Words({document: texts[document] for document in documents}, formula)
        score_ranking(scored, benchmark, words.share if task.kind == "clicks" else words.to_some, words.rows)
    return scored


class Words:
    """What each word is worth in each of some documents."""

    def __init__(self, texts: Mapping[str, str], formula: Formula = Formula()) -> None:
        tokens = tokens_of(list(texts.values()))
        self.rows = {document: row for row, document in enumerate(texts)}
        self.index = bm25s.BM25(**formula.model_dump())
        if any(tokens):
            self.index.index(tokens, show_progress=False)
        # No word of a document is unknown, as all are indexed.
        self.numbers = [self.index.get_tokens_ids(of_document) for of_document in tokens] if any(tokens) else []

    @cached_property
    def worth(self) -> csr_array:
        """What a word, a column, is worth in a document, a row."""
        scores = self.index.scores
        shape = (scores["num_docs"], len(scores["indptr"]) - 1)
        return csc_array((scores["data"], scores["indices"], scores["indptr"]), shape=shape).tocsr()

    def to_some(self, query: str, documents: Sequence[str]) -> NDArray[np.floating]:
        """BM25 of some documents to one of them; 0 if they share no word."""
        if not self.numbers:
            return np.zeros(len(documents))
        asked = np.bincount(self.numbers[self.rows[query]], minlength=self.worth.shape[1])
        return self.worth[[self.rows[document] for document in documents]] @ asked

    def share(self, query: str, documents: Sequence[str]) -> NDArray[np.floating]:
        """BM25 of some documents to one of them as a share of its BM25 to itself: comparable among queries."""
        return self.to_some(query, documents) / max(1e-9, float(self.to_some(query, [query])[0]))

    def to_all(self, text: str) -> NDArray[np.floating]:
        """BM25 of all documents to a text, whose words that none of them has do not count."""
        numbers = self.index.get_tokens_ids(tokens_of([text])[0]) if self.numbers else []
        return self.index.get_scores(numbers) if numbers else np.zeros(len(self.rows))
