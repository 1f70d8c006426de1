"""A batch: the distinct documents of some examples in mini-batches, and what the losses compare of them.

Each distinct document is embedded once, by one of the processes; the losses find its vector by its place. Most losses
compare examples, aspect by aspect; others compare documents, whichever example they are of. Documents of a mini-batch
have similar lengths, and are padded to the longest, or packed without padding.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.config.loss import Loss
from cocite.config.models import Comparison, TrainingSettings
from cocite.encoder import processes
from cocite.encoder.documents import Documents, Numbers, moved
from cocite.encoder.examples import Examples, Links, Numbered
from cocite.encoder.masking import Masked, Masking, masking_of

if TYPE_CHECKING:
    from cocite.encoder.model import Encoder

TOKENS_OF_A_START = {"cpu": 128, "cuda": 32_768}
"""Tokens that cost as much as the start of a pass and back. On a CPU 20 were measured with six layers of width 384, and
200 with two of width 64; the number for a GPU is an estimate."""
Linked = tuple[Numbers, Links, Links]
"""The queries, positives and negatives of some examples."""
BEFORE_THE_FIRST = -1
"""The epoch of the spans that are validated on."""


def batches_of_like_length(lengths: Numbers, tokens: int, *, equal: bool = False) -> Iterator[Numbers]:
    """Documents in batches of at most so many tokens, of `equal` length if asked; the longest first."""
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        longest = int(lengths[order[0]])
        size = max(1, tokens // max(1, longest))
        size = int(np.searchsorted(-lengths[order[:size]], -longest, "right")) if equal else size
        yield order[:size]
        order = order[size:]


def mini_batches_of_like_length(lengths: Numbers, *, start: int, most: int | None = None) -> list[Numbers]:
    """Documents cut into the mini-batches that cost least, the longest first (dynamic programming). One of n documents,
    the longest of l tokens, costs n · l + `start`; n · l is at most `most`, unless n = 1."""
    order = np.argsort(-lengths, kind="stable")
    longest = lengths[order]
    cost = np.zeros(len(order) + 1)
    first = np.zeros(len(order) + 1, dtype=np.int64)
    for end in range(1, len(order) + 1):
        starts = np.arange(end)
        sizes = (end - starts) * longest[:end]  # falling
        starts = starts[0 if most is None else min(end - 1, int(np.count_nonzero(sizes > most))) :]
        costs = cost[starts] + sizes[starts] + start
        best = int(costs.argmin())
        cost[end], first[end] = costs[best], starts[best]
    mini_batches, end = [], len(order)
    while end:
        mini_batches.append(order[first[end] : end])
        end = int(first[end])
    return mini_batches[::-1]


def runs_of(lengths: Numbers, most: int | None) -> list[slice]:
    """Documents in their order, cut into runs of at most so many tokens, or of one document."""
    if most is None:
        return [slice(0, len(lengths))] if len(lengths) else []
    ends = np.append(0, np.cumsum(lengths))
    runs, start = [], 0
    while start < len(lengths):
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + most, "right")) - 1)
        runs.append(slice(start, end))
        start = end
    return runs


@dataclass(frozen=True, kw_only=True)
class PairIndices:
    """What a loss sees of a batch, by places among its documents: pairs and triplets, or only documents."""

    positives: Tensor = torch.empty(0, 2, dtype=torch.int64)
    """Pairs × (query, positive)."""
    negatives: Tensor = torch.empty(0, 2, dtype=torch.int64)
    """Pairs × (query, negative)."""
    triplets: Tensor = torch.empty(0, 3, dtype=torch.int64)
    """Triplets × (query, positive, negative): each positive of an example with each of its negatives."""
    places: Tensor = torch.empty(0, dtype=torch.int64)
    """The documents of a loss over documents."""
    taught: Tensor = torch.empty(0, 0)
    """Their vectors in a graph embedding, documents × its dimension."""
    papers: Tensor = torch.empty(0, dtype=torch.int64)
    """A number for the paper of each document, below that of the documents; none if each document is a paper."""
    frequencies: Tensor = torch.empty(0)
    """How often each document is compared with queries in an epoch, for a loss that corrects for it."""
    aspect: str = ""
    """The aspect of the examples; empty for none."""
    share: float = 1.0
    """Share of the batch's examples."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Examples over their distinct documents, whose vectors are in the order of `documents`."""

    documents: Numbers
    """The number of each distinct document."""
    tokens: Documents
    """Their tokens, with the spans that were drawn."""
    epochs: Numbers
    """The first epoch of each document, from which its masks follow."""
    shares: tuple[int, ...]
    """How many of them each process embeds, one process after the other."""
    whole: PairIndices
    """All of its examples."""
    parts: Sequence[Sequence[PairIndices]] = ()
    """What each of the losses compares, by aspect."""
    mini_batches: Sequence[dict[str, Any]] = ()
    """The tokens of the documents that this process embeds."""
    masked: Sequence[Masked] | None = None
    """The documents that this process embeds with masks, in mini-batches; None if no loss predicts tokens."""

    def to(self, device: torch.device) -> "Batch":
        """Copy what a step needs of it to a device, without waiting."""
        needed = {name: getattr(self, name) for name in ("mini_batches", "parts", "masked")}
        return replace(self, **moved(needed, device))


