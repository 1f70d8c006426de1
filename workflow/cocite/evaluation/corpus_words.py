"""BM25 of held-out papers' texts over the whole corpus, whose texts stream past twice.

The first pass counts, of the words of the queries, in how many texts each is, and how long the texts are; the second
one scores. The formula, the words and the stop words are those of bm25s (Lù, 2024), whose index would hold all texts.
A paper that shares no word with a query is no answer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cocite.core.id_sets import Ids
from cocite.core.progress import progress
from cocite.core.tables.files import checked_files, open_table
from cocite.core.written_ids import look_up
from cocite.evaluation.bm25 import Formula, tokens_of
from cocite.evaluation.corpus_search import Answers, Popularity, Search, SearchResult, block_size


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


def by_words(folder: Path, formula: Formula) -> Search:
    """Search the table papers by the words of the queries."""

    def search(queries: Ids, popularity: Popularity) -> SearchResult:
        size = block_size(len(queries))
        texts_of = {
            paper: text
            for papers, texts in _texts(folder, queries, size)
            for paper, text in zip(papers.tolist(), texts, strict=True)
        }
        words = sorted({word for of_text in tokens_of([*texts_of.values()]) for word in of_text})
        vocabulary = {word: number for number, word in enumerate(words)}
        having, length, number = np.zeros(len(words)), 0.0, 0
        for papers, texts in progress(_texts(folder, popularity.papers, size), of="Counted", unit="block"):
            counted = Counted(texts, vocabulary)
            having += np.bincount(counted.counts.indices, minlength=len(words))
            length, number = length + counted.lengths.sum(), number + len(papers)
        worth = _inverse_frequency(formula, having, number)
        known = np.array(sorted(texts_of), np.int64)
        words_of = Counted([texts_of[paper] for paper in known.tolist()], vocabulary).counts.T.tocsr()
        answers = Answers(known)
        for papers, texts in progress(_texts(folder, popularity.papers, size), of="Searched", unit="block"):
            weighted = _weighted(formula, Counted(texts, vocabulary), length / max(number, 1))
            weighted.data *= worth[weighted.indices]
            nearness = (weighted @ words_of).T.toarray().astype(np.float32)
            nearness[nearness == 0] = -np.inf
            answers.add((papers, nearness))
        outside = int(np.count_nonzero(popularity.citations_of(queries) < 0))
        return SearchResult(answers.ranked(), len(popularity.papers) + outside, len(queries) - len(known))

    return search


def _texts(folder: Path, among: Ids, size: int) -> Iterator[tuple[Ids, list[str]]]:
    """The texts of some papers, title and abstract, block by block."""
    for path in checked_files(folder, "papers"):
        with open_table(path, "papers") as file:
            for batch in file.iter_batches(size, columns=["corpusid", "title", "abstract"]):
                papers = batch["corpusid"].to_numpy()
                _, is_asked = look_up(among, papers)
                kept = batch.filter(is_asked)
                rows = zip(kept["title"].to_pylist(), kept["abstract"].to_pylist(), strict=True)
                yield papers[is_asked], [" ".join(filter(None, row)) for row in rows]


def _inverse_frequency(formula: Formula, having: NDArray[np.float64], texts: int) -> NDArray[np.float64]:
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
