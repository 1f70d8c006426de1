"""Shards of triplets with texts become examples, and examples become batches for the encoder and the losses.

An example is a query, some positives and some negatives; a triplet is the smallest one. The ids are read first: they
say which documents there are and where each occurs first. Then the texts stream by, and each document is tokenised at
that place, once, into one long array on disk that is mapped into memory: millions of examples cost memory for their
numbers only, and a training that goes on after a kill finds its tokens ready.

A document serves several queries: each distinct document of a batch is embedded once, by one of the processes, and the
losses find its vector by its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.encoder.tokens import (
    Documents,
    Tokenizer,
    features_of,
    joined_text,
    mapped,
    mini_batches_of_like_length,
    packed,
    tokenise_to,
)
from cocite.ground.errors import InputError
from cocite.tables.files import atomic_path, checked_files, open_table

Numbers = NDArray[np.int64]

ROLES = ("query", "positive", "negative")
ROWS = 4096
"""Triplets that are in memory with their texts."""
TOKENS_OF_A_START = {"cpu": 128, "cuda": 8192}
"""Tokens that take about as long as it takes to start a pass through the encoder and back. On a CPU that is between 20,
measured with six layers of width 384, and 200, with two of width 64; on a GPU it is an estimate."""


@dataclass(frozen=True, kw_only=True)
class Links:
    """Documents of each example, one example after the other."""

    documents: Numbers
    starts: Numbers
    """Where those of each example start and, at the end, where those of the last one end."""

    def of(self, examples: Numbers) -> tuple[Numbers, Numbers]:
        """The documents of some examples; first, for each, which of these examples it is of, counted from 0."""
        first, sizes = self.starts[examples], self.starts[examples + 1] - self.starts[examples]
        owner = np.repeat(np.arange(len(examples)), sizes)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return owner, self.documents[first[owner] + within]


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

    def __len__(self) -> int:
        """Count the examples."""
        return len(self.queries)


def examples_of_triplets(rows: Numbers, documents: Documents, ids: Numbers) -> Examples:
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
    """Tokenise the documents of a table training_texts, each once, into `folder`, unless they are there already.

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


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Examples over their distinct documents, whose vectors lie one after the other in the order of `documents`."""

    documents: Numbers
    """The number of each distinct document."""
    shares: tuple[int, ...]
    """How many of them each process embeds, one process after the other."""
    mini_batches: Sequence[dict[str, Any]]
    """The tokens of those that this process embeds; a mini-batch goes through the encoder together."""
    positives: Tensor
    """Pairs × (query, positive): places among the documents."""
    negatives: Tensor
    """Pairs × (query, negative)."""
    triplets: Tensor
    """Triplets × (query, positive, negative): each positive of an example with each of its negatives."""

    def to(self, device: torch.device) -> "Batch":
        """Copy it to a device."""
        places = {name: getattr(self, name).to(device) for name in ("positives", "negatives", "triplets")}
        tokens = [
            {name: value.to(device) if isinstance(value, Tensor) else value for name, value in some.items()}
            for some in self.mini_batches
        ]
        return replace(self, mini_batches=tokens, **places)


def arranged(examples: Examples, numbers: Numbers, processes: int = 1) -> Batch:
    """The examples of these numbers as a batch without tokens.

    The documents are dealt out to the processes by their length, so that each has about as many tokens as the others.
    """
    queries = examples.queries[numbers]
    (positive_of, positives), (negative_of, negatives) = (
        links.of(numbers) for links in (examples.positives, examples.negatives)
    )
    distinct, place = np.unique(np.concatenate([queries, positives, negatives]), return_inverse=True)
    by_length = np.argsort(-examples.documents.lengths_of(distinct), kind="stable")
    dealt = [by_length[process::processes] for process in range(processes)]
    order = np.concatenate(dealt)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    query, positive, negative = np.split(rank[place], np.cumsum([len(queries), len(positives)]))
    ends = np.cumsum(np.bincount(negative_of, minlength=len(numbers)))
    first, second = Links(documents=np.arange(len(negatives)), starts=np.append(0, ends)).of(positive_of)
    return Batch(
        documents=distinct[order],
        shares=tuple(map(len, dealt)),
        mini_batches=(),
        positives=_columns(query[positive_of], positive),
        negatives=_columns(query[negative_of], negative),
        triplets=_columns(query[positive_of[first]], positive[first], negative[second]),
    )


@dataclass(frozen=True, kw_only=True)
class Collator:
    """Makes of examples what the encoder and the losses take."""

    examples: Examples
    padding: int
    """Token id of the padding."""
    start: int = TOKENS_OF_A_START["cpu"]
    """Tokens that starting one more mini-batch costs as much as."""
    mini_batch_size: int | None = None
    """Documents of a mini-batch at most; None stands for no limit."""
    packs: bool = False
    """Whether the documents of a mini-batch lie one after the other, without padding."""
    process: int = 0
    processes: int = 1

    def __call__(self, numbers: Numbers) -> Batch:
        """The examples of these numbers, with the tokens of the documents that this process embeds."""
        batch = arranged(self.examples, numbers, self.processes)
        before = sum(batch.shares[: self.process])
        mine = batch.documents[before : before + batch.shares[self.process]]
        return replace(batch, mini_batches=self._packed(mine) if self.packs else self._padded(mine))

    def _packed(self, rows: Numbers) -> list[dict[str, Any]]:
        size = self.mini_batch_size or max(1, len(rows))
        return [packed(self.examples.documents, some) for some in np.split(rows, range(size, len(rows), size))]

    def _padded(self, rows: Numbers) -> list[dict[str, Any]]:
        documents = self.examples.documents
        lengths = documents.lengths_of(rows)
        cut = mini_batches_of_like_length(lengths, start=self.start, most=self.mini_batch_size)
        return [features_of(documents, rows[some], self.padding) for some in cut]


def _read(table: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    for path in checked_files(table, "training_texts"):
        yield from open_table(path, "training_texts").iter_batches(ROWS, columns=columns)


def _number(table: Path) -> tuple[Numbers, Numbers, Numbers]:
    """The triplets as numbers of documents; for each document, where it first occurs (row × 3 + role), and its id."""
    read = [[batch.column(role).to_numpy() for role in ROLES] for batch in _read(table, list(ROLES))]
    ids = np.concatenate([np.empty((0, len(ROLES)), np.int64), *(np.stack(columns, axis=1) for columns in read)])
    distinct, first, document = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number[document].reshape(ids.shape), first[order], distinct[order]


def _texts(table: Path, first: Numbers, separator: str) -> Iterator[list[str]]:
    """The text of each document at the place where it first occurs, some at a time."""
    start = 0
    for batch in _read(table):
        end = start + len(ROLES) * len(batch)
        row, role = np.divmod(first[slice(*np.searchsorted(first, [start, end]))] - start, len(ROLES))
        texts = np.empty(len(row), dtype=object)
        for number, name in enumerate(ROLES):
            rows = pa.array(row[role == number])
            parts = [batch.column(f"{name}_{part}").take(rows).to_pylist() for part in ("title", "abstract")]
            texts[role == number] = [joined_text(described, separator) for described in zip(*parts, strict=True)]
        start = end
        yield texts.tolist()


def _columns(*columns: Numbers) -> Tensor:
    return torch.from_numpy(np.stack(columns, axis=1))
