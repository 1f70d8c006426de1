"""The documents of a table in windows: some thousand documents with their tokens, of which batches are made.

A window is as many documents as lie one after the other in the table, with a text or without; so it follows from the
table alone which documents are in it, and the windows that are done need not be read closely.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.encoder.tokens import Documents, Tokenizer, joined_text, tokenise
from cocite.tables import TABLES
from cocite.tables.files import open_table

WINDOW = 16_384
"""Documents that are in memory at once with their texts and tokens, and sorted by length together."""
ROWS = 1024
"""Documents that are read at once."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The documents of a window that have a text."""

    names: list[Any]
    """Their ids."""
    rows: NDArray[np.int64]
    """Their places in the table."""
    tokens: Documents
    """Their tokens."""


def tokenised_windows(
    files: Sequence[Path], tokenizer: Tokenizer, table: str = "documents", *, start: int, size: int
) -> Iterator[Window]:
    """The windows of `size` documents, from the one of number `start` on."""
    texts = islice(texts_of(files, tokenizer.separator, table), start * size, None)
    for first in count(start * size, size):
        read = list(islice(texts, size))
        if not read:
            return
        kept = [row for row, (_, text) in enumerate(read) if text]
        yield Window(
            names=[read[row][0] for row in kept],
            rows=first + np.array(kept, dtype=np.int64),
            tokens=tokenise([read[row][1] for row in kept], tokenizer),
        )


def texts_of(files: Sequence[Path], separator: str, table: str = "documents") -> Iterator[tuple[Any, str]]:
    """The id and the text of each of the documents, or of the papers, in their order; the text may be empty."""
    names = [*TABLES[table].key, "title", "abstract", *TABLES[table].columns.keys() & {"more"}]
    for file in files:
        for batch in open_table(file, table).iter_batches(ROWS, columns=names):
            columns = (batch.column(name).to_pylist() for name in names)
            for document, title, abstract, *more in zip(*columns, strict=True):
                yield document, joined_text((title, abstract, *chain(*more)), separator)
