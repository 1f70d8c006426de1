"""BM25 of some texts against those of many papers, which stream past twice.

The first pass counts, for the words of the queries, the texts that have each word, and the lengths of the texts; the
second scores. The formula, the words and the stop words are those of bm25s (Lù, 2024), whose index needs all texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import bm25s
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from bm25s.stopwords import STOPWORDS_EN
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cocite.core.progress import progress
from cocite.core.searching import Block, block_size
from cocite.core.tables.files import checked_files, open_table
from cocite.core.written_ids import Ids, look_up

WORD = r"[0-9A-Za-z_\x{80}-\x{10FFFF}]{2,}"
"""Two characters of a word or more, of lower-case ASCII or of words that are split already."""


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
        """Which of lucene, robertson and atire."""


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


@dataclass(frozen=True)
class ListedWords:
    """The words of some texts, one after the other."""

    distinct: pa.StringArray
    """Each word once."""
    numbers: NDArray[np.int32]
    """The place of each word among them."""
    rows: NDArray[np.int64]
    """The text that has it."""
    texts: int

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many words each text has."""
        return np.bincount(self.rows, minlength=self.texts)


def words_of(texts: Sequence[str]) -> ListedWords:
    """The same words as `tokens_of`, listed in a fifth of the time; that function splits texts that are not ASCII."""
    others = [row for row, text in enumerate(texts) if not text.isascii()]
    lowered = [text.lower() for text in texts]
    for row, tokens in zip(others, tokens_of([texts[row] for row in others]), strict=True):
        lowered[row] = " ".join(tokens)
    split = pl.Series(lowered, dtype=pl.String).str.extract_all(WORD)
    rows = np.repeat(np.arange(len(texts)), split.list.len().to_numpy())
    words = split.explode(empty_as_null=False)
    is_word = ~words.is_in(STOPWORDS_EN)
    encoded = pa.chunked_array([words.filter(is_word).to_arrow()]).combine_chunks().dictionary_encode()
    numbers = encoded.indices.to_numpy()
    return ListedWords(encoded.dictionary, numbers, rows[is_word.to_numpy()], len(texts))


class CountedTexts(NamedTuple):
    """Texts as rows of words: those of each text, as rising numbers in a vocabulary, with a count for each."""

    ids: Ids
    starts: Ids
    """Start of the words of each text, and at the end their number."""
    words: NDArray[np.int32]
    counts: NDArray[np.float32]
    """How often each word is in the text."""

    @property
    def lengths(self) -> NDArray[np.float64]:
        """How many words each text has."""
        return np.add.reduceat(np.append(self.counts, 0), self.starts[:-1]) * (np.diff(self.starts) > 0)


def count_words(ids: Ids, texts: Sequence[str], vocabulary: dict[str, int]) -> CountedTexts:
    """Count the words of some texts; new words are added to the vocabulary."""
    words = words_of(texts)
    known = [vocabulary.setdefault(word, len(vocabulary)) for word in words.distinct.to_pylist()]
    of_texts = np.array(known, np.int64)[words.numbers]
    packed, counts = np.unique(words.rows << 32 | of_texts, return_counts=True)
    starts = np.searchsorted(packed >> 32, np.arange(len(ids) + 1))
    return CountedTexts(ids, starts, (packed & 0xFFFFFFFF).astype(np.int32), counts.astype(np.float32))


def counts_of(words: ListedWords, vocabulary: pa.StringArray) -> csr_array:
    """How often each word of a vocabulary is in each text (texts × words)."""
    places = pc.index_in(words.distinct, vocabulary).fill_null(-1)
    columns = places.to_numpy()[words.numbers]
    is_known = columns >= 0
    starts = np.concatenate([[0], np.cumsum(np.bincount(words.rows[is_known], minlength=words.texts))])
    counts = csr_array((np.ones(starts[-1]), columns[is_known], starts), shape=(words.texts, len(vocabulary)))
    counts.sum_duplicates()
    return counts


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
        asked = words_of([texts_of[paper] for paper in self.queries.tolist()])
        self.vocabulary = asked.distinct.sort()
        having, length, number = np.zeros(len(self.vocabulary)), 0.0, 0
        for some, texts in progress(texts_of_papers(folder, papers, self.size), of="Counted", unit="block"):
            words = words_of(texts)
            having += np.bincount(counts_of(words, self.vocabulary).indices, minlength=len(having))
            length, number = length + len(words.rows), number + len(some)
        self.mean_length = length / max(number, 1)
        self.worth = inverse_frequency(formula, having, number)
        self.words_of = counts_of(asked, self.vocabulary).T.tocsr()

    def blocks(self) -> Iterator[Block]:
        """The papers that are searched, and BM25 of each query to each; -inf for one that shares no word."""
        for papers, texts in progress(
            texts_of_papers(self.folder, self.papers, self.size), of="Searched", unit="block"
        ):
            words = words_of(texts)
            weighted = _weighted(self.formula, counts_of(words, self.vocabulary), words.lengths, self.mean_length)
            weighted.data *= self.worth[weighted.indices]
            scores = np.zeros((len(papers), len(self.queries)))
            of_queries = self.words_of
            arrays = (weighted.indptr, weighted.indices, weighted.data)
            _add_products(*arrays, of_queries.indptr, of_queries.indices, of_queries.data, scores)
            nearness = scores.T.astype(np.float32, order="C")
            nearness[nearness == 0] = -np.inf
            yield papers, nearness


@njit(nogil=True, cache=True)
def _add_products(starts, columns, values, other_starts, other_columns, other_values, sums):  # type: ignore[no-untyped-def]
    """Add the product of two sparse matrices to a dense one, in less than half the time of a sparse product."""
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            other, value = columns[at], values[at]
            for there in range(other_starts[other], other_starts[other + 1]):
                sums[row, other_columns[there]] += value * other_values[there]


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


def _weighted(formula: Formula, weights: csr_array, lengths: NDArray[np.int64], mean_length: float) -> csr_array:
    k1 = formula.k1
    norm = k1 * (1 - formula.b + formula.b * lengths / max(mean_length, 1e-9))
    of_row = np.repeat(norm, np.diff(weights.indptr))
    times = k1 + 1 if formula.method == "atire" else 1
    weights.data = times * weights.data / (weights.data + of_row)
    return weights
