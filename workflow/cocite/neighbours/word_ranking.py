"""The ranking by words: BM25 of the words of the query's text in each document.

BM25 is Lucene's, as in bm25s (Lù, 2024); a word that occurs twice in the query counts twice. The words of the texts are
counted once, into files. Memory is needed for the vocabulary, and for each group of queries their words and one file.
Sums are in the order of the words, so that scores are the same whatever the files, groups and threads.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.progress import progress_bar
from cocite.core.tables.files import open_table, table_in
from cocite.core.words import CountedTexts, UsualFormula, count_words, inverse_frequency
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.neighbours.mining import Asked, Ranked, found_in, scores_of
from cocite.neighbours.nearest import FARTHEST, Keys, Metric, Workers, key_of
from cocite.neighbours.searching import Checkpoint
from cocite.neighbours.vectors import NOWHERE, Documents

FORMULA = UsualFormula()
BYTES_OF_WORD = 150
TEXTS_AT_ONCE = 16_384
COLUMNS = {"papers": ["corpusid", "title", "abstract"], "sampled_texts": ["text", "title", "abstract"]}
"""The columns of the tables of texts, the id first."""

Weights = NDArray[np.float32]


class WordRanking:
    """Ranks by BM25."""

    metric = Metric.INNER_PRODUCT

    def __init__(self, texts: Sequence[Path], documents: Documents) -> None:
        """Take the texts from tables `papers` and `sampled_texts`."""
        self.texts, self.documents = texts, documents
        self.files: list[Path] = []

    def prepare(self, folder: Path, workers: Workers, memory_mb: float) -> float:
        """Count the words of all texts into files, two of which are in memory, with the vocabulary."""
        vocabulary: dict[str, int] = {}
        having = np.zeros(0, dtype=np.int64)
        lengths, found = 0.0, 0
        folder.mkdir(parents=True, exist_ok=True)
        for rows in counted_texts(self.texts, vocabulary):
            is_document = self.documents.numbers_of(rows.ids) != NOWHERE
            having = np.pad(having, (0, len(vocabulary) - len(having)))
            having += np.bincount(rows.words[np.repeat(is_document, np.diff(rows.starts))], minlength=len(having))
            lengths += float(rows.lengths[is_document].sum())
            found += int(is_document.sum())
            self.files.append(folder / f"{len(self.files)}.npz")
            np.savez(self.files[-1], **rows._asdict())
        self.mean_length = lengths / max(1, found) or 1.0
        self.rarity = inverse_frequency(FORMULA, having.astype(np.float64), found)
        return 200 + len(vocabulary) * BYTES_OF_WORD / 1e6

    def bytes_of_query(self, k: int, positives: float) -> float:
        """Results, and some 250 words of the query and of each positive."""
        return 8 * 3 * k + 250 * 16 * (2 + positives)

    def rank(self, asked: Asked, k: int, workers: Workers, checkpoint: Checkpoint) -> Ranked:
        """Go through the documents once for the best, and once more to compare these with the positives."""
        named = distinct(asked.queries, asked.positives)
        given = self._find(named)
        weights = self._weights(given)
        norms = _norms(given, weights)
        own, positives = np.searchsorted(named, asked.queries), np.searchsorted(named, asked.positives)
        keys = self._best(given, own, self.documents.numbers_of(asked.queries), k, workers)
        sums = _sums(given, weights, own[asked.query_of_positive], positives)
        # The cosines of the weighted words of each document that was found to those of query and positives.
        likeness = np.full(keys.shape, -1, dtype=np.float32)
        places, found = found_in(keys)
        for rows, numbers in self._documents():
            bounds = np.searchsorted(found, numbers), np.searchsorted(found, numbers, side="right")
            of_rows = self._weights(rows)
            given_words = given, weights, norms, own, positives, asked.starts
            _compare(rows, of_rows, _norms(rows, of_rows), *bounds, places, *given_words, k, likeness.ravel())
        return Ranked(keys=keys, positives=scores_of(-sums, Metric.INNER_PRODUCT), likeness=likeness)

    def _best(self, given: CountedTexts, own: Ids, numbers: Ids, k: int, workers: Workers) -> Keys:
        keys = np.full((len(own), k), FARTHEST, dtype=np.uint64)
        bounds = pairwise(np.linspace(0, len(own), workers.threads + 1).astype(int))
        parts = [(own[first:end], numbers[first:end], keys[first:end]) for first, end in bounds]
        with progress_bar(of=f"{len(own):,} queries", unit="files of words", total=len(self.files)) as bar:
            for rows, places in self._documents():
                offer = partial(_offer, _by_word(rows, self._weights(rows)), places, given)
                list(workers.map(offer, *zip(*parts, strict=True)))
                bar.update(1)
        return keys

    def _documents(self) -> Iterator[tuple[CountedTexts, Ids]]:
        """The rows of each file, and the numbers of the documents; `NOWHERE` for texts that are not searched."""
        for file in self.files:
            with np.load(file) as saved:
                rows = CountedTexts(*(saved[name] for name in CountedTexts._fields))
            yield rows, self.documents.numbers_of(rows.ids)

    def _find(self, wanted: Ids) -> CountedTexts:
        """The rows of some texts, by rising ids. Raises `InputError` if there is no such text."""
        found: dict[int, tuple[NDArray[np.int32], Weights]] = {}
        for rows, _ in self._documents():
            for place in np.flatnonzero(look_up(wanted, rows.ids)[1]):
                span = slice(rows.starts[place], rows.starts[place + 1])
                found[int(rows.ids[place])] = rows.words[span].copy(), rows.counts[span].copy()
        if missing := [each for each in wanted.tolist() if each not in found]:
            lacks = f"No text of {len(missing):,} papers or texts of the examples, the first of them {missing[0]}"
            raise InputError(f"{lacks}; BM25 needs the texts of all queries and positives.")
        pieces = [found[each] for each in wanted.tolist()]
        starts = np.concatenate([[0], np.cumsum([len(words) for words, _ in pieces])])
        return CountedTexts(wanted, starts, *(np.concatenate(parts) for parts in zip(*pieces, strict=True)))

    def _weights(self, rows: CountedTexts) -> Weights:
        """What each word of some texts is worth there (Lucene's BM25)."""
        length = FORMULA.k1 * (1 - FORMULA.b + FORMULA.b * rows.lengths / self.mean_length)
        share = rows.counts / (rows.counts + np.repeat(length, np.diff(rows.starts)))
        return (self.rarity[rows.words] * share).astype(np.float32)


def counted_texts(tables: Sequence[Path], vocabulary: dict[str, int]) -> Iterator[CountedTexts]:
    """The rows of all texts of some tables, so many at a time; new words are added to the vocabulary."""
    for path in tables:
        table = table_in(path)
        for batch in open_table(path, table).iter_batches(TEXTS_AT_ONCE, columns=COLUMNS[table]):
            titles, abstracts = (batch.column(name).to_pylist() for name in COLUMNS[table][1:])
            texts = [" ".join(filter(None, parts)) for parts in zip(titles, abstracts, strict=True)]
            yield count_words(batch.column(COLUMNS[table][0]).to_numpy(), texts, vocabulary)


def _by_word(rows: CountedTexts, weights: Weights) -> tuple[NDArray[np.int32], Ids, NDArray[np.int32], Weights]:
    """The words that are in one of the texts of a file, rising, where the texts with each start, these, and weights."""
    order = np.argsort(rows.words, kind="stable")
    sorted_words = rows.words[order]
    first = np.flatnonzero(np.diff(sorted_words, prepend=-1))
    places = np.repeat(np.arange(len(rows.ids), dtype=np.int32), np.diff(rows.starts))
    return sorted_words[first], np.append(first, len(order)), places[order], weights[order]


def _norms(rows: CountedTexts, weights: Weights) -> NDArray[np.float64]:
    """The lengths of rows of weights as vectors; squares are added in the order of the words."""
    owners = np.repeat(np.arange(len(rows.ids)), np.diff(rows.starts))
    return np.sqrt(np.bincount(owners, weights=weights.astype(np.float64) ** 2, minlength=len(rows.ids)))


@njit(nogil=True, cache=True)
def _offer(postings, numbers, given, own, of_queries, keys):  # type: ignore[no-untyped-def]
    """Let each query keep the best of the documents of a file; the `keys` of each rise."""
    words, starts, texts, weights = postings
    sums, better = np.zeros(len(numbers)), np.empty(len(numbers), np.uint64)
    for query in range(len(own)):
        sums[:] = 0
        for at in range(given.starts[own[query]], given.starts[own[query] + 1]):
            word = given.words[at]
            place = np.searchsorted(words, word)
            if place < len(words) and words[place] == word:
                for posting in range(starts[place], starts[place + 1]):
                    sums[texts[posting]] += np.float64(given.counts[at]) * weights[posting]
        found, worst = 0, keys[query, -1]
        for place in range(len(numbers)):
            if sums[place] > 0 and numbers[place] >= 0 and numbers[place] != of_queries[query]:
                key = key_of(numbers[place], -sums[place])
                if key < worst:
                    better[found] = key
                    found += 1
        if found:
            keys[query] = np.sort(np.concatenate((keys[query], better[:found])))[: keys.shape[1]]


@njit(nogil=True, cache=True)
def _dot(one, weights, other, of_other):  # type: ignore[no-untyped-def]
    """The sum of the products of the weights of words that two rows share, in the order of the words."""
    total, at, place = 0.0, 0, 0
    while at < len(one) and place < len(other):
        if one[at] == other[place]:
            total += np.float64(weights[at]) * of_other[place]
        step = np.int64(other[place]) - one[at]
        at += step >= 0
        place += step <= 0
    return total


@njit(nogil=True, cache=True)
def _sums(given, weights, queries, positives):  # type: ignore[no-untyped-def]
    """BM25 of pairs of a query and a positive, rounded as in keys."""
    sums = np.zeros(len(queries))
    for pair in range(len(queries)):
        own = slice(given.starts[queries[pair]], given.starts[queries[pair] + 1])
        other = slice(given.starts[positives[pair]], given.starts[positives[pair] + 1])
        sums[pair] = _dot(given.words[own], given.counts[own], given.words[other], weights[other])
    return sums.astype(np.float32).astype(np.float64)


@njit(nogil=True, cache=True)
def _compare(  # type: ignore[no-untyped-def]
    rows, of_rows, row_norms, first, end, places, given, weights, norms, own, positives, starts, k, likeness
):
    """Write the largest cosine of each document that was found to its places; 0 for a row without words."""
    for row in range(len(rows.ids)):
        words = rows.words[rows.starts[row] : rows.starts[row + 1]]
        mine = of_rows[rows.starts[row] : rows.starts[row + 1]]
        for place in places[first[row] : end[row]]:
            query = place // k
            nearest = 0.0
            for other in range(starts[query] - 1, starts[query + 1]):
                at = own[query] if other < starts[query] else positives[other]
                norm = row_norms[row] * norms[at]
                if norm > 0:
                    span = slice(given.starts[at], given.starts[at + 1])
                    nearest = max(nearest, min(1.0, _dot(words, mine, given.words[span], weights[span]) / norm))
            likeness[place] = nearest
