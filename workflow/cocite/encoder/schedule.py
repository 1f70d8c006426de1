"""What is done after which step of a training, and what is told of it while it runs."""

import math
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from cocite.encoder import processes
from cocite.encoder.event_log import EventLog
from cocite.encoder.stopping import Stopping
from cocite.progress import progress_bar

SECONDS_BETWEEN_CHECKPOINTS = 300.0


class Schedule(TrainerCallback):
    """Says when to log, validate, save and stop: the first two at even intervals of steps, the others by the clock.

    So what is measured, when, and in which order depends on the step alone.
    """

    def __init__(self, evaluations: int, stopping: Stopping) -> None:
        self.evaluations = evaluations
        self.stopping = stopping
        self.stopped: str | None = None
        self.saved_at = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Set what is to be done after this step."""
        planned = {math.ceil(state.max_steps * part / self.evaluations) for part in range(1, self.evaluations + 1)}
        control.should_evaluate = state.global_step in planned
        control.should_log = control.should_evaluate or state.global_step % args.logging_steps == 0
        reason = self.stopping.reason()
        if reason is not None and state.global_step < state.max_steps:
            self.stopped = reason
            control.should_training_stop = True
        # Processes must save together, and each has its own clock.
        late = processes.any_of(time.monotonic() - self.saved_at > SECONDS_BETWEEN_CHECKPOINTS)
        control.should_save = control.should_evaluate or late or self.stopped is not None
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock anew."""
        self.saved_at = time.monotonic()


class Telling(TrainerCallback):
    """Shows how far the training is, and keeps the curves in TensorBoard's format, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bar: Any = None
        self.events: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Open the bar where the training stands, and write its curves up to here."""
        self.bar = progress_bar(of="Training", unit="steps", total=state.max_steps, initial=state.global_step)
        self.events = EventLog(self.folder, state.log_history)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Move the bar."""
        self.bar.update(1)

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Add what was logged to the curves."""
        self.events.add(state.log_history[-1])

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close both."""
        self.bar.close()
        self.events.close()
