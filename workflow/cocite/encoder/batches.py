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

from cocite.config.models import Term
from cocite.encoder.examples import Examples, Links, Names, Numbers
from cocite.encoder.tokens import features_of, mini_batches_of_like_length, packed, runs_of

TOKENS_OF_A_START = {"cpu": 128, "cuda": 32_768}
"""Tokens that take about as long as it takes to start a pass through the encoder and back. On a CPU that is between 20,
measured with six layers of width 384, and 200, with two of width 64; on a GPU it is an estimate."""


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


def arranged(examples: Examples, numbers: Numbers, processes: int = 1, terms: Sequence[Term] = ()) -> Batch:
    """The examples of these numbers as a batch without tokens, with the parts that each of the losses compares.

    The documents are dealt out to the processes by their length, so that each has about as many tokens as the others.
    """
    queries = examples.queries[numbers]
    (positive_of, positive_at), (negative_of, negative_at) = (
        links.places_of(numbers) for links in (examples.positives, examples.negatives)
    )
    positives, negatives = examples.positives.documents[positive_at], examples.negatives.documents[negative_at]
    distinct, place = np.unique(np.concatenate([queries, positives, negatives]), return_inverse=True)
    by_length = np.argsort(-examples.documents.lengths[distinct], kind="stable")
    dealt = [by_length[process::processes] for process in range(processes)]
    order = np.concatenate(dealt)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    query, positive, negative = np.split(rank[place], np.cumsum([len(queries), len(positives)]))
    near, far = Role(positive_of, positive), Role(negative_of, negative)
    aspects = np.full(len(numbers), "") if examples.aspects is None else examples.aspects[numbers]
    kinds = np.full(len(negatives), "") if examples.kinds is None else examples.kinds[negative_at]
    return Batch(
        documents=distinct[order],
        shares=tuple(map(len, dealt)),
        mini_batches=(),
        parts=[list(_parts(query, near, far, aspects, kinds, term)) for term in terms],
        **vars(_compared(query, near, far)),
    )


def _parts(query: Numbers, near: Role, far: Role, aspects: Names, kinds: Names, term: Term) -> Iterator[Part]:
    """What a loss compares, by aspect: examples with negatives of the kinds that it sees."""
    counts = np.ones(len(query), dtype=bool)
    if term.negatives is not None:
        far = far.only(np.isin(kinds, term.negatives))
        counts = np.bincount(far.of, minlength=len(query)) > 0
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
    terms: Sequence[Term] = ()
    """The losses that the examples are compared by."""

    def __call__(self, numbers: Numbers) -> Batch:
        """The examples of these numbers, with the tokens of the documents that this process embeds."""
        batch = arranged(self.examples, numbers, self.processes, self.terms)
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


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy on a device. From pinned memory a GPU takes it when it gets there, and the CPU goes on."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
