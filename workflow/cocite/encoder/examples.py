"""What an encoder learns from: examples over tokenised documents.

An example is a query, some positives and some negatives and, where the set tells them apart, an aspect and the kinds of
the negatives; a triplet is the smallest one. Where a set says so, spans of the documents stand for them, drawn again
for each epoch. The tokens stay on disk and are mapped into memory: millions of examples cost memory for their numbers
only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.encoder.documents import Documents, Spans, joined_documents
from cocite.encoder.teachers import Teacher
from cocite.encoder.tokens import open_tokens

Numbers = NDArray[np.int64]
Names = NDArray[np.str_]

WHOLE = 3
"""Stands for all roles of a paper, which is one document wherever it stands whole; the roles are numbered from 0."""


@dataclass(frozen=True, kw_only=True)
class ExampleFiles:
    """Where a set of examples lies."""

    table: Path
    """The table training_examples or validation_examples."""
    tokens: Path
    """The folder of the tokens of their documents, which `tokenise_table` wrote."""


def files_of_objectives(paths: Sequence[Path]) -> tuple[list[ExampleFiles], list[ExampleFiles]]:
    """The training and the validation sets of the objectives of a training: four paths each, one after the other.

    Raises `InputError` where paths are left over.
    """
    if len(paths) % 4:
        raise InputError(
            f"{len(paths)} paths are given; each objective has four: its training examples, their tokens, its "
            "validation examples and their tokens."
        )
    files = [ExampleFiles(table=table, tokens=tokens) for table, tokens in zip(paths[::2], paths[1::2], strict=True)]
    return files[::2], files[1::2]


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
    objectives: Numbers | None = None
    """The number of the objective that each example is for; None where there is one."""
    teachers: Mapping[str, Teacher] = field(default_factory=dict)
    """What graph embeddings know of the documents, by their names."""

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


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """Examples over numbered documents."""

    queries: Numbers
    """The number of the document that is each example's query."""
    positives: Links
    negatives: Links
    ids: Numbers
    """Corpus id of each document, in the order in which they first occur."""
    spans: "_AskedSpans | None"
    """The spans that may stand for each document; None where all are whole."""


def numbered_examples(table: pa.Table, path: Path) -> Numbered:
    """The examples of a table from `path`, with their documents numbered. Raises `InputError` where there are none."""
    if len(table) == 0:
        raise InputError(f"{path}: has no examples.")
    queries = table["query"].to_numpy()
    positives, negatives = (_links(table[name].combine_chunks()) for name in ("positives", "negatives"))
    ids = np.concatenate([queries, positives.documents, negatives.documents])
    asked = _asked_spans(table, positives, negatives)
    keys = ids if asked is None else _keys(ids, np.where(asked.shortest > 0, asked.roles, WHOLE))
    number, first = _by_first_occurrence(keys, _places(len(queries), positives, negatives))
    query, positive, negative = np.split(number, np.cumsum([len(queries), len(positives.documents)]))
    return Numbered(
        queries=query,
        positives=Links(documents=positive, starts=positives.starts),
        negatives=Links(documents=negative, starts=negatives.starts),
        ids=ids[first],
        spans=None if asked is None else _AskedSpans(*(column[first] for column in asked)),
    )


def open_examples(files: ExampleFiles, frame: tuple[int, int] = (1, 1)) -> Examples:
    """The examples of a table; spans keep as many tokens of a document's start and of its end as the frame says.

    Raises `InputError` where there are none, or one names a paper that has no tokens.
    """
    table = read_table(files.table, "training_examples").combine_chunks()
    numbered = numbered_examples(table, files.table)
    documents = _documents(files.tokens, numbered.ids)
    if numbered.spans is not None:
        spans = numbered.spans._asdict()
        documents = replace(documents, spans=Spans(**spans, papers=numbered.ids, head=frame[0], tail=frame[1]))
    return Examples(
        queries=numbered.queries,
        positives=numbered.positives,
        negatives=numbered.negatives,
        documents=documents,
        ids=numbered.ids,
        aspects=_names(table["aspect"]) if "aspect" in table.column_names else None,
        kinds=_kinds(table) if "negative_kinds" in table.column_names else None,
    )


