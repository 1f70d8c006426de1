"""Examples become batches for the encoder and the losses.

A document serves several queries: each distinct document of a batch is embedded once, by one of the processes, and the
losses find its vector by its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.config.models import Comparison
from cocite.encoder.documents import Documents
from cocite.encoder.examples import Examples, Links, Names, Numbers
from cocite.encoder.tokens import features_of, mini_batches_of_like_length, packed, runs_of

TOKENS_OF_A_START = {"cpu": 128, "cuda": 32_768}
"""Tokens that take about as long as it takes to start a pass through the encoder and back. On a CPU that is between 20,
measured with six layers of width 384, and 200, with two of width 64; on a GPU it is an estimate."""

BEFORE_THE_FIRST = -1
"""Stands for the epoch whose spans are validated on."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What a loss compares: places among the documents of a batch."""

    positives: Tensor
    """Pairs × (query, positive)."""
    negatives: Tensor
    """Pairs × (query, negative)."""
    triplets: Tensor
    """Triplets × (query, positive, negative): each positive of an example with each of its negatives."""

    def on(self, device: torch.device) -> "Compared":
        """A copy on a device."""
        return Compared(
            **{name: _moved(getattr(self, name), device) for name in ("positives", "negatives", "triplets")}
        )


@dataclass(frozen=True, kw_only=True)
class Part:
    """The examples of a batch that a loss compares in one space."""

    aspect: str
    """Their aspect; empty where they have none."""
    share: float
    """Share of the batch's examples."""
    compared: Compared


@dataclass(frozen=True, kw_only=True)
class Batch(Compared):
    """Examples over their distinct documents, whose vectors lie one after the other in the order of `documents`.

    As such it compares all of its examples.
    """

    documents: Numbers
    """The number of each distinct document."""
    tokens: Documents
    """Their tokens, with the spans that were drawn."""
    shares: tuple[int, ...]
    """How many of them each process embeds, one process after the other."""
    mini_batches: Sequence[dict[str, Any]]
    """The tokens of those that this process embeds; a mini-batch goes through the encoder together."""
    parts: Sequence[Sequence[Part]] = ()
    """What each of the losses compares, by aspect."""

    def to(self, device: torch.device) -> "Batch":
        """Copy it to a device, without waiting for it."""
        tokens = [
            {name: _moved(value, device) if isinstance(value, Tensor) else value for name, value in some.items()}
            for some in self.mini_batches
        ]
        parts = [[replace(part, compared=part.compared.on(device)) for part in of_term] for of_term in self.parts]
        return replace(self, mini_batches=tokens, parts=parts, **vars(self.on(device)))


class Role(NamedTuple):
    """The positives of some examples, or their negatives."""

    of: Numbers
    """The example that each is of, counted from 0."""
    places: Numbers
    """Its place among the documents of a batch."""

    def only(self, is_chosen: NDArray[np.bool_]) -> "Role":
        """Those that are chosen."""
        return Role(self.of[is_chosen], self.places[is_chosen])


def arranged(
    examples: Examples,
    numbers: Numbers,
    *,
    epochs: Numbers | None = None,
    seed: int = 0,
    processes: int = 1,
    comparisons: Sequence[Comparison] = (),
) -> Batch:
    """The examples of these numbers as a batch without mini-batches, with the parts that each of the losses compares.

    Spans are drawn by the seed and the epoch of each example; without epochs, by that which comes before the first. The
    documents are dealt out to the processes by their length, so that each has about as many tokens as the others.
    """
    queries = examples.queries[numbers]
    (positive_of, positive_at), (negative_of, negative_at) = (
        links.places_of(numbers) for links in (examples.positives, examples.negatives)
    )
    positives, negatives = examples.positives.documents[positive_at], examples.negatives.documents[negative_at]
    of_each = np.full(len(numbers), BEFORE_THE_FIRST) if epochs is None else epochs
    epoch = np.concatenate([of_each, of_each[positive_of], of_each[negative_of]])
    distinct, place, tokens = _distinct(
        examples.documents, np.concatenate([queries, positives, negatives]), epoch, seed
    )
    by_length = np.argsort(-tokens.lengths, kind="stable")
    dealt = [by_length[process::processes] for process in range(processes)]
    order = np.concatenate(dealt)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    query, positive, negative = np.split(rank[place], np.cumsum([len(queries), len(positives)]))
    near, far = Role(positive_of, positive), Role(negative_of, negative)
    aspects = np.full(len(numbers), "") if examples.aspects is None else examples.aspects[numbers]
    kinds = np.full(len(negatives), "") if examples.kinds is None else examples.kinds[negative_at]
    objectives = np.zeros(len(numbers), dtype=np.int64) if examples.objectives is None else examples.objectives[numbers]
    return Batch(
        documents=distinct[order],
        tokens=tokens.chosen(order),
        shares=tuple(map(len, dealt)),
        mini_batches=(),
        parts=[list(_parts(query, near, far, aspects, kinds, objectives, each)) for each in comparisons],
        **vars(_compared(query, near, far)),
    )


