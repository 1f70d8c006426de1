"""The documents of a table in windows: some thousand documents with their tokens, of which batches are made.

A window is as many documents as lie one after the other in the table, with a text or without; so it follows from the
table alone which documents are in it, and the windows that are done need not be read closely.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.encoder.texts import Documents, joined_text, separator_of, tokenise
from cocite.files import open_table

WINDOW = 16_384
"""Documents that are in memory at once with their texts and tokens, and sorted by length together."""
ROWS = 1024
"""Documents that are read at once."""

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Window:
    """The documents of a window that have a text."""

    names: list[str]
    """Their ids."""
    rows: NDArray[np.int64]
    """Their places in the table."""
    tokens: Documents
    """Their tokens."""


def tokenised_windows(files: Sequence[Path], encoder: Any, *, start: int, size: int) -> Iterator[Window]:
    """The windows of `size` documents, from the one of number `start` on."""
    texts = islice(texts_of(files, separator_of(encoder.tokenizer)), start * size, None)
    for first in count(start * size, size):
        read = list(islice(texts, size))
        if not read:
            return
        kept = [row for row, (_, text) in enumerate(read) if text]
        yield Window(
            names=[read[row][0] for row in kept],
            rows=first + np.array(kept, dtype=np.int64),
            tokens=tokenise([read[row][1] for row in kept], encoder.tokenizer, encoder.max_seq_length),
        )


def texts_of(files: Sequence[Path], separator: str) -> Iterator[tuple[str, str]]:
    """The id and the text of each document in the order of the table; the text may be empty."""
    for file in files:
        batches = open_table(file, "documents").iter_batches(ROWS, columns=["document", "title", "abstract", "more"])
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("document", "title", "abstract", "more"))
            for document, title, abstract, more in zip(*columns, strict=True):
                yield document, joined_text((title, abstract, *more), separator)


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, the next one being made in a thread while one is worked on."""
    with ThreadPoolExecutor(1) as thread:
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item
