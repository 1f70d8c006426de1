"""Which examples make a batch, and a batch as what the encoder takes.

The batches of a step follow from the seed and the step alone, so that a training that goes on after a kill, in
however many processes, sees the batches that it would have seen. A query comes with several positives and negatives,
and a document serves several queries: each distinct document of a batch is embedded once, by one of the processes, and
the losses find its vector by its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.encoder.embedding import features_of
from cocite.encoder.examples import Examples
from cocite.ground.randomness import generator

Numbers = NDArray[np.int64]

TOKENS_OF_A_START = {"cpu": 128, "cuda": 8192}
"""Tokens that take about as long as it takes to start a pass through the encoder and back. On a CPU that is between 20,
measured with six layers of width 384, and 200, with two of width 64; on a GPU it is an estimate."""


def epoch_order(queries: Numbers, *, block: int, seed: int, epoch: int) -> Numbers:
    """The order of the examples in one epoch: blocks of up to `block` examples of one query, shuffled.

    `queries` holds the query of each example. Shuffled are the examples of a query among and within its blocks, and the
    blocks of all queries. A query's blocks are of sizes that differ by one at most, and none is longer than `block`.
    """
    random = generator(seed, "epoch", epoch)
    shuffled = random.permutation(len(queries))
    grouped = shuffled[np.argsort(queries[shuffled], kind="stable")]
    _, sizes = np.unique(queries, return_counts=True)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(len(queries)) - starts
    blocks = -(-np.repeat(sizes, sizes) // block)
    # Dealing a query's examples out to its blocks in turn makes their sizes differ by one at most.
    block_of = starts + position % blocks
    rank = random.permutation(len(queries))
    return grouped[np.argsort(rank[block_of], kind="stable")]


@dataclass(kw_only=True)
class Plan:
    """The steps of a training: the examples of each, in batches whose gradients are added up.

    A batch's end may cut a block in two; the last batch of an epoch, and its last step, may be short ones.
    """

    queries: Numbers
    """The query of each example."""
    batch_size: int
    accumulation: int
    block: int
    epochs: int
    seed: int
    _epoch: int = field(default=-1, init=False)
    _order: Numbers = field(default_factory=lambda: np.empty(0, np.int64), init=False)

    @property
    def steps_of_an_epoch(self) -> int:
        """Steps that go once through the examples."""
        return -(-len(self.queries) // (self.batch_size * self.accumulation))

    @property
    def steps(self) -> int:
        """Steps of the training."""
        return self.epochs * self.steps_of_an_epoch

    def batches_of(self, step: int) -> list[Numbers]:
        """The numbers of the examples in each batch of a step; the first step is 1."""
        epoch, within = divmod(step - 1, self.steps_of_an_epoch)
        if epoch != self._epoch:
            self._order = epoch_order(self.queries, block=self.block, seed=self.seed, epoch=epoch)
            self._epoch = epoch
        size = self.batch_size * self.accumulation
        of_step = self._order[within * size : (within + 1) * size]
        return [of_step[start : start + self.batch_size] for start in range(0, len(of_step), self.batch_size)]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Examples over their distinct documents, whose vectors lie one after the other in the order of `documents`."""

    documents: Numbers
    """The number of each distinct document."""
    shares: tuple[int, ...]
    """How many of them each process embeds, one process after the other."""
    groups: Sequence[dict[str, Any]]
    """The tokens of those that this process embeds."""
    positives: Tensor
    """Pairs × (query, positive): places among the documents."""
    negatives: Tensor
    """Pairs × (query, negative)."""
    triplets: Tensor
    """Triplets × (query, positive, negative): each positive of an example with each of its negatives."""

    def to(self, device: torch.device) -> "Batch":
        """Copy it to a device."""
        places = {name: getattr(self, name).to(device) for name in ("positives", "negatives", "triplets")}
        return replace(self, groups=[_moved(group, device) for group in self.groups], **places)


def arranged(examples: Examples, numbers: Numbers, processes: int = 1) -> Batch:
    """The examples of these numbers as a batch without tokens.

    The documents are dealt out to the processes by their length, so that each has about as many tokens.
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
    first, second = _combinations(positive_of, negative_of, len(numbers))
    return Batch(
        documents=distinct[order],
        shares=tuple(map(len, dealt)),
        groups=(),
        positives=_columns(query[positive_of], positive),
        negatives=_columns(query[negative_of], negative),
        triplets=_columns(query[positive_of[first]], positive[first], negative[second]),
    )


@dataclass(frozen=True, kw_only=True)
class Collator:
    """Makes batches of examples what the encoder and the losses take."""

    examples: Examples
    padding: int
    """Token id of the padding."""
    start: int = TOKENS_OF_A_START["cpu"]
    """Tokens that starting one more group costs as much as."""
    at_once: int | None = None
    """Documents of a group at most."""
    packs: bool = False
    """Whether the documents of a group lie one after the other, without padding."""
    process: int = 0
    processes: int = 1

    def __call__(self, numbers: Numbers) -> Batch:
        """The examples of these numbers, with the tokens of the documents that this process embeds."""
        batch = arranged(self.examples, numbers, self.processes)
        before = sum(batch.shares[: self.process])
        mine = batch.documents[before : before + batch.shares[self.process]]
        return replace(batch, groups=[self._features(group) for group in self._groups(mine)])

    def _groups(self, documents: Numbers) -> list[Numbers]:
        if self.packs:
            most = self.at_once or max(1, len(documents))
            return np.split(documents, range(most, len(documents), most))
        lengths = self.examples.documents.lengths_of(documents)
        return [documents[group] for group in groups_of_like_length(lengths, start=self.start, most=self.at_once)]

    def _features(self, documents: Numbers) -> dict[str, Any]:
        if self.packs:
            from cocite.encoder.packing import packed

            return packed(self.examples.documents, documents)
        return features_of(self.examples.documents, documents, self.padding)


def groups_of_like_length(lengths: Numbers, *, start: int, most: int | None = None) -> list[Numbers]:
    """Documents of these lengths cut into groups, the longest first, that cost least.

    A group of n documents whose longest has l tokens costs n · l + `start`; it has at most `most` documents. The best
    cut of the first n documents is the best over all last groups (dynamic programming, as for breaking lines).
    """
    order = np.argsort(-lengths, kind="stable")
    longest = lengths[order]
    cost = np.zeros(len(order) + 1)
    first = np.zeros(len(order) + 1, dtype=np.int64)
    for end in range(1, len(order) + 1):
        starts = np.arange(0 if most is None else max(0, end - most), end)
        costs = cost[starts] + (end - starts) * longest[starts] + start
        best = int(costs.argmin())
        cost[end], first[end] = costs[best], starts[best]
    groups = []
    end = len(order)
    while end:
        groups.append(order[first[end] : end])
        end = int(first[end])
    return groups[::-1]


def _combinations(first_of: Numbers, second_of: Numbers, examples: int) -> tuple[Numbers, Numbers]:
    """The numbers of all firsts and seconds of the same example, each with each; both come in the order of examples."""
    seconds = np.bincount(second_of, minlength=examples)
    starts = np.cumsum(seconds) - seconds
    partners = seconds[first_of]
    first = np.repeat(np.arange(len(first_of)), partners)
    within = np.arange(len(first)) - np.repeat(np.cumsum(partners) - partners, partners)
    return first, starts[first_of[first]] + within


def _columns(*columns: Numbers) -> Tensor:
    return torch.from_numpy(np.stack(columns, axis=1))


def _moved(features: dict[str, Any], device: torch.device) -> dict[str, Any]:
    return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in features.items()}
