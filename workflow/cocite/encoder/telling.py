"""What is told of a training while it runs: a bar of its steps, and its curves in TensorBoard's format."""

from pathlib import Path
from types import TracebackType
from typing import Any

from cocite.encoder import processes
from cocite.encoder.checkpoints import History
from cocite.ground.progress import progress_bar, report


class Telling:
    """Shows how far a training is, and writes its curves to `folder`; the first of several processes tells for all."""

    def __init__(self, history: History, steps: int, folder: Path) -> None:
        self.history, self.steps, self.folder = history, steps, folder
        self.told = len(history.log)
        self.bar: Any = None
        self.events: Any = None

    def __enter__(self) -> "Telling":
        """Open the bar where the training stands, and write its curves up to here."""
        if processes.is_first():
            from cocite.encoder.event_log import EventLog

            if self.history.step:
                report(f"Going on after step {self.history.step} of {self.steps}.")
            self.bar = progress_bar(of="Training", unit="steps", total=self.steps, initial=self.history.step)
            self.events = EventLog(self.folder, self.history.log)
        return self

    def tell(self) -> None:
        """Move the bar by a step, and add what was measured since to the curves."""
        if self.bar is not None:
            self.bar.update(1)
            for entry in self.history.log[self.told :]:
                self.events.add(entry)
            self.told = len(self.history.log)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close both."""
        if self.bar is not None:
            self.bar.close()
            self.events.close()
