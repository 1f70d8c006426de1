"""BM25 of some texts against those of many papers, which stream past twice.

The first pass counts, for the words of the queries, the texts that have each word, and the lengths of the texts; the
second scores. The formula, the words and the stop words are those of bm25s (Lù, 2024), whose index needs all texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import bm25s
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cocite.core.progress import progress
from cocite.core.searching import Block, block_size
from cocite.core.tables.files import checked_files, open_table
from cocite.core.written_ids import Ids, look_up


class Formula(Protocol):
    """What a word is worth, as bm25s takes it."""

    @property
    def k1(self) -> float:
        """How much a word that comes again adds."""

    @property
    def b(self) -> float:
        """How much a long text counts less."""

    @property
    def method(self) -> str:
        """lucene, robertson or atire."""


@dataclass(frozen=True)
class UsualFormula:
    """BM25 as the baseline has it by default."""

    k1: float = 1.5
    b: float = 0.75
    method: str = "lucene"


def tokens_of(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text."""
    tokens: list[list[str]] = bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
    return tokens


class Counted:
    """How often each word of a vocabulary is in each of some texts (texts × words), and how long the texts are."""

    def __init__(self, texts: Sequence[str], vocabulary: dict[str, int]) -> None:
        """Count."""
        tokens = tokens_of(texts)
        self.lengths = np.array([len(of_text) for of_text in tokens], np.float64)
        numbers = [[vocabulary[word] for word in of_text if word in vocabulary] for of_text in tokens]
        starts = np.concatenate([[0], np.cumsum([len(of_text) for of_text in numbers])])
        words = np.array([word for of_text in numbers for word in of_text], np.int32)
        self.counts = csr_array((np.ones(len(words)), words, starts), shape=(len(texts), len(vocabulary)))
        self.counts.sum_duplicates()


class WordSearch:
    """A search of the table papers by the words of some of its papers, the queries."""

    def __init__(self, folder: Path, queries: Ids, papers: Ids, formula: Formula) -> None:
        """Count the words of the queries in the texts of the papers that are searched."""
        self.folder, self.papers, self.formula = folder, papers, formula
        self.size = block_size(len(queries))
        texts_of = {
            paper: text
            for some, texts in texts_of_papers(folder, queries, self.size)
            for paper, text in zip(some.tolist(), texts, strict=True)
        }
        self.queries = np.array(sorted(texts_of), np.int64)
        """Those that have a text, ascending."""
        words = sorted({word for of_text in tokens_of([*texts_of.values()]) for word in of_text})
        self.vocabulary = {word: number for number, word in enumerate(words)}
        having, length, number = np.zeros(len(words)), 0.0, 0
        for some, texts in progress(texts_of_papers(folder, papers, self.size), of="Counted", unit="block"):
            counted = Counted(texts, self.vocabulary)
            having += np.bincount(counted.counts.indices, minlength=len(words))
            length, number = length + counted.lengths.sum(), number + len(some)
        self.mean_length = length / max(number, 1)
        self.worth = inverse_frequency(formula, having, number)
        texts = [texts_of[paper] for paper in self.queries.tolist()]
        self.words_of = Counted(texts, self.vocabulary).counts.T.tocsr()

    def blocks(self) -> Iterator[Block]:
        """The papers that are searched, and BM25 of each query to each; -inf for one that shares no word."""
        for papers, texts in progress(
            texts_of_papers(self.folder, self.papers, self.size), of="Searched", unit="block"
        ):
            weighted = _weighted(self.formula, Counted(texts, self.vocabulary), self.mean_length)
            weighted.data *= self.worth[weighted.indices]
            nearness = (weighted @ self.words_of).T.toarray().astype(np.float32)
            nearness[nearness == 0] = -np.inf
            yield papers, nearness


def texts_of_papers(folder: Path, among: Ids, size: int) -> Iterator[tuple[Ids, list[str]]]:
    """The texts of some papers, title and abstract, block by block."""
    for path in checked_files(folder, "papers"):
        with open_table(path, "papers") as file:
            for batch in file.iter_batches(size, columns=["corpusid", "title", "abstract"]):
                papers = batch["corpusid"].to_numpy()
                _, is_asked = look_up(among, papers)
                kept = batch.filter(is_asked)
                rows = zip(kept["title"].to_pylist(), kept["abstract"].to_pylist(), strict=True)
                yield papers[is_asked], [" ".join(filter(None, row)) for row in rows]


def inverse_frequency(formula: Formula, having: NDArray[np.float64], texts: int) -> NDArray[np.float64]:
    """What the rarity of each word counts."""
    if formula.method == "atire":
        return np.log(texts / np.maximum(having, 1))
    odds = (texts - having + 0.5) / (having + 0.5)
    return np.log1p(odds) if formula.method == "lucene" else np.log(np.maximum(odds, 1))


def _weighted(formula: Formula, counted: Counted, mean_length: float) -> csr_array:
    """What the counts of each word are worth in each text."""
    weights, k1 = counted.counts.copy(), formula.k1
    norm = k1 * (1 - formula.b + formula.b * counted.lengths / max(mean_length, 1e-9))
    of_row = np.repeat(norm, np.diff(weights.indptr))
    times = k1 + 1 if formula.method == "atire" else 1
    weights.data = times * weights.data / (weights.data + of_row)
    return weights
