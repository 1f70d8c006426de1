"""Which examples a training learns from at which step, and what follows the step.

An epoch has as many examples as all sets have together, and holds the share of each objective to the example, or to the
batch where batches alternate. A set is gone through in an order of its own, round after round: one that is used up
within an epoch starts its next round, one that is not goes on in the next epoch. All of it follows from the settings,
the seed and the number of the step: a training that goes on after a kill takes the steps that it would have taken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from cocite.config.models import TrainingSettings
from cocite.core.randomness import derive_seed, generator
from cocite.encoder.data import Numbers

LOGS = 500
"""Times that the training loss is logged in a long training."""


class Chosen(NamedTuple):
    """Examples that are learned from one after the other."""

    numbers: Numbers
    """The number of each among the examples of all sets."""
    rounds: Numbers
    """The round of its set that each belongs to, from 0: the epoch, where there is one set."""


def one_of_each(queries: Numbers, *, seed: int, number: int) -> Numbers:
    """One example of each query: in as many rounds as a query has examples, each of them once."""
    order = np.lexsort((generator(seed, "one of each query").permutation(len(queries)), queries))
    _, starts, sizes = np.unique(queries[order], return_index=True, return_counts=True)
    return order[starts + number % sizes]


def round_order(queries: Numbers, *, block: int, seed: int, number: int) -> Numbers:
    """The order of the examples of a set in one round: blocks of up to `block` examples of one query, shuffled.

    `queries` holds the query of each example. The examples of a query are shuffled among and within its blocks, and
    then the blocks of all queries. A query's blocks differ by one in size at most, and none is longer than `block`.
    """
    random = generator(seed, "epoch", number)
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


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Sets of examples, and how they are mixed."""

    queries: Sequence[Numbers]
    """The query of each example, set by set."""
    shares: Sequence[float] = (1.0,)
    """The share of the examples that comes from each set."""
    mixing: Literal["in-batch", "alternating"] = "in-batch"
    """Whether each example of a batch is of any set, or all are of one."""
    batch_size: int
    """Examples of a batch."""
    block: int
    """Examples of a query that stay together."""
    one_per_query: Sequence[bool] = ()
    """Whether a round of each set has one example of each query; empty if none has."""
    seed: int

    @property
    def examples(self) -> int:
        """Examples of an epoch; of alternating batches, all are whole."""
        return -(-sum(self._lengths) // self._unit) * self._unit

    def epoch(self, epoch: int) -> Chosen:
        """The examples of an epoch, in their order."""
        if len(self.queries) == 1:
            order = self._round(0, self.seed, epoch)
            return Chosen(order, np.full(len(order), epoch))
        counts = self._counts
        set_of = self._turns(counts) if self.mixing == "alternating" else np.repeat(np.arange(len(counts)), counts)
        if self.mixing == "in-batch":
            set_of = generator(self.seed, "objectives", epoch).permutation(set_of)
        set_of = np.repeat(set_of, self._unit)
        numbers, rounds = np.empty_like(set_of), np.empty_like(set_of)
        for each, count in enumerate(counts * self._unit):
            of_set = self._taken(each, epoch * int(count), int(count))
            numbers[set_of == each], rounds[set_of == each] = of_set
        return Chosen(numbers, rounds)

    @property
    def _unit(self) -> int:
        """Examples that are drawn from one set together."""
        return self.batch_size if len(self.queries) > 1 and self.mixing == "alternating" else 1

    @cached_property
    def _lengths(self) -> list[int]:
        """Examples of a round of each set."""
        singles = self.one_per_query or [False] * len(self.queries)
        pairs = zip(self.queries, singles, strict=True)
        return [len(np.unique(queries)) if is_single else len(queries) for queries, is_single in pairs]

    @property
    def _counts(self) -> Numbers:
        """Units of each set in an epoch: the shares of all, rounded so that their sum is kept."""
        units = self.examples // self._unit
        wanted = np.array(self.shares) * units
        counts = np.floor(wanted).astype(np.int64)
        counts[np.argsort(counts - wanted, kind="stable")[: units - counts.sum()]] += 1
        return counts

    def _turns(self, counts: Numbers) -> Numbers:
        """The set of each batch of an epoch: each set's batches are spread evenly, equal shares take turns."""
        sets = np.repeat(np.arange(len(counts)), counts)
        places = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
        return sets[np.lexsort((sets, places))]

    def _taken(self, each: int, start: int, count: int) -> Chosen:
        """So many examples of a set, from a place on in its rounds."""
        before = sum(map(len, self.queries[:each]))
        places = np.arange(start, start + count)
        rounds, within = np.divmod(places, self._lengths[each])
        seed = derive_seed(self.seed, "set", each)
        numbers = np.empty(count, dtype=np.int64)
        for number in np.unique(rounds):
            order = self._round(each, seed, int(number))
            numbers[rounds == number] = before + order[within[rounds == number]]
        return Chosen(numbers, rounds)

    def _round(self, each: int, seed: int, number: int) -> Numbers:
        """The order of the examples of a set in one round."""
        queries = self.queries[each]
        if self.one_per_query and self.one_per_query[each]:
            chosen = one_of_each(queries, seed=seed, number=number)
            return chosen[round_order(queries[chosen], block=1, seed=seed, number=number)]
        return round_order(queries, block=self.block, seed=seed, number=number)


@dataclass(kw_only=True)
class Schedule:
    """The steps of a training: the batches of each, its learning rate, and whether it is logged and validated after.

    The gradients of a step's batches are added up. A batch's end may cut a block in two; the last batch of an epoch,
    and its last step, may be shorter than the others. The first step is 1.
    """

    mixture: Mixture
    """The order of the examples."""
    settings: TrainingSettings
    _epoch: int = field(default=-1, init=False)
    _order: Chosen | None = field(default=None, init=False)

    @property
    def steps_of_an_epoch(self) -> int:
        """Steps that go once through the examples."""
        return -(-self.mixture.examples // self._examples_of_a_step)

    @property
    def steps(self) -> int:
        """Steps of the training."""
        of_epochs = self.settings.epochs * self.steps_of_an_epoch
        return min(of_epochs, self.settings.max_steps or of_epochs)

    def batches_of(self, step: int) -> list[Chosen]:
        """The examples in each batch of a step."""
        epoch, within = divmod(step - 1, self.steps_of_an_epoch)
        if self._order is None or epoch != self._epoch:
            self._order, self._epoch = self.mixture.epoch(epoch), epoch
        size, batch_size = self._examples_of_a_step, self.settings.batch_size
        starts = range(within * size, min((within + 1) * size, self.mixture.examples), batch_size)
        numbers, rounds = self._order
        return [Chosen(numbers[at : at + batch_size], rounds[at : at + batch_size]) for at in starts]

    def learning_rate(self, step: int) -> float:
        """The learning rate of a step: it rises from 0 over the warm-up, then goes on as the settings say."""
        asked, done = self.settings.warmup, step - 1
        warmup = math.ceil(asked * self.steps if asked < 1 else asked)
        if done < warmup:
            return self.settings.lr * (done / warmup)
        left = (self.steps - done) / max(1, self.steps - warmup)
        shares = {"linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2, "constant": 1.0}
        return self.settings.lr * shares[self.settings.schedule]

    def is_logged(self, step: int) -> bool:
        """Whether the training loss is logged after a step."""
        return self.is_validated(step) or step % max(1, self.steps // LOGS) == 0

    def is_validated(self, step: int) -> bool:
        """Whether the validation set is measured after a step; it is after the last one."""
        every, times = self.settings.validate_every, self.settings.evaluations
        if every is not None:
            return step == self.steps or (step > 0 and step % every == 0)
        return step in {math.ceil(self.steps * part / times) for part in range(1, times + 1)}

    @property
    def _examples_of_a_step(self) -> int:
        return self.settings.batch_size * self.settings.accumulation