def _distinct(documents: Documents, numbers: Numbers, epochs: Numbers, seed: int) -> tuple[Numbers, Numbers, Documents]:
    """The distinct documents among some, the place of each among them, and their tokens.

    A span that is drawn for two epochs is two documents.
    """
    if documents.spans is None:
        distinct, place = np.unique(numbers, return_inverse=True)
        return distinct, place, documents.chosen(distinct)
    epoch_of = np.where(documents.spans.shortest[numbers] > 0, epochs, BEFORE_THE_FIRST)
    keys = (epoch_of - BEFORE_THE_FIRST) * len(documents) + numbers
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    distinct = numbers[first]
    return distinct, place, documents.chosen(distinct).drawn(seed, epoch_of[first])


def _parts(
    query: Numbers, near: Role, far: Role, aspects: Names, kinds: Names, objectives: Numbers, comparison: Comparison
) -> Iterator[Part]:
    """What a loss compares, by aspect: examples of its objectives with negatives of the kinds that it sees."""
    counts = np.ones(len(query), dtype=bool)
    if comparison.objectives is not None:
        counts = np.isin(objectives, list(comparison.objectives))
    if comparison.negatives is not None:
        far = far.only(np.isin(kinds, comparison.negatives))
        counts &= np.bincount(far.of, minlength=len(query)) > 0
    for aspect in np.unique(aspects):
        chosen = counts & (aspects == aspect)
        if chosen.any():
            compared = _compared(query, near.only(chosen[near.of]), far.only(chosen[far.of]))
            yield Part(aspect=str(aspect), share=float(chosen.mean()), compared=compared)


def _compared(query: Numbers, near: Role, far: Role) -> Compared:
    ends = np.cumsum(np.bincount(far.of, minlength=len(query)))
    first, second = Links(documents=far.places, starts=np.append(0, ends)).places_of(near.of)
    return Compared(
        positives=_columns(query[near.of], near.places),
        negatives=_columns(query[far.of], far.places),
        triplets=_columns(query[near.of[first]], near.places[first], far.places[second]),
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
    comparisons: Sequence[Comparison] = ()
    """What is computed of the examples."""
    seed: int = 0
    """What spans follow from, beside the epoch and the paper."""

    def __call__(self, numbers: Numbers, epochs: Numbers | None = None) -> Batch:
        """The examples of these numbers in these epochs, with the tokens of the documents that this process embeds."""
        batch = arranged(
            self.examples,
            numbers,
            epochs=epochs,
            seed=self.seed,
            processes=self.processes,
            comparisons=self.comparisons,
        )
        before = sum(batch.shares[: self.process])
        mine = np.arange(before, before + batch.shares[self.process])
        return replace(batch, mini_batches=(self._packed if self.packs else self._padded)(batch.tokens, mine))

    def _packed(self, documents: Documents, rows: Numbers) -> list[dict[str, Any]]:
        cut = runs_of(documents.lengths[rows], self.mini_batch_tokens)
        return [packed(documents, rows[some], first_position=self.first_position) for some in cut]

    def _padded(self, documents: Documents, rows: Numbers) -> list[dict[str, Any]]:
        lengths = documents.lengths[rows]
        cut = mini_batches_of_like_length(lengths, start=self.start, most=self.mini_batch_tokens)
        return [features_of(documents, rows[some], self.padding) for some in cut]


def _columns(*columns: Numbers) -> Tensor:
    return torch.from_numpy(np.stack(columns, axis=1))


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy on a device. From pinned memory a GPU takes it when it gets there, and the CPU goes on."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
