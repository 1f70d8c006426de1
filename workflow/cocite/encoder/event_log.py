"""The curves of a training as a file of TensorBoard's events.

It grows while the training runs (`tensorboard --logdir` shows it). When a training goes on, it is written again from
what was measured before, so that no step is in it twice.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from cocite.encoder.results import CURVES

FILE = "events.out.tfevents.training"
VERSION = "brain.Event:2"


class EventLog:
    """Writes what a training measures to a file in `folder`."""

    def __init__(self, folder: Path, history: Iterable[dict[str, Any]]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.writer = RecordWriter((folder / FILE).open("wb"))
        self.writer.write(Event(wall_time=time.time(), file_version=VERSION).SerializeToString())
        for entry in history:
            self.add(entry)

    def add(self, entry: dict[str, Any]) -> None:
        """Write the metrics of one entry."""
        values = [Summary.Value(tag=CURVES[name], simple_value=entry[name]) for name in CURVES if name in entry]
        event = Event(wall_time=time.time(), step=entry["step"], summary=Summary(value=values))
        self.writer.write(event.SerializeToString())
        self.writer.flush()

    def close(self) -> None:
        """Close the file."""
        self.writer.close()