def build_batch(
    examples: Examples,
    numbers: Numbers,
    *,
    epochs: Numbers | None = None,
    seed: int = 0,
    processes: int = 1,
    comparisons: Sequence[Comparison] = (),
) -> Batch:
    """The examples of these numbers as a batch without mini-batches, with the parts that each loss compares. Spans are
    drawn by the seed and the epoch of each example. Documents are dealt out to processes by length."""
    query, near, far = examples.queries[numbers], examples.positives.of(numbers), examples.negatives.of(numbers)
    of_each = np.full(len(numbers), BEFORE_THE_FIRST) if epochs is None else epochs
    epoch = np.concatenate([of_each, of_each[near.owners], of_each[far.owners]])
    all_documents = np.concatenate([query, near.documents, far.documents])
    distinct, place, tokens = _distinct(examples.documents, all_documents, epoch, seed)
    by_length = np.argsort(-tokens.lengths, kind="stable")
    dealt = [by_length[process::processes] for process in range(processes)]
    order = np.concatenate(dealt)
    places = np.argsort(order)[place]
    first_in = np.full(len(order), epoch.max(initial=BEFORE_THE_FIRST))
    np.minimum.at(first_in, places, epoch)
    query, positive, negative = np.split(places, np.cumsum([len(query), len(near.documents)]))
    near, far = replace(near, documents=positive), replace(far, documents=negative)
    parts = []
    for each in comparisons:
        of_loss = _by_aspect if each.loss.input_kind == "examples" else _over_documents
        parts.append(list(of_loss(examples, numbers, distinct[order], (query, near, far), each)))
    return Batch(
        documents=distinct[order],
        tokens=tokens.chosen(order),
        epochs=first_in,
        shares=tuple(map(len, dealt)),
        whole=compared_by(query, near, far),
        parts=parts,
    )


def _distinct(documents: Documents, numbers: Numbers, epochs: Numbers, seed: int) -> tuple[Numbers, Numbers, Documents]:
    """The distinct documents among some (a span of two epochs is two), the place of each, and their tokens."""
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
    columns = {
        "positives": (query[near.owners], near.documents),
        "negatives": (query[far.owners], far.documents),
        "triplets": (query[near.owners[first]], near.documents[first], far.documents[second]),
    }
    of_part |= {name: torch.from_numpy(np.stack(of, axis=1)) for name, of in columns.items()}
    return PairIndices(**of_part)


def _are_of(examples: Examples, numbers: Numbers, comparison: Comparison) -> NDArray[np.bool_]:
    if comparison.objectives is None or examples.objectives is None:
        return np.ones(len(numbers), dtype=bool)
    return np.isin(examples.objectives[numbers], list(comparison.objectives))


def _by_aspect(
    examples: Examples, numbers: Numbers, documents: Numbers, linked: Linked, comparison: Comparison
) -> Iterator[PairIndices]:
    """What a loss compares, by aspect: examples of its objectives with negatives of the kinds that it sees."""
    query, near, far = linked
    counts = _are_of(examples, numbers, comparison)
    if comparison.negatives is not None:
        _, at = examples.negatives.places_of(numbers)
        kinds = np.full(len(at), "") if examples.kinds is None else examples.kinds[at]
        far = far.only(np.isin(kinds, comparison.negatives))
        counts &= np.diff(far.starts) > 0
    aspects = np.full(len(numbers), "") if examples.aspects is None else examples.aspects[numbers]
    papers = torch.from_numpy(np.unique(examples.ids[documents], return_inverse=True)[1])
    frequencies = frequencies_of(examples, documents, comparison.loss, comparison.objectives)
    for aspect in np.unique(aspects):
        chosen = counts & (aspects == aspect)
        if chosen.any():
            of_aspect = near.only(chosen[near.owners]), far.only(chosen[far.owners])
            how: dict[str, Any] = {"aspect": str(aspect), "share": float(chosen.mean())}
            yield compared_by(query, *of_aspect, papers=papers, frequencies=frequencies, **how)


