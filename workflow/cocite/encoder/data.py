"""What an encoder learns from: examples over tokenised documents.

An example is a query with some positives and negatives and, if the set has them, an aspect and the kinds of the
negatives; a triplet is the smallest one. Tokens are mapped from disk, so that memory holds only numbers of documents.
Spans may stand for documents, drawn again for each epoch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.errors import InputError
from cocite.core.randomness import fractions, priorities
from cocite.core.tables.files import read_table

Numbers = NDArray[np.int64]
Names = NDArray[np.str_]

ROW = 128
"""Packed rows are a multiple of so many tokens long: products of matrices are fastest so, and memory is reused."""
WHOLE = 3
"""Stands for all roles of a paper, which is one document wherever it is whole; the roles are numbered from 0."""


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Spans of documents (independent cropping; Izacard et al., 2022): consecutive tokens, within a frame of those that
    every document starts and ends with."""

    shortest: Numbers
    """Minimum length of each document's span, in tokens without the frame; 0 for a whole document."""
    longest: Numbers
    """Maximum length."""
    papers: Numbers
    """The paper of each document."""
    roles: Numbers
    """Its role in its examples: each role of a paper has its own spans."""
    head: int
    """Tokens of the frame before the span."""
    tail: int
    """Tokens of the frame after it."""

    def chosen(self, rows: Numbers) -> "Spans":
        """Those of some documents."""
        columns = {name: getattr(self, name)[rows] for name in ("shortest", "longest", "papers", "roles")}
        return replace(self, **columns)


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Tokens of documents."""

    files: Sequence[NDArray[np.int32]]
    """Token ids, one document after the other."""
    file_of: NDArray[np.int8]
    """The file of each document."""
    starts: Numbers
    """Where each document starts in its file."""
    lengths: Numbers
    """Tokens of each document."""
    spans: Spans | None = None
    """Which documents are spans; None if all are whole."""
    offsets: Numbers | None = None
    """Tokens between a document's head and the span that was drawn."""
    whole: Numbers | None = None
    """Tokens of each document before its span was drawn."""

    def __len__(self) -> int:
        """Count the documents."""
        return len(self.starts)

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """The token ids of a document."""
        file, start, length = self.files[self.file_of[row]], self.starts[row], self.lengths[row]
        if self.spans is None or self.offsets is None or self.whole is None or length == self.whole[row]:
            return file[start : start + length]
        head, tail, end = self.spans.head, self.spans.tail, start + self.whole[row]
        first = start + head + self.offsets[row]
        span = file[first : first + length - head - tail]
        return np.concatenate([file[start : start + head], span, file[end - tail : end]])

    def chosen(self, rows: Numbers) -> "Documents":
        """Some documents, in the order of `rows`."""
        names = ("file_of", "starts", "lengths", *(() if self.offsets is None else ("offsets", "whole")))
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        return replace(self, spans=self.spans and self.spans.chosen(rows), **taken)

    def drawn(self, seed: int, epochs: Numbers | int) -> "Documents":
        """The documents with their spans, which depend only on seed, epoch, paper and role.

        The length is drawn uniformly from all that are allowed, then the start from all at which that length fits.
        """
        if self.spans is None:
            return self
        spans = self.spans
        columns = (np.broadcast_to(epochs, len(self)), spans.papers, spans.roles)
        content = self.lengths - spans.head - spans.tail
        least, most = np.minimum(spans.shortest, content), np.minimum(spans.longest, content)
        drawn = least + _below(priorities(seed, "length of a span", *columns), most - least + 1)
        offsets = _below(priorities(seed, "start of a span", *columns), content - drawn + 1)
        is_span = (spans.shortest > 0) & (content > 0)
        lengths = np.where(is_span, drawn + spans.head + spans.tail, self.lengths)
        return replace(self, lengths=lengths, offsets=np.where(is_span, offsets, 0), whole=self.lengths)

    def padded(self, rows: Sequence[int] | Numbers, padding: int) -> dict[str, Any]:
        """Input of the transformer: token ids and attention mask of some documents, rows × tokens of the longest."""
        lengths = self.lengths[np.asarray(rows, dtype=np.int64)]
        mask = (np.arange(lengths.max(initial=1)) < lengths[:, None]).astype(np.int64)
        ids = np.full(mask.shape, padding, dtype=np.int64)
        for line, row in enumerate(rows):
            ids[line, : lengths[line]] = self[row]
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}

    def packed(self, rows: Numbers, first_position: int = 0) -> dict[str, Any]:
        """Input of the transformer, by its names for packed documents: token ids in one row, and where each one starts.

        A document of filling comes last, which makes the row a multiple of `ROW` long.
        """
        filling = ROW - self.lengths[rows].sum() % ROW
        lengths = np.append(self.lengths[rows], filling)
        ends = np.cumsum(lengths)
        ids = np.concatenate([*(self[row] for row in rows), np.zeros(filling, dtype=np.int32)])
        positions = count_within(lengths)
        positions[-filling:] = 0
        return {
            "input_ids": torch.from_numpy(ids.astype(np.int64))[None],
            "position_ids": torch.from_numpy(first_position + positions)[None],
            "cu_seq_lens_q": torch.from_numpy(np.append(0, ends).astype(np.int32)),
            "max_length_q": int(lengths.max()),
        }


