"""What an encoder learns from: examples over tokenised documents.

An example is a query, some positives and some negatives and, where the set tells them apart, an aspect and the kinds of
the negatives; a triplet is the smallest one. The tokens stay on disk and are
mapped into memory: millions of examples cost memory for their numbers only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.encoder.tokens import Documents, open_tokens
from cocite.ground.errors import InputError
from cocite.tables.files import read_table

Numbers = NDArray[np.int64]
Names = NDArray[np.str_]


@dataclass(frozen=True, kw_only=True)
class ExampleFiles:
    """Where a set of examples lies."""

    table: Path
    """The table training_examples or validation_examples."""
    tokens: Path
    """The folder of the tokens of their documents, which `tokenise_table` wrote."""


@dataclass(frozen=True, kw_only=True)
class Links:
    """Documents of each example, one example after the other."""

    documents: Numbers
    starts: Numbers
    """Where those of each example start and, at the end, where those of the last one end."""

    def places_of(self, examples: Numbers) -> tuple[Numbers, Numbers]:
        """Where the documents of some examples stand; first, for each, which of these examples it is of, from 0."""
        first, sizes = self.starts[examples], self.starts[examples + 1] - self.starts[examples]
        owner = np.repeat(np.arange(len(examples)), sizes)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return owner, first[owner] + within


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Examples over tokenised documents."""

    queries: Numbers
    """The number of the document that is each example's query."""
    positives: Links
    negatives: Links
    documents: Documents
    """The distinct documents in the order in which they first occur."""
    ids: Numbers
    """Corpus id of each document."""
    aspects: Names | None = None
    """The aspect of each example, empty where it has none; None where the set does not tell them apart."""
    kinds: Names | None = None
    """The kind of each negative, likewise."""

    def __len__(self) -> int:
        """Count the examples."""
        return len(self.queries)

    def with_negatives(self, kinds: Sequence[str]) -> "Examples":
        """The examples with negatives of these kinds alone. Raises `InputError` where they have no kinds."""
        if self.kinds is None:
            raise InputError(
                f"The negatives of the examples have no kinds, and those that are {kinds[0]} are asked for."
            )
        kept = np.isin(self.kinds, kinds)
        before = np.append(0, np.cumsum(kept))
        links = Links(documents=self.negatives.documents[kept], starts=before[self.negatives.starts])
        return replace(self, negatives=links, kinds=self.kinds[kept])


def open_examples(files: ExampleFiles) -> Examples:
    """The examples of a table. Raises `InputError` where it has none, or names a paper that has no tokens."""
    table = read_table(files.table, "training_examples").combine_chunks()
    if len(table) == 0:
        raise InputError(f"{files.table}: has no examples.")
    queries = table["query"].to_numpy()
    positives, negatives = (_links(table[name].combine_chunks()) for name in ("positives", "negatives"))
    ids = np.concatenate([queries, positives.documents, negatives.documents])
    number, distinct = _by_first_occurrence(ids, _places(len(queries), positives, negatives))
    query, positive, negative = np.split(number, np.cumsum([len(queries), len(positives.documents)]))
    return Examples(
        queries=query,
        positives=Links(documents=positive, starts=positives.starts),
        negatives=Links(documents=negative, starts=negatives.starts),
        documents=_documents(files.tokens, distinct),
        ids=distinct,
        aspects=_names(table["aspect"]) if "aspect" in table.column_names else None,
        kinds=_kinds(table) if "negative_kinds" in table.column_names else None,
    )


def _names(column: pa.ChunkedArray | pa.Array) -> Names:
    return column.fill_null("").to_numpy(zero_copy_only=False).astype(np.str_)


def _kinds(table: pa.Table) -> Names:
    """The kinds of all negatives; empty ones of examples that have none, which came as triplets."""
    kinds, sizes = (table[name].combine_chunks() for name in ("negative_kinds", "negatives"))
    counted = sizes.value_lengths().to_numpy()
    named = np.repeat(kinds.is_valid().to_numpy(zero_copy_only=False), counted)
    found = np.full(len(named), "", dtype="<U8")
    found[named] = _names(kinds.flatten())
    return found


def _links(lists: pa.ListArray) -> Links:
    return Links(documents=lists.flatten().to_numpy(), starts=np.append(0, np.cumsum(lists.value_lengths().to_numpy())))


def _places(count: int, *links: Links) -> Numbers:
    """Where each document stands when the examples are read from front to back; the queries come first."""
    roles = 1 + len(links)
    owners = [np.repeat(np.arange(count), np.diff(some.starts)) for some in links]
    return np.concatenate([roles * np.arange(count), *(roles * owner + role for role, owner in enumerate(owners, 1))])


def _by_first_occurrence(ids: Numbers, places: Numbers) -> tuple[Numbers, Numbers]:
    """The number of the document of each id, and the ids of the documents, which are numbered as they first occur."""
    order = np.argsort(places, kind="stable")
    distinct, first, document = np.unique(ids[order], return_index=True, return_inverse=True)
    by_occurrence = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.argsort(by_occurrence)[document]
    return number, distinct[by_occurrence]


def _documents(tokens: Path, ids: Numbers) -> Documents:
    """The tokens of the documents with these ids."""
    there, documents = open_tokens(tokens)
    order = np.argsort(there)
    row = order[np.minimum(np.searchsorted(there, ids, sorter=order), len(there) - 1)]
    missing = ids[there[row] != ids]
    if len(missing):
        raise InputError(f"{tokens}: has no tokens of paper {missing[0]}, nor of {len(missing) - 1:,} others.")
    return documents.chosen(row)
