"""When a training stops by itself before it is done: its job's time is up, or it was asked to by a signal.

It then saves where it stands and ends with an exit status of its own, so that whoever started it starts it again.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cocite.encoder.processes import any_of

UNFINISHED_STATUS = 75
"""The exit status of what shall be started again (EX_TEMPFAIL of sysexits.h)."""
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
"""What Slurm sends before it ends a job: SIGTERM, and SIGUSR1 where it is asked to (--signal)."""
LARGEST_MARGIN = 300.0
MARGIN = 0.1


def seconds_left(minutes: float | None) -> float | None:
    """The seconds that a job has: those `minutes`, or those until Slurm ends it, whichever are fewer."""
    limits = [] if minutes is None else [60 * minutes]
    if "SLURM_JOB_END_TIME" in os.environ:
        limits.append(float(os.environ["SLURM_JOB_END_TIME"]) - time.time())
    return min(limits, default=None)


class Unfinished(Exception):  # noqa: N818 - not an error: the training is saved, and goes on when it is started again
    """A training that has stopped before it was done; the message says where."""


class Stopping:
    """Tells when to stop: `seconds` after `started` (as `time.monotonic` has it) less a margin, or upon a signal.

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
        if any_of(self.signal is not None):
            return "it was asked to" if self.signal is None else f"it was sent {self.signal.name}"
        return "the time of its job is nearly up" if any_of(late) else None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the signals for wishes to stop, as long as the block lasts."""
        before = {number: signal.signal(number, self._asked) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.signal = signal.Signals(number)
