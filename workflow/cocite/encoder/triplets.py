"""Shards of triplets with texts become rows of numbers and tokenised documents.

The ids are read first: they say which documents there are and where each is met first. Then the texts stream by, and
each document is tokenised at that place; memory holds numbers only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.encoder.batches import ROLES
from cocite.encoder.texts import Documents, joined_text, mapped, separator_of, tokenise_to
from cocite.errors import InputError
from cocite.files import atomic_path, checked_files, open_table

ROWS = 4096
"""Triplets that are in memory with their texts."""


@dataclass(frozen=True, kw_only=True)
class Triplets:
    """Triplets over tokenised documents."""

    rows: NDArray[np.int64]
    """Triplets × (query, positive, negative): numbers of documents."""
    documents: Documents
    """The distinct documents in the order in which they are first met."""
    ids: NDArray[np.int64]
    """Corpus id of each document."""


def prepare_triplets(table: Path, folder: Path, tokenizer: Any, max_length: int) -> Triplets:
    """Tokenise the documents of a table training_texts, each once, into `folder`, unless they lie there already.

    `table` is a folder of shards or one file. Raises `InputError` if the table has no rows.
    """
    if not folder.is_dir():
        with atomic_path(folder) as unfinished:
            rows, first, ids = _number(table)
            if len(rows) == 0:
                raise InputError(f"{table}: has no triplets.")
            tokenise_to(unfinished, _texts(table, first, separator_of(tokenizer)), tokenizer, max_length)
            np.save(unfinished / "triplets.npy", rows)
            np.save(unfinished / "ids.npy", ids)
    rows, ids = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("triplets", "ids"))
    return Triplets(rows=rows, documents=mapped(folder), ids=ids)


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
