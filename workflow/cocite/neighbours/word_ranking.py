"""The ranking by words: BM25 of the words of the query's text in each document.

Words have at least two letters or digits, are lowercase, and exclude English stop words; there is no stemming, as in
the baseline BM25. BM25 is Lucene's, with k1 = 1.5 and b = 0.75, as in bm25s (Lù, 2024); a word that occurs twice in the
query counts twice. The words of the texts are counted once, into files. Memory is needed for the vocabulary, and for
each group of queries their words and one file. Sums are in the order of the words, so that scores are the same whatever
the files, groups and threads.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.progress import progress_bar
from cocite.core.tables.files import open_table, table_in
from cocite.core.words import UsualFormula, inverse_frequency, words_of
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.neighbours.mining import Asked, Ranked, Ranking, found_in, scores_of
from cocite.neighbours.nearest import FARTHEST, Keys, Metric, Workers, key_of
from cocite.neighbours.query_groups import Checkpoint
from cocite.neighbours.vectors import NOWHERE, Documents

FORMULA = UsualFormula()
BYTES_OF_WORD = 150
"""Memory of a word of the vocabulary."""
TEXTS_AT_ONCE = 16_384
COLUMNS = {"papers": ["corpusid", "title", "abstract"], "sampled_texts": ["text", "title", "abstract"]}
"""The columns of the tables of texts, the id first."""

Weights = NDArray[np.float32]


class Rows(NamedTuple):
    """Texts as rows of words: those of each text, rising, with a number for each."""

    ids: Ids
    starts: Ids
    """Start of the words of each text, and at the end their number."""
    words: NDArray[np.int32]
    counts: Weights
    """How often each word is in the text."""

    @property
    def lengths(self) -> NDArray[np.float64]:
        """How many words each text has."""
        return np.add.reduceat(np.append(self.counts, 0), self.starts[:-1]) * (np.diff(self.starts) > 0)


class Postings(NamedTuple):
    """Rows of documents, weighted, by word: the places of the documents that have each."""

    words: NDArray[np.int32]
    """The words that are in one of the documents, rising."""
    starts: Ids
    """Start of the documents of each word, and at the end their number."""
    places: NDArray[np.int32]
    weights: Weights


class WordRanking(Ranking):
    """Ranks by BM25."""

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

    def rank(self, asked: Asked, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Ranked:
        """Go through the documents once for the best, and once more to compare these with the positives."""
        named = distinct(asked.queries, asked.positives)
        given = self._find(named)
        weights = self._weights(given)
        norms = _norms(given, weights)
        own, positives = np.searchsorted(named, asked.queries), np.searchsorted(named, asked.positives)
        keys = self._best(given, own, self.documents.numbers_of(asked.queries), k, workers)
        sums = _sums(given, weights, own[asked.query_of_positive], positives)
        likeness = self._likeness(keys, given, weights, norms, own, positives, asked.starts)
        return Ranked(keys=keys, positives=scores_of(-sums, Metric.INNER_PRODUCT), likeness=likeness)

    def _best(self, given: Rows, own: Ids, numbers: Ids, k: int, workers: Workers) -> Keys:
        """The keys of the best documents of each query, in order of rank."""
        keys = np.full((len(own), k), FARTHEST, dtype=np.uint64)
        bounds = np.linspace(0, len(own), workers.threads + 1).astype(int)
        with progress_bar(of=f"{len(own):,} queries", unit="files of words", total=len(self.files)) as bar:
            for rows, places in self._documents():
                postings = _by_word(rows, self._weights(rows))

                def offer(first: int, end: int, postings: Postings = postings, places: Ids = places) -> None:
                    _offer(postings, places, given, own[first:end], numbers[first:end], keys[first:end])

                list(workers.map(offer, bounds[:-1], bounds[1:]))
                bar.update(1)
        return np.sort(keys, axis=1)

    def _likeness(
        self,
        keys: Keys,
        given: Rows,
        weights: Weights,
        norms: NDArray[np.float64],
        own: Ids,
        positives: Ids,
        starts: Ids,
    ) -> Weights:
        """The largest cosine of the weighted words of each document that was found to those of query and positives."""
        likeness = np.full(keys.shape, -1, dtype=np.float32)
        places, found = found_in(keys)
        for rows, numbers in self._documents():
            bounds = np.searchsorted(found, numbers), np.searchsorted(found, numbers, side="right")
            of_rows = self._weights(rows)
            _compare(
                *(rows, of_rows, _norms(rows, of_rows), *bounds, places, given, weights, norms),
                *(own, positives, starts, keys.shape[1], likeness.ravel()),
            )
        return likeness

    def _documents(self) -> Iterator[tuple[Rows, Ids]]:
        """The rows of each file, and the numbers of the documents; `NOWHERE` for texts that are not searched."""
        for rows in self._rows():
            yield rows, self.documents.numbers_of(rows.ids)

    def _rows(self) -> Iterator[Rows]:
        for file in self.files:
            with np.load(file) as saved:
                yield Rows(*(saved[name] for name in Rows._fields))

    def _find(self, wanted: Ids) -> Rows:
        """The rows of some texts, by rising ids. Raises `InputError` if there is no such text."""
        found: dict[int, tuple[NDArray[np.int32], Weights]] = {}
        for rows in self._rows():
            for place in np.flatnonzero(look_up(wanted, rows.ids)[1]):
                span = slice(rows.starts[place], rows.starts[place + 1])
                found[int(rows.ids[place])] = rows.words[span].copy(), rows.counts[span].copy()
        if missing := [each for each in wanted.tolist() if each not in found]:
            lacks = f"No text of {len(missing):,} papers or texts of the examples, the first of them {missing[0]}"
            raise InputError(f"{lacks}; BM25 needs the texts of all queries and positives.")
        pieces = [found[each] for each in wanted.tolist()]
        starts = np.concatenate([[0], np.cumsum([len(words) for words, _ in pieces])])
        words, counts = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return Rows(wanted, starts, words, counts)

    def _weights(self, rows: Rows) -> Weights:
        """What each word of some texts is worth there (Lucene's BM25)."""
        length = np.repeat(
            FORMULA.k1 * (1 - FORMULA.b + FORMULA.b * rows.lengths / self.mean_length), np.diff(rows.starts)
        )
        weights: Weights = (self.rarity[rows.words] * (rows.counts / (rows.counts + length))).astype(np.float32)
        return weights


def counted_texts(tables: Sequence[Path], vocabulary: dict[str, int]) -> Iterator[Rows]:
    """The rows of all texts of some tables, so many at a time; new words are added to the vocabulary."""
    for path in tables:
        table = table_in(path)
        for batch in open_table(path, table).iter_batches(TEXTS_AT_ONCE, columns=COLUMNS[table]):
            titles, abstracts = (batch.column(name).to_pylist() for name in COLUMNS[table][1:])
            texts = [" ".join(filter(None, parts)) for parts in zip(titles, abstracts, strict=True)]
            yield _as_rows(batch.column(COLUMNS[table][0]).to_numpy(), texts, vocabulary)


def _as_rows(ids: Ids, texts: Sequence[str], vocabulary: dict[str, int]) -> Rows:
    words = words_of(texts)
    numbers = np.array([vocabulary.setdefault(word, len(vocabulary)) for word in words.distinct.to_pylist()], np.int64)
    packed, counts = np.unique(words.rows << 32 | numbers[words.numbers], return_counts=True)
    starts = np.searchsorted(packed >> 32, np.arange(len(ids) + 1))
    return Rows(ids, starts, (packed & 0xFFFFFFFF).astype(np.int32), counts.astype(np.float32))


def _by_word(rows: Rows, weights: Weights) -> Postings:
    """The rows of a file by word."""
    order = np.argsort(rows.words, kind="stable")
    sorted_words = rows.words[order]
    first = np.flatnonzero(np.diff(sorted_words, prepend=-1))
    places = np.repeat(np.arange(len(rows.ids), dtype=np.int32), np.diff(rows.starts))
    return Postings(sorted_words[first], np.append(first, len(order)), places[order], weights[order])


def _norms(rows: Rows, weights: Weights) -> NDArray[np.float64]:
    """The lengths of rows of weights as vectors; squares are added in the order of the words."""
    owners = np.repeat(np.arange(len(rows.ids)), np.diff(rows.starts))
    return np.sqrt(np.bincount(owners, weights=weights.astype(np.float64) ** 2, minlength=len(rows.ids)))


@njit(nogil=True, cache=True)
def _offer(postings, numbers, given, own, of_queries, keys):  # type: ignore[no-untyped-def]
    """Let each query keep the best of the documents of a file; `keys` are heaps with the worst in front."""
    sums = np.zeros(len(numbers))
    for query in range(len(own)):
        sums[:] = 0
        for at in range(given.starts[own[query]], given.starts[own[query] + 1]):
            word = given.words[at]
            place = np.searchsorted(postings.words, word)
            if place == len(postings.words) or postings.words[place] != word:
                continue
            for posting in range(postings.starts[place], postings.starts[place + 1]):
                sums[postings.places[posting]] += np.float64(given.counts[at]) * postings.weights[posting]
        heap = keys[query]
        for place in range(len(numbers)):
            if sums[place] > 0 and numbers[place] >= 0 and numbers[place] != of_queries[query]:
                key = key_of(numbers[place], -sums[place])
                if key < heap[0]:
                    _replace_worst(heap, key)


@njit(nogil=True, cache=True)
def _replace_worst(heap, key):  # type: ignore[no-untyped-def]
    """Put a key in the place of the largest, which is in front."""
    at, last = 0, len(heap)
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= key:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = key


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
    """Write the similarity of the documents of a file to the positions where they were found; 0 for a row without
    words."""
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
