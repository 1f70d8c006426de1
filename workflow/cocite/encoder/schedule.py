"""What happens at which step of a training, and when it stops before its last one.

The steps follow from the settings and the seed alone: a training that goes on after a kill, in any number of processes,
takes the steps that it would have taken.

A training stops by itself where the time of its job is up, or where it is asked to by a signal. It then saves where it
stands and ends with an exit status of its own, so that whoever started it starts it again.
"""

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from cocite.config.models import TrainingSettings
from cocite.encoder.mixing import Chosen, Mixture
from cocite.encoder.processes import SIGNALS, any_of

LOGS = 500
"""Times that the training loss is logged in a long training."""
LARGEST_MARGIN = 300.0
MARGIN = 0.1


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
        return [self._order.part(start, start + batch_size) for start in starts]

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


def seconds_left(minutes: float | None) -> float | None:
    """The seconds that a job has: those `minutes`, or those until Slurm ends it, whichever are fewer."""
    limits = [] if minutes is None else [60 * minutes]
    if "SLURM_JOB_END_TIME" in os.environ:
        limits.append(float(os.environ["SLURM_JOB_END_TIME"]) - time.time())
    return min(limits, default=None)


class Unfinished(Exception):  # noqa: N818 - not an error: the training is saved, and goes on when it is started again
    """A training that has stopped before it was done; the message says where."""


class Stopping:
    """When to stop: `seconds` after `started` (as `time.monotonic` has it) less a margin, or upon a signal.

    The margin is a tenth of the time, five minutes at most, and as long again as the longest pause between two steps
    so far: a validation, or the saving of a checkpoint.
    """

    def __init__(self, seconds: float | None = None, started: float | None = None) -> None:
        started = time.monotonic() if started is None else started
        self.deadline = None if seconds is None else started + seconds - min(LARGEST_MARGIN, MARGIN * seconds)
        self.longest_pause = 0.0
        self.asked_at = time.monotonic()
        self.signal: signal.Signals | None = None

    def reason(self) -> str | None:
        """Why to stop now; None to go on. It is called after each step, and all processes get the same answer."""
        now = time.monotonic()
        self.longest_pause = max(self.longest_pause, now - self.asked_at)
        self.asked_at = now
        late = self.deadline is not None and now + self.longest_pause > self.deadline
        return self.asked() or ("the time of its job is nearly up" if any_of(late) else None)

    def asked(self) -> str | None:
        """Which signal has asked to stop; None if none has. All processes call it together, and get the same answer."""
        if not any_of(self.signal is not None):
            return None
        return "it was asked to" if self.signal is None else f"it was sent {self.signal.name}"

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the signals as requests to stop, as long as the block lasts; a second Ctrl-C interrupts at once."""
        before = {number: signal.signal(number, self._asked) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