def count_within(sizes: Numbers) -> Numbers:
    """0, 1, … n − 1 for each size n, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _below(numbers: NDArray[np.uint64], bounds: Numbers) -> Numbers:
    """Random 64-bit numbers as whole numbers below the bounds, each of which is at least 1."""
    return np.minimum((fractions(numbers) * bounds).astype(np.int64), bounds - 1)


def moved(value: Any, device: torch.device) -> Any:
    """A tensor, or all of a mapping, on a device; copied to a GPU from pinned memory, without waiting."""
    if isinstance(value, Mapping):
        return {name: moved(each, device) for name, each in value.items()}
    if not isinstance(value, Tensor) or device.type != "cuda":
        return value
    return value.pin_memory().to(device, non_blocking=True)


def documents_in(tokens: NDArray[np.int32], lengths: Numbers) -> Documents:
    """The documents of these lengths, one after the other in the tokens."""
    file_of = np.zeros(len(lengths), dtype=np.int8)
    return Documents(files=[tokens], file_of=file_of, starts=np.cumsum(lengths) - lengths, lengths=lengths)


def documents_of(tokens: Sequence[NDArray[np.int32]]) -> Documents:
    """The documents with these tokens, in memory."""
    lengths = np.array([len(some) for some in tokens], dtype=np.int64)
    return documents_in(np.concatenate([np.empty(0, np.int32), *tokens]), lengths)


def open_tokens(folder: Path) -> tuple[Numbers, Documents]:
    """The corpus ids of the documents that `tokenise_table` wrote, and their tokens, mapped from disk."""
    ids, lengths = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("ids", "lengths"))
    tokens = np.memmap(folder / "tokens.bin", dtype=np.int32, mode="r")
    return ids, documents_in(tokens, lengths)


def joined_documents(parts: Sequence[Documents]) -> Documents:
    """The documents of all parts, each part in its own files."""
    before = np.cumsum([0, *(len(part.files) for part in parts[:-1])])
    file_of = [part.file_of + first for part, first in zip(parts, before, strict=True)]
    spans = next((part.spans for part in parts if part.spans is not None), None)
    if spans is not None:
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part.spans, name, np.zeros(len(part), np.int64)) for part in parts])
            for name in ("shortest", "longest", "papers", "roles")
        }
        spans = replace(spans, **columns)
    return Documents(
        files=[file for part in parts for file in part.files],
        file_of=np.concatenate(file_of).astype(np.int8),
        starts=np.concatenate([part.starts for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        spans=spans,
    )


@dataclass(frozen=True, kw_only=True)
class ExampleFiles:
    """The files of a set of examples."""

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

    @property
    def owners(self) -> Numbers:
        """The example that each document is of."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def places_of(self, examples: Numbers) -> tuple[Numbers, Numbers]:
        """The example, by its place in `examples`, and the place of each document of some examples."""
        sizes = self.starts[examples + 1] - self.starts[examples]
        owner = np.repeat(np.arange(len(examples)), sizes)
        return owner, self.starts[examples][owner] + count_within(sizes)

    def of(self, examples: Numbers) -> "Links":
        """Those of some examples."""
        starts = np.append(0, np.cumsum(self.starts[examples + 1] - self.starts[examples]))
        return Links(documents=self.documents[self.places_of(examples)[1]], starts=starts)

    def only(self, is_kept: NDArray[np.bool_]) -> "Links":
        """Those whose documents are kept."""
        before = np.append(0, np.cumsum(is_kept))
        return Links(documents=self.documents[is_kept], starts=before[self.starts])


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """The vectors of documents in a graph embedding."""

    rows: Numbers
    """The row of each document's vector; −1 if it has none, as texts that are no papers."""
    vectors: NDArray[np.float32]

    @property
    def untaught(self) -> int:
        """Number of documents without a vector."""
        return int(np.count_nonzero(self.rows < 0))


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """Examples over numbered documents."""

    queries: Numbers
    """The document of each example's query."""
    positives: Links
    negatives: Links
    ids: Numbers
    """Corpus id of each document; they are numbered in the order of their first occurrence."""


