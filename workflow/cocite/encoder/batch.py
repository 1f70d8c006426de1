"""A batch: the distinct documents of some examples in mini-batches, and what the losses compare of them.

A document serves several queries: each distinct document of a batch is embedded once, by one of the processes, and the
losses find its vector by its place. Most losses compare examples, those of each aspect by themselves. Others see
documents beside each other, whichever example they are of. Documents that the transformer takes together are of like
length, and padded to the longest, or packed without padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.config.objectives import Comparison
from cocite.encoder.data import WHOLE, Documents, Examples, Links, Numbers, moved
from cocite.encoder.masking import Drawn, Masked, Masking

TOKENS_OF_A_START = {"cpu": 128, "cuda": 32_768}
"""Tokens that take about as long as it takes to start a pass through the encoder and back. On a CPU that is between 20,
measured with six layers of width 384, and 200, with two of width 64; on a GPU it is an estimate."""
BEFORE_THE_FIRST = -1
"""Stands for the epoch whose spans are validated on."""


def batches_of_like_length(lengths: Numbers, tokens: int) -> Iterator[Numbers]:
    """Documents of these lengths in batches of at most so many tokens, or of one document, with little padding.

    The longest come first, so that a lack of memory shows at the start.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, tokens // max(1, int(lengths[order[start]])))
        yield order[start:end]
        start = end


def mini_batches_of_like_length(lengths: Numbers, *, start: int, most: int | None = None) -> list[Numbers]:
    """Documents of these lengths cut into the mini-batches that cost least, the longest documents first.

    A mini-batch of n documents whose longest has l tokens costs n · l + `start`, and n · l is at most `most`, unless n
    is 1. The best cut of the first n documents is the best over all last mini-batches (dynamic programming, as for
    breaking lines).
    """
    order = np.argsort(-lengths, kind="stable")
    longest = lengths[order]
    cost = np.zeros(len(order) + 1)
    first = np.zeros(len(order) + 1, dtype=np.int64)
    for end in range(1, len(order) + 1):
        starts = np.arange(end)
        sizes = (end - starts) * longest[:end]  # they fall, since the longest come first
        starts = starts[0 if most is None else min(end - 1, int(np.count_nonzero(sizes > most))) :]
        costs = cost[starts] + sizes[starts] + start
        best = int(costs.argmin())
        cost[end], first[end] = costs[best], starts[best]
    mini_batches = []
    end = len(order)
    while end:
        mini_batches.append(order[first[end] : end])
        end = int(first[end])
    return mini_batches[::-1]


def runs_of(lengths: Numbers, most: int | None) -> list[slice]:
    """Documents of these lengths, in their order, cut into runs of at most so many tokens, or of one document."""
    ends = np.cumsum(lengths)
    runs, start = [], 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        end = len(lengths) if most is None else int(np.searchsorted(ends, before + most, "right"))
        runs.append(slice(start, max(start + 1, end)))
        start = runs[-1].stop
    return runs


@dataclass(frozen=True, kw_only=True)
class PairIndices:
    """What a loss sees of a batch, by places among its documents: pairs and triplets, or documents alone."""

    positives: Tensor = torch.empty(0, 2, dtype=torch.int64)
    """Pairs × (query, positive)."""
    negatives: Tensor = torch.empty(0, 2, dtype=torch.int64)
    """Pairs × (query, negative)."""
    triplets: Tensor = torch.empty(0, 3, dtype=torch.int64)
    """Triplets × (query, positive, negative): each positive of an example with each of its negatives."""
    places: Tensor = torch.empty(0, dtype=torch.int64)
    """The documents that a loss over documents sees."""
    taught: Tensor = torch.empty(0, 0)
    """The vectors that a teacher has of them, documents × its dimension."""
    aspect: str = ""
    """The aspect of the examples; empty where they have none."""
    share: float = 1.0
    """Share of the batch's examples."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Examples over their distinct documents, whose vectors lie one after the other in the order of `documents`."""

    documents: Numbers
    """The number of each distinct document."""
    tokens: Documents
    """Their tokens, with the spans that were drawn."""
    epochs: Numbers
    """The epoch that each document is first in, from which its masks follow."""
    shares: tuple[int, ...]
    """How many of them each process embeds, one process after the other."""
    whole: PairIndices
    """All of its examples."""
    parts: Sequence[Sequence[PairIndices]] = ()
    """What each of the losses compares, by aspect."""
    mini_batches: Sequence[dict[str, Any]] = ()
    """The tokens of those that this process embeds; a mini-batch goes through the encoder together."""
    masked: Sequence[Masked] | None = None
    """The documents that this process embeds with masks, in mini-batches; None where none are to be."""

    def to(self, device: torch.device) -> "Batch":
        """Copy what a training takes of it to a device, without waiting for it."""
        return replace(
            self,
            mini_batches=[moved(some, device) for some in self.mini_batches],
            parts=[[replace(part, **moved(vars(part), device)) for part in of_loss] for of_loss in self.parts],
            masked=None if self.masked is None else [some.to(device) for some in self.masked],
        )