def frequencies_of(
    examples: Numbered, documents: Numbers, loss: Loss, objectives: Collection[int] | None = None
) -> Tensor:
    """How often each of some documents is compared with queries in an epoch, if a loss asks for it; else nothing."""
    if not loss.counted:
        return torch.empty(0)
    of_each = [examples.occurrences[role][:, documents] for role in loss.counted]
    rows = range(len(of_each[0])) if objectives is None else [each for each in objectives if each < len(of_each[0])]
    return torch.from_numpy(sum(some[list(rows)].sum(axis=0) for some in of_each)).float()


def _over_documents(
    examples: Examples, numbers: Numbers, documents: Numbers, linked: Linked, comparison: Comparison
) -> Iterator[PairIndices]:
    """What a loss over documents sees: those of its objectives' examples, with their vectors if it has a teacher."""
    query, near, far = linked
    counts = _are_of(examples, numbers, comparison)
    others = (some.documents[counts[some.owners]] for some in (near, far))
    places = np.unique(np.concatenate([query[counts], *others]))
    taught, least = np.empty((0, 0), np.float32), 1
    if comparison.loss.teacher is not None:
        teacher, least = examples.teachers[comparison.loss.teacher], 2  # a pair
        rows = teacher.rows[documents[places]]
        places, taught = places[rows >= 0], teacher.vectors[rows[rows >= 0]]
    if len(places) >= least:
        share = float(counts.mean())
        yield PairIndices(places=torch.from_numpy(places), taught=torch.from_numpy(taught), share=share)


@dataclass(frozen=True, kw_only=True)
class Collator:
    """Makes batches of examples."""

    examples: Examples
    encoder: "Encoder"
    settings: TrainingSettings
    packs: bool = False
    """Whether documents are packed, without padding."""
    seed: int = 0
    """Spans and masks follow from it, the epoch and the paper."""

    @cached_property
    def masking(self) -> Masking | None:
        """How tokens are masked, if a loss predicts them."""
        return masking_of(self.encoder.tokenizer, self.settings.masked_share)

    def __call__(self, numbers: Numbers, epochs: Numbers | None = None) -> Batch:
        """The examples of these numbers in these epochs, with the tokens of the documents that this process embeds."""
        process, comparisons = processes.number(), self.settings.comparisons
        how: dict[str, Any] = {"processes": processes.count(), "comparisons": comparisons}
        batch = build_batch(self.examples, numbers, epochs=epochs, seed=self.seed, **how)
        before = sum(batch.shares[:process])
        mine = np.arange(before, before + batch.shares[process])
        batch = replace(batch, mini_batches=[features for _, features in self._cut(batch.tokens, mine)])
        pairs = zip(comparisons, batch.parts, strict=True)
        asked = [part.places.numpy() for each, parts in pairs if each.loss.input_kind == "masks" for part in parts]
        if not asked or self.masking is None:  # no process has a document to mask
            return batch
        rows = np.intersect1d(np.unique(np.concatenate(asked)), mine, assume_unique=True)
        ids, tokens = self.examples.ids[batch.documents[rows]], batch.tokens.chosen(rows)
        drawn = self.masking.drawn(tokens, self.seed, batch.epochs[rows], ids)
        cut = self._cut(drawn.documents, np.arange(len(rows)))
        return replace(batch, masked=[drawn.of(some, features, rows[some] - before) for some, features in cut])

    def _cut(self, documents: Documents, rows: Numbers) -> list[tuple[Numbers, dict[str, Any]]]:
        """Documents in mini-batches, each with the input of the encoder."""
        encoder, lengths, most = self.encoder, documents.lengths[rows], self.settings.tokens_at_once
        if self.packs or encoder.reads == "bags":
            mini_batches = [rows[some] for some in runs_of(lengths, most)]
        else:
            start = TOKENS_OF_A_START[encoder.device.type]
            mini_batches = [rows[some] for some in mini_batches_of_like_length(lengths, start=start, most=most)]
        if self.packs:
            return [(some, documents.packed(some, encoder.first_position)) for some in mini_batches]
        return [(some, encoder.features_of(documents, some)) for some in mini_batches]
