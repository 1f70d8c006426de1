"""Tables of triplets with texts become rows of numbers and tokenised documents."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.encoder.batches import ROLES
from cocite.encoder.texts import Documents, joined_text, mapped, separator_of, tokenise_to
from cocite.errors import InputError
from cocite.files import atomic_path, scan_table

ROWS = 4096
"""Triplets that are in memory with their texts."""


@dataclass(frozen=True, kw_only=True)
class Triplets:
    """Triplets over tokenised documents."""

    rows: NDArray[np.int64]
    """Triplets × (query, positive, negative): numbers of documents."""
    documents: Documents
    """The distinct documents in the order in which they are first met."""


def prepare_triplets(table: Path, folder: Path, tokenizer: Any, max_length: int) -> Triplets:
    """Tokenise the documents of a table training_texts, each once, into `folder`, unless they lie there already.

    Raises `InputError` if the table has no rows.
    """
    if not folder.is_dir():
        with atomic_path(folder) as unfinished:
            numbers: dict[int, int] = {}
            rows = [np.empty((0, len(ROLES)), np.int64)]
            texts = _new_texts(table, numbers, rows, separator_of(tokenizer))
            tokenise_to(unfinished, texts, tokenizer, max_length)
            np.save(unfinished / "triplets.npy", np.concatenate(rows))
    rows_array = np.load(folder / "triplets.npy", allow_pickle=False)
    if len(rows_array) == 0:
        raise InputError(f"{table}: has no triplets.")
    return Triplets(rows=rows_array, documents=mapped(folder))


def _new_texts(
    table: Path, numbers: dict[int, int], rows: list[NDArray[np.int64]], separator: str
) -> Iterator[list[str]]:
    """The texts of documents not met before, some at a time; numbers and rows grow along."""
    for batch in scan_table(table, "training_texts").to_batches(batch_size=ROWS):
        texts = []
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for role in ROLES:
            described = zip(*(columns[name] for name in (role, f"{role}_title", f"{role}_abstract")), strict=True)
            for document, title, abstract in described:
                if document not in numbers:
                    numbers[document] = len(numbers)
                    texts.append(joined_text((title, abstract), separator))
        rows.append(np.array([[numbers[document] for document in columns[role]] for role in ROLES], np.int64).T)
        yield texts
