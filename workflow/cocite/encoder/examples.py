"""Shards of triplets with texts become examples: numbers of tokenised documents.

An example is a query, some positives and some negatives; a triplet is the smallest one. The ids are read first: they
say which documents there are and where each is met first. Then the texts stream by, and each document is tokenised at
that place, once, into one long array on disk that is mapped into memory: millions of examples cost memory for their
numbers only, and a training that goes on after a kill finds its tokens ready.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.encoder.tokens import Documents, Tokenizer, joined_text, mapped, tokenise_to
from cocite.ground.errors import InputError
from cocite.tables.files import atomic_path, checked_files, open_table

ROLES = ("query", "positive", "negative")
ROWS = 4096
"""Triplets that are in memory with their texts."""


@dataclass(frozen=True, kw_only=True)
class Links:
    """Documents of each example, one example after the other."""

    documents: NDArray[np.int64]
    starts: NDArray[np.int64]
    """Where those of each example start, and behind them where those of the last one end."""

    def of(self, examples: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The documents of some examples, and which of these, counted from 0, each is of."""
        first, sizes = self.starts[examples], self.starts[examples + 1] - self.starts[examples]
        owner = np.repeat(np.arange(len(examples)), sizes)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return owner, self.documents[first[owner] + within]


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Examples over tokenised documents."""

    queries: NDArray[np.int64]
    """The number of the document that is each example's query."""
    positives: Links
    negatives: Links
    documents: Documents
    """The distinct documents in the order in which they are first met."""
    ids: NDArray[np.int64]
    """Corpus id of each document."""

    def __len__(self) -> int:
        """Count the examples."""
        return len(self.queries)


def examples_of_triplets(rows: NDArray[np.int64], documents: Documents, ids: NDArray[np.int64]) -> Examples:
    """Triplets × (query, positive, negative), numbers of documents, as an example each."""
    starts = np.arange(len(rows) + 1)
    return Examples(
        queries=rows[:, 0],
        positives=Links(documents=rows[:, 1], starts=starts),
        negatives=Links(documents=rows[:, 2], starts=starts),
        documents=documents,
        ids=ids,
    )


def prepare_examples(table: Path, folder: Path, tokenizer: Tokenizer) -> Examples:
    """Tokenise the documents of a table training_texts, each once, into `folder`, unless they lie there already.

    `table` is a folder of shards or one file. Raises `InputError` if the table has no rows.
    """
    if not folder.is_dir():
        with atomic_path(folder) as unfinished:
            rows, first, ids = _number(table)
            if len(rows) == 0:
                raise InputError(f"{table}: has no triplets.")
            tokenise_to(unfinished, _texts(table, first, tokenizer.separator), tokenizer)
            np.save(unfinished / "triplets.npy", rows)
            np.save(unfinished / "ids.npy", ids)
    rows, ids = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("triplets", "ids"))
    return examples_of_triplets(rows, mapped(folder), ids)


def _batches(table: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    for path in checked_files(table, "training_texts"):
        yield from open_table(path, "training_texts").iter_batches(ROWS, columns=columns)


def _number(table: Path) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The triplets as numbers of documents; for each document, where it is met first (row × 3 + role), and its id."""
    read = [[batch.column(role).to_numpy() for role in ROLES] for batch in _batches(table, list(ROLES))]
    ids = np.concatenate([np.empty((0, len(ROLES)), np.int64), *(np.stack(columns, axis=1) for columns in read)])
    distinct, first, document = np.unique(ids, return_index=True, return_inverse=True)
    met = np.argsort(first)
    number = np.empty_like(met)
    number[met] = np.arange(len(met))
    return number[document].reshape(ids.shape), first[met], distinct[met]


def _texts(table: Path, first: NDArray[np.int64], separator: str) -> Iterator[list[str]]:
    """The text of each document at the place where it is met first, some at a time."""
    start = 0
    for batch in _batches(table):
        end = start + len(ROLES) * len(batch)
        row, role = np.divmod(first[slice(*np.searchsorted(first, [start, end]))] - start, len(ROLES))
        texts = np.empty(len(row), dtype=object)
        for number, name in enumerate(ROLES):
            rows = pa.array(row[role == number])
            parts = [batch.column(f"{name}_{part}").take(rows).to_pylist() for part in ("title", "abstract")]
            texts[role == number] = [joined_text(described, separator) for described in zip(*parts, strict=True)]
        start = end
        yield texts.tolist()
