"""Which examples a training learns from at which step, and what follows the step; all by settings, seed and step.

An epoch has as many examples as all sets together, and keeps the share of each objective to the example, or to the
batch if batches alternate. A set that is used up within an epoch starts its next round.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cocite.config.models import TrainingSettings
from cocite.core.randomness import derive_seed, generator
from cocite.core.written_ids import distinct
from cocite.encoder.documents import Numbers

LOGS = 500
"""Times that the training loss is logged in a long training."""


class Chosen(NamedTuple):
    """Examples by their numbers among those of all sets, and the round of its set that each belongs to, from 0."""

    numbers: Numbers
    rounds: Numbers


def round_order(queries: Numbers, *, block: int, seed: int, number: int) -> Numbers:
    """The order of a set's examples in one round: blocks of up to `block` examples of one query, shuffled."""
    random = generator(seed, "epoch", number)
    shuffled = random.permutation(len(queries))
    grouped = shuffled[np.argsort(queries[shuffled], kind="stable")]
    _, sizes = np.unique(queries, return_counts=True)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(len(queries)) - starts
    blocks = -(-np.repeat(sizes, sizes) // block)
    block_of = starts + position % blocks
    rank = random.permutation(len(queries))
    return grouped[np.argsort(rank[block_of], kind="stable")]


@dataclass(kw_only=True)
class Schedule:
    """The steps of a training, from 1: their batches and learning rates, and whether a log or a validation follows."""

    queries: Sequence[Numbers]
    """The query of each example, set by set."""
    settings: TrainingSettings
    seed: int
    _orders: dict[int, Chosen] = field(default_factory=dict, init=False)
    """The examples of the epoch that is at work."""

    @property
    def examples(self) -> int:
        """Examples of an epoch; alternating batches are all whole."""
        return -(-sum(self._lengths) // self._unit) * self._unit

    @property
    def _unit(self) -> int:
        """Examples that are drawn from one set together."""
        return self.settings.batch_size if len(self.queries) > 1 and self.settings.mixing == "alternating" else 1

    @cached_property
    def _lengths(self) -> list[int]:
        """Examples of a round of each set."""
        pairs = zip(self.queries, self.settings.of_one_per_query, strict=True)
        return [len(distinct(queries)) if is_single else len(queries) for queries, is_single in pairs]

    def epoch(self, epoch: int) -> Chosen:
        """The examples of an epoch, in their order."""
        if len(self.queries) == 1:
            order = self._round(0, self.seed, epoch)
            return Chosen(order, np.full(len(order), epoch))
        # The units of each set follow from the shares, rounded so that their sum is kept.
        units = self.examples // self._unit
        wanted = np.array(self.settings.shares) * units
        counts = np.floor(wanted).astype(np.int64)
        counts[np.argsort(counts - wanted, kind="stable")[: units - counts.sum()]] += 1
        set_of = np.repeat(np.arange(len(counts)), counts)
        if self.settings.mixing == "alternating":  # each set's batches are spread evenly, equal shares take turns
            places = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
            set_of = np.repeat(set_of[np.lexsort((set_of, places))], self._unit)
        else:
            set_of = generator(self.seed, "objectives", epoch).permutation(set_of)
        numbers, rounds = np.empty_like(set_of), np.empty_like(set_of)
        before = 0
        for each, queries in enumerate(self.queries):
            count, seed = int(counts[each]) * self._unit, derive_seed(self.seed, "set", each)
            of_set, within = np.divmod(np.arange(epoch * count, (epoch + 1) * count), self._lengths[each])
            chosen = np.empty(count, dtype=np.int64)
            for number in np.unique(of_set).tolist():
                is_in_round = of_set == number
                chosen[is_in_round] = before + self._round(each, seed, number)[within[is_in_round]]
            numbers[set_of == each], rounds[set_of == each] = chosen, of_set
            before += len(queries)
        return Chosen(numbers, rounds)

    def _round(self, each: int, seed: int, number: int) -> Numbers:
        """The order of the examples of a set in one round."""
        queries = self.queries[each]
        if not self.settings.of_one_per_query[each]:
            return round_order(queries, block=self.settings.together, seed=seed, number=number)
        # A query with n examples has each of them once in n rounds.
        order = np.lexsort((generator(seed, "one of each query").permutation(len(queries)), queries))
        _, starts, sizes = np.unique(queries[order], return_index=True, return_counts=True)
        chosen = order[starts + number % sizes]
        return chosen[round_order(queries[chosen], block=1, seed=seed, number=number)]

    @property
    def steps_of_an_epoch(self) -> int:
        """Steps of an epoch."""
        return -(-self.examples // (self.settings.batch_size * self.settings.accumulation))

    @property
    def steps(self) -> int:
        """Steps of the training."""
        of_epochs = self.settings.epochs * self.steps_of_an_epoch
        return min(of_epochs, self.settings.max_steps or of_epochs)

    def batches_of(self, step: int) -> list[Chosen]:
        """The examples in each batch of a step."""
        epoch, within = divmod(step - 1, self.steps_of_an_epoch)
        if epoch not in self._orders:
            self._orders = {epoch: self.epoch(epoch)}
        batch_size = self.settings.batch_size
        size = batch_size * self.settings.accumulation
        starts = range(within * size, min((within + 1) * size, self.examples), batch_size)
        numbers, rounds = self._orders[epoch]
        return [Chosen(numbers[at : at + batch_size], rounds[at : at + batch_size]) for at in starts]

    def learning_rate(self, step: int) -> float:
        """The learning rate of a step: it rises from 0 over the warm-up, then follows the schedule."""
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
        every, times = self.settings.validate_every, self.settings.validations
        if every is not None:
            return step == self.steps or (step > 0 and step % every == 0)
        return step in {math.ceil(self.steps * part / times) for part in range(1, times + 1)}