def build_batch(
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
    query, near, far = examples.queries[numbers], examples.positives.of(numbers), examples.negatives.of(numbers)
    of_each = np.full(len(numbers), BEFORE_THE_FIRST) if epochs is None else epochs
    epoch = np.concatenate([of_each, of_each[near.owners], of_each[far.owners]])
    distinct, place, tokens = _distinct(
        examples.documents, np.concatenate([query, near.documents, far.documents]), epoch, seed
    )
    by_length = np.argsort(-tokens.lengths, kind="stable")
    dealt = [by_length[process::processes] for process in range(processes)]
    order = np.concatenate(dealt)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first_in = np.full(len(order), epoch.max(initial=BEFORE_THE_FIRST))
    np.minimum.at(first_in, rank[place], epoch)
    query, positive, negative = np.split(rank[place], np.cumsum([len(query), len(near.documents)]))
    near, far = replace(near, documents=positive), replace(far, documents=negative)
    documents = distinct[order]
    return Batch(
        documents=documents,
        tokens=tokens.chosen(order),
        epochs=first_in,
        shares=tuple(map(len, dealt)),
        whole=compared_by(query, near, far),
        parts=[
            list(
                _by_aspect(examples, numbers, query, near, far, each)
                if each.loss.input_kind == "examples"
                else _documents_alone(examples, numbers, documents, query, near, far, each)
            )
            for each in comparisons
        ],
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


def compared_by(query: Numbers, near: Links, far: Links, **of_part: Any) -> PairIndices:
    """What examples compare: their queries, positives and negatives."""
    first, second = far.places_of(near.owners)
    return PairIndices(
        positives=_columns(query[near.owners], near.documents),
        negatives=_columns(query[far.owners], far.documents),
        triplets=_columns(query[near.owners[first]], near.documents[first], far.documents[second]),
        **of_part,
    )


def _columns(*columns: Numbers) -> Tensor:
    return torch.from_numpy(np.stack(columns, axis=1))


def _are_of(examples: Examples, numbers: Numbers, comparison: Comparison) -> NDArray[np.bool_]:
    """Which of some examples a loss sees, by their objectives."""
    if comparison.objectives is None:
        return np.ones(len(numbers), dtype=bool)
    of_each = np.zeros(len(numbers), dtype=np.int64) if examples.objectives is None else examples.objectives[numbers]
    return np.isin(of_each, list(comparison.objectives))


def _by_aspect(
    examples: Examples, numbers: Numbers, query: Numbers, near: Links, far: Links, comparison: Comparison
) -> Iterator[PairIndices]:
    """What a loss compares, by aspect: examples of its objectives with negatives of the kinds that it sees."""
    counts = _are_of(examples, numbers, comparison)
    if comparison.negatives is not None:
        _, at = examples.negatives.places_of(numbers)
        kinds = np.full(len(at), "") if examples.kinds is None else examples.kinds[at]
        far = far.only(np.isin(kinds, comparison.negatives))
        counts &= np.diff(far.starts) > 0
    aspects = np.full(len(numbers), "") if examples.aspects is None else examples.aspects[numbers]
    for aspect in np.unique(aspects):
        chosen = counts & (aspects == aspect)
        if chosen.any():
            of_aspect = near.only(chosen[near.owners]), far.only(chosen[far.owners])
            yield compared_by(query, *of_aspect, aspect=str(aspect), share=float(chosen.mean()))


def _documents_alone(
    examples: Examples,
    numbers: Numbers,
    documents: Numbers,
    query: Numbers,
    near: Links,
    far: Links,
    comparison: Comparison,
) -> Iterator[PairIndices]:
    """What a loss over documents sees: those of the examples of its objectives, a teacher's where it asks for one."""
    counts = _are_of(examples, numbers, comparison)
    others = (some.documents[counts[some.owners]] for some in (near, far))
    places, share = np.unique(np.concatenate([query[counts], *others])), float(counts.mean())
    if comparison.loss.teacher is None:
        if len(places):
            yield PairIndices(places=torch.from_numpy(places), share=share)
        return
    teacher = examples.teachers[comparison.loss.teacher]
    rows = teacher.rows[documents[places]]
    places, taught = places[rows >= 0], teacher.vectors[rows[rows >= 0]]
    if len(places) > 1:  # a pair, at least
        yield PairIndices(places=torch.from_numpy(places), taught=torch.from_numpy(taught), share=share)


def masks_of(
    masking: Masking, examples: Examples, documents: Numbers, tokens: Documents, epochs: Numbers, seed: int
) -> Drawn:
    """Documents of examples, by their numbers, with the masks that they have in some epochs."""
    roles = np.full(len(documents), WHOLE)
    if tokens.spans is not None:
        roles = np.where(tokens.spans.shortest > 0, tokens.spans.roles, WHOLE)
    return masking.drawn(tokens, seed, epochs, examples.ids[documents], roles)


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
    masking: Masking | None = None
    """How tokens are masked, where a loss predicts them."""
    seed: int = 0
    """What spans and masks follow from, beside the epoch and the paper."""

    def __call__(self, numbers: Numbers, epochs: Numbers | None = None) -> Batch:
        """The examples of these numbers in these epochs, with the tokens of the documents that this process embeds."""
        batch = build_batch(
            self.examples,
            numbers,
            epochs=epochs,
            seed=self.seed,
            processes=self.processes,
            comparisons=self.comparisons,
        )
        before = sum(batch.shares[: self.process])
        mine = np.arange(before, before + batch.shares[self.process])
        mini_batches = [features for _, features in self._cut(batch.tokens, mine)]
        return replace(batch, mini_batches=mini_batches, masked=self._masked(batch, mine))

    def _masked(self, batch: Batch, mine: Numbers) -> list[Masked] | None:
        """The documents among mine whose tokens a loss predicts, masked; None where no process has any."""
        pairs = zip(self.comparisons, batch.parts, strict=True)
        asked = [part.places.numpy() for each, parts in pairs if each.loss.input_kind == "masks" for part in parts]
        if self.masking is None or not asked:
            return None
        rows = np.intersect1d(np.unique(np.concatenate(asked)), mine, assume_unique=True)
        tokens = batch.tokens.chosen(rows)
        drawn = masks_of(self.masking, self.examples, batch.documents[rows], tokens, batch.epochs[rows], self.seed)
        cut = self._cut(drawn.documents, np.arange(len(rows)))
        return [drawn.of(some, features, rows[some] - sum(batch.shares[: self.process])) for some, features in cut]

    def _cut(self, documents: Documents, rows: Numbers) -> list[tuple[Numbers, dict[str, Any]]]:
        """Documents in mini-batches, with what the transformer takes of each."""
        lengths = documents.lengths[rows]
        if self.packs:
            runs = [rows[some] for some in runs_of(lengths, self.mini_batch_tokens)]
            return [(some, documents.packed(some, self.first_position)) for some in runs]
        cut = mini_batches_of_like_length(lengths, start=self.start, most=self.mini_batch_tokens)
        return [(rows[some], documents.padded(rows[some], self.padding)) for some in cut]