@dataclass(frozen=True, kw_only=True)
class Examples(Numbered):
    """Examples over tokenised documents."""

    documents: Documents
    aspects: Names | None = None
    """The aspect of each example, empty for none; None if the set has no aspects."""
    kinds: Names | None = None
    """The kind of each negative, likewise."""
    objectives: Numbers | None = None
    """The objective of each example; None if there is one for all."""
    teachers: Mapping[str, Teacher] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the examples."""
        return len(self.queries)

    def with_negatives(self, kinds: Sequence[str]) -> "Examples":
        """The examples with only negatives of these kinds. Raises `InputError` if they have no kinds."""
        if self.kinds is None:
            raise InputError(f"An objective asks for negatives that are {kinds[0]}, and the examples tell no kinds.")
        is_kept = np.isin(self.kinds, kinds)
        return replace(self, negatives=self.negatives.only(is_kept), kinds=self.kinds[is_kept])


def numbered_examples(table: pa.Table, path: Path, frame: tuple[int, int] = (1, 1)) -> tuple[Numbered, Spans | None]:
    """The examples of a table from `path`, and the spans of their documents; None if all are whole.

    `frame` is the head and the tail of spans. Raises `InputError` if there are no examples.
    """
    if len(table) == 0:
        raise InputError(f"{path}: has no examples.")
    queries = table["query"].to_numpy()
    positives, negatives = (
        Links(documents=lists.flatten().to_numpy(), starts=np.append(0, np.cumsum(lists.value_lengths().to_numpy())))
        for lists in (table[name].combine_chunks() for name in ("positives", "negatives"))
    )
    ids = np.concatenate([queries, positives.documents, negatives.documents])
    example = np.concatenate([np.arange(len(table)), positives.owners, negatives.owners])
    roles = np.repeat(np.arange(3), [len(queries), len(positives.documents), len(negatives.documents)])
    keys, spans = ids, None
    if "shortest_span" in table.column_names:
        shortest, longest = (
            table[name].fill_null(none).to_numpy().astype(np.int64)[example]
            for name, none in (("shortest_span", 0), ("longest_span", np.iinfo(np.int32).max))
        )
        spans = Spans(shortest=shortest, longest=longest, papers=ids, roles=roles, head=frame[0], tail=frame[1])
        _, paper = np.unique(ids, return_inverse=True)
        keys = paper * (WHOLE + 1) + np.where(shortest > 0, roles, WHOLE)
    number, first = _by_first_occurrence(keys, 3 * example + roles)
    query, positive, negative = np.split(number, np.cumsum([len(queries), len(positives.documents)]))
    numbered = Numbered(
        queries=query,
        positives=replace(positives, documents=positive),
        negatives=replace(negatives, documents=negative),
        ids=ids[first],
    )
    return numbered, spans and spans.chosen(first)


def _by_first_occurrence(keys: Numbers, places: Numbers) -> tuple[Numbers, Numbers]:
    """The number of each key's document, and where each document first occurs, in the order of the places."""
    order = np.argsort(places, kind="stable")
    _, first, document = np.unique(keys[order], return_index=True, return_inverse=True)
    by_occurrence = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.argsort(by_occurrence)[document]
    return number, order[first[by_occurrence]]


