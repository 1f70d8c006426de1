"""Examples become batches for the encoder and the losses.

A document serves several queries: each distinct document of a batch is embedded once, by one of the processes, and the
losses find its vector by its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cocite.encoder.examples import Examples, Links, Numbers
from cocite.encoder.tokens import features_of, mini_batches_of_like_length, packed, runs_of

TOKENS_OF_A_START = {"cpu": 128, "cuda": 32_768}
"""Tokens that take about as long as it takes to start a pass through the encoder and back. On a CPU that is between 20,
measured with six layers of width 384, and 200, with two of width 64; on a GPU it is an estimate."""


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
    by_length = np.argsort(-examples.documents.lengths[distinct], kind="stable")
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
    mini_batch_tokens: int | None = None
    """Tokens of a mini-batch at most, padding counted, but for one of a single document; None stands for no limit."""
    packs: bool = False
    """Whether the documents of a mini-batch lie one after the other, without padding."""
    first_position: int = 0
    """Position of the first token of a packed document."""
    process: int = 0
    processes: int = 1

    def __call__(self, numbers: Numbers) -> Batch:
        """The examples of these numbers, with the tokens of the documents that this process embeds."""
        batch = arranged(self.examples, numbers, self.processes)
        before = sum(batch.shares[: self.process])
        mine = batch.documents[before : before + batch.shares[self.process]]
        return replace(batch, mini_batches=self._packed(mine) if self.packs else self._padded(mine))

    def _packed(self, rows: Numbers) -> list[dict[str, Any]]:
        documents = self.examples.documents
        cut = runs_of(documents.lengths[rows], self.mini_batch_tokens)
        return [packed(documents, rows[some], first_position=self.first_position) for some in cut]

    def _padded(self, rows: Numbers) -> list[dict[str, Any]]:
        documents = self.examples.documents
        lengths = documents.lengths[rows]
        cut = mini_batches_of_like_length(lengths, start=self.start, most=self.mini_batch_tokens)
        return [features_of(documents, rows[some], self.padding) for some in cut]


def _columns(*columns: Numbers) -> Tensor:
    return torch.from_numpy(np.stack(columns, axis=1))