def joined_examples(parts: Sequence[Examples]) -> Examples:
    """The examples of several objectives, numbered one part after the other; a whole document of several is one."""
    if len(parts) == 1:
        return parts[0]
    documents = joined_documents([part.documents for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    number = np.arange(len(ids))
    whole = number if documents.spans is None else np.flatnonzero(documents.spans.shortest == 0)
    _, first, of_each = np.unique(ids[whole], return_index=True, return_inverse=True)
    number[whole] = whole[first][of_each]
    before = np.cumsum([0, *(len(part.documents) for part in parts[:-1])])
    queries = [number[part.queries + start] for part, start in zip(parts, before, strict=True)]
    return Examples(
        queries=np.concatenate(queries),
        positives=_joined_links([part.positives for part in parts], number, before),
        negatives=_joined_links([part.negatives for part in parts], number, before),
        documents=documents,
        ids=ids,
        aspects=_joined_names([(part.aspects, len(part)) for part in parts]),
        kinds=_joined_names([(part.kinds, len(part.negatives.documents)) for part in parts]),
        objectives=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
    )


def _joined_links(parts: Sequence[Links], number: Numbers, before: Numbers) -> Links:
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    documents = [number[part.documents + start] for part, start in zip(parts, before, strict=True)]
    return Links(documents=np.concatenate(documents), starts=np.append(0, np.cumsum(sizes)))


def _joined_names(parts: Sequence[tuple[Names | None, int]]) -> Names | None:
    """The names of all parts, empty ones for those without; None where no part has any."""
    if all(names is None for names, _ in parts):
        return None
    return np.concatenate([np.full(count, "") if names is None else names for names, count in parts])


class _AskedSpans(NamedTuple):
    """For each document of each example, queries first: the spans that may stand for it."""

    shortest: Numbers
    longest: Numbers
    roles: Numbers


def _asked_spans(table: pa.Table, positives: Links, negatives: Links) -> _AskedSpans | None:
    """The spans that the examples of a table ask for; None where it asks for none."""
    if "shortest_span" not in table.column_names:
        return None
    owners = [
        np.arange(len(table)),
        *(np.repeat(np.arange(len(table)), np.diff(some.starts)) for some in (positives, negatives)),
    ]
    example = np.concatenate(owners)
    shortest, longest = (
        table[name].fill_null(none).to_numpy().astype(np.int64)[example]
        for name, none in (("shortest_span", 0), ("longest_span", np.iinfo(np.int32).max))
    )
    return _AskedSpans(shortest, longest, np.repeat(np.arange(len(owners)), [len(some) for some in owners]))


def _keys(ids: Numbers, roles: Numbers) -> Numbers:
    """One number for each pair of an id and a role."""
    _, paper = np.unique(ids, return_inverse=True)
    return paper * (WHOLE + 1) + roles


def _names(column: pa.ChunkedArray | pa.Array) -> Names:
    return column.fill_null("").to_numpy(zero_copy_only=False).astype(np.str_)


def _kinds(table: pa.Table) -> Names:
    """The kinds of all negatives; empty ones of examples that have none, which came as triplets."""
    kinds, sizes = (table[name].combine_chunks() for name in ("negative_kinds", "negatives"))
    counted = sizes.value_lengths().to_numpy()
    named = np.repeat(kinds.is_valid().to_numpy(zero_copy_only=False), counted)
    values = _names(kinds.flatten())
    found = np.full(len(named), "", dtype=values.dtype)
    found[named] = values
    return found


def _links(lists: pa.ListArray) -> Links:
    return Links(documents=lists.flatten().to_numpy(), starts=np.append(0, np.cumsum(lists.value_lengths().to_numpy())))


def _places(count: int, *links: Links) -> Numbers:
    """Where each document stands when the examples are read from front to back; the queries come first."""
    roles = 1 + len(links)
    owners = [np.repeat(np.arange(count), np.diff(some.starts)) for some in links]
    return np.concatenate([roles * np.arange(count), *(roles * owner + role for role, owner in enumerate(owners, 1))])


def _by_first_occurrence(keys: Numbers, places: Numbers) -> tuple[Numbers, Numbers]:
    """The number of each key's document, and where each document first occurs, by which they are numbered."""
    order = np.argsort(places, kind="stable")
    _, first, document = np.unique(keys[order], return_index=True, return_inverse=True)
    by_occurrence = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.argsort(by_occurrence)[document]
    return number, order[first[by_occurrence]]


def _documents(tokens: Path, ids: Numbers) -> Documents:
    """The tokens of the documents with these ids."""
    there, documents = open_tokens(tokens)
    order = np.argsort(there)
    row = order[np.minimum(np.searchsorted(there, ids, sorter=order), len(there) - 1)]
    missing = ids[there[row] != ids]
    if len(missing):
        raise InputError(f"{tokens}: has no tokens of paper {missing[0]}, nor of {len(missing) - 1:,} others.")
    return documents.chosen(row)