def open_examples(files: ExampleFiles, frame: tuple[int, int] = (1, 1)) -> Examples:
    """The examples of a table (see `numbered_examples`). Raises `InputError` if a paper has no tokens."""
    table = read_table(files.table, "training_examples").combine_chunks()
    numbered, spans = numbered_examples(table, files.table, frame)
    there, documents = open_tokens(files.tokens)
    order = np.argsort(there)
    row = order[np.minimum(np.searchsorted(there, numbered.ids, sorter=order), len(there) - 1)]
    missing = numbered.ids[there[row] != numbered.ids]
    if len(missing):
        raise InputError(f"{files.tokens}: has no tokens of paper {missing[0]}, nor of {len(missing) - 1:,} others.")
    return Examples(
        **vars(numbered),
        documents=replace(documents.chosen(row), spans=spans),
        aspects=_names(table["aspect"]) if "aspect" in table.column_names else None,
        kinds=_kinds(table) if "negative_kinds" in table.column_names else None,
    )


def _names(column: pa.ChunkedArray | pa.Array) -> Names:
    return column.fill_null("").to_numpy(zero_copy_only=False).astype(np.str_)


def _kinds(table: pa.Table) -> Names:
    """The kinds of all negatives; empty for examples without, which came as triplets."""
    kinds, sizes = (table[name].combine_chunks() for name in ("negative_kinds", "negatives"))
    is_named = np.repeat(kinds.is_valid().to_numpy(zero_copy_only=False), sizes.value_lengths().to_numpy())
    values = _names(kinds.flatten())
    of_negatives = np.full(len(is_named), "", dtype=values.dtype)
    of_negatives[is_named] = values
    return of_negatives


def joined_examples(parts: Sequence[Examples]) -> Examples:
    """The examples of several objectives, one part after the other; a whole document of several is one."""
    if len(parts) == 1:
        return parts[0]
    documents = joined_documents([part.documents for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    number = np.arange(len(ids))
    whole = number if documents.spans is None else np.flatnonzero(documents.spans.shortest == 0)
    _, first, of_each = np.unique(ids[whole], return_index=True, return_inverse=True)
    number[whole] = whole[first][of_each]
    before = np.cumsum([0, *(len(part.documents) for part in parts[:-1])])

    def joined(numbers: Sequence[Numbers]) -> Numbers:
        return number[np.concatenate([some + start for some, start in zip(numbers, before, strict=True)])]

    def joined_links(links: Sequence[Links]) -> Links:
        sizes = np.concatenate([np.diff(each.starts) for each in links])
        return Links(documents=joined([each.documents for each in links]), starts=np.append(0, np.cumsum(sizes)))

    return Examples(
        queries=joined([part.queries for part in parts]),
        positives=joined_links([part.positives for part in parts]),
        negatives=joined_links([part.negatives for part in parts]),
        documents=documents,
        ids=ids,
        aspects=_joined_names([(part.aspects, len(part)) for part in parts]),
        kinds=_joined_names([(part.kinds, len(part.negatives.documents)) for part in parts]),
        objectives=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
    )


def _joined_names(parts: Sequence[tuple[Names | None, int]]) -> Names | None:
    if all(names is None for names, _ in parts):
        return None
    return np.concatenate([np.full(count, "") if names is None else names for names, count in parts])
