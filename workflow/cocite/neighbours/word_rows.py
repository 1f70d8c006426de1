"""Texts as rows of counted words, numbered by a vocabulary.

A text is title and abstract; words are of two letters or digits at least, in small letters, without English stop words
and without stemming, as the baseline BM25 counts them.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.core.id_sets import Ids
from cocite.core.tables.files import open_table, table_in

TEXTS_IN_FILE = 32_768
TEXTS_AT_ONCE = 4096
COLUMNS = {"papers": ["corpusid", "title", "abstract"], "sampled_texts": ["text", "title", "abstract"]}
"""The columns of the tables of texts, the id first."""

Weights = NDArray[np.float32]


class Rows(NamedTuple):
    """Texts as rows of words: those of each text, rising, with a number for each."""

    ids: Ids
    starts: Ids
    """Where the words of each text start, and at the end how many there are."""
    words: NDArray[np.int32]
    counts: Weights
    """How often each word is in the text."""

    @property
    def lengths(self) -> NDArray[np.float64]:
        """How many words each text has."""
        return np.add.reduceat(np.append(self.counts, 0), self.starts[:-1]) * (np.diff(self.starts) > 0)


def words_of(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text that are counted, in their order."""
    import bm25s

    words: list[list[str]] = bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
    return words


def counted_texts(tables: Sequence[Path], vocabulary: dict[str, int]) -> Iterator[Rows]:
    """The rows of all texts of some tables, so many at a time; new words are added to the vocabulary."""
    held: list[Rows] = []
    for path in tables:
        table = table_in(path)
        for batch in open_table(path, table).iter_batches(TEXTS_AT_ONCE, columns=COLUMNS[table]):
            titles, abstracts = (batch.column(name).to_pylist() for name in COLUMNS[table][1:])
            texts = [" ".join(filter(None, parts)) for parts in zip(titles, abstracts, strict=True)]
            held.append(_as_rows(batch.column(COLUMNS[table][0]).to_numpy(), texts, vocabulary))
            if sum(len(rows.ids) for rows in held) >= TEXTS_IN_FILE:
                yield _joined(held)
                held = []
    if held:
        yield _joined(held)


def _as_rows(ids: Ids, texts: Sequence[str], vocabulary: dict[str, int]) -> Rows:
    found = words_of(texts)
    numbers = (vocabulary.setdefault(word, len(vocabulary)) for word in chain.from_iterable(found))
    owners = np.repeat(np.arange(len(ids)), [len(words) for words in found])
    words = np.fromiter(numbers, dtype=np.int64, count=len(owners))
    packed, counts = np.unique(owners << 32 | words, return_counts=True)
    starts = np.searchsorted(packed >> 32, np.arange(len(ids) + 1))
    return Rows(ids, starts, (packed & 0xFFFFFFFF).astype(np.int32), counts.astype(np.float32))


def _joined(parts: Sequence[Rows]) -> Rows:
    sizes = np.cumsum([0, *(len(rows.words) for rows in parts)])
    starts = [rows.starts[:-1] + first for rows, first in zip(parts, sizes, strict=False)]
    ids, _, words, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Rows(ids, np.append(np.concatenate(starts), sizes[-1]), words, counts)


def read_rows(file: Path) -> Rows:
    """The rows of a file."""
    with np.load(file) as saved:
        return Rows(*(saved[name] for name in Rows._fields))


def bounds_of(starts: Ids, chosen: Ids) -> Iterator[tuple[int, int]]:
    """Where the words of some rows start and end."""
    return zip(starts[chosen].tolist(), starts[chosen + 1].tolist(), strict=True)
