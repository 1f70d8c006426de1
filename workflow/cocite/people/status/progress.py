"""How far a run is: the state of each of its jobs, and what is left of them."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cocite.config.started import Job, Start, is_alive
from cocite.people.status.events import Event, read_events

LINES = 5
"""Lines of the log of a failed job that are shown."""
TAIL = 4096
"""Bytes of the end of a log in which its last lines are looked for."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A run as it is now."""

    start: Start
    events: Mapping[int, Event]
    is_alive: bool | None
    """Whether it is going on; none where nobody can tell."""
    now: float
    """Seconds since 1970."""

    @cached_property
    def done(self) -> list[Job]:
        """The jobs that are finished, those that were before the run among them."""
        return [job for job in self.start.jobs if not job.is_needed or self._state(job) == "done"]

    @cached_property
    def failed(self) -> list[Job]:
        """The jobs that failed, unless they have been started again."""
        return [job for job in self.start.jobs if self._state(job) == "failed"]

    @cached_property
    def running(self) -> list[Job]:
        """The jobs at work; of a run that has ended, those that it left unfinished."""
        return [job for job in self._started if self._is_at_work(job)]

    @cached_property
    def queued(self) -> list[Job]:
        """The jobs that a cluster has been given and has not started."""
        return [job for job in self._started if not self._is_at_work(job)]

    @cached_property
    def left(self) -> list[Job]:
        """The jobs that are not finished."""
        finished = {job.number for job in self.done}
        return [job for job in self.start.jobs if job.number not in finished]

    def by_stage(self) -> dict[str, tuple[int, int]]:
        """For each stage with jobs: how many are finished, and how many there are."""
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        finished = {job.number for job in self.done}
        for job in self.start.jobs:
            counts[job.stage][0] += job.number in finished
            counts[job.stage][1] += 1
        return {stage: (done, total) for stage, (done, total) in counts.items()}

    def seconds_of(self, job: Job) -> float | None:
        """For how long a job has been at work; none where nothing tells when it began."""
        begun = self.events[job.number].time
        return None if begun is None else max(0.0, self.now - begun)

    @cached_property
    def _started(self) -> list[Job]:
        return [job for job in self.start.jobs if self._state(job) == "started"]

    def _state(self, job: Job) -> str:
        event = self.events.get(job.number)
        return event.state if event and job.is_needed else "waiting"

    def _is_at_work(self, job: Job) -> bool:
        """Whether a job that was handed over has begun: here at once, on a cluster when it writes its log."""
        begun = self.events[job.number].time
        if self.start.cores is not None or job.log is None or begun is None:
            return True
        return (_written(self.start, job.log) or 0.0) >= begun


def read_progress(start: Start) -> Progress:
    """Look at what a run has done so far."""
    events = dict(_by_files(start))
    if start.log and Path(start.log).is_file():
        with Path(start.log).open(encoding="utf-8", errors="replace") as lines:
            events |= read_events(lines)
    return Progress(start=start, events=events, is_alive=is_alive(start), now=time.time())


def _by_files(start: Start) -> Iterator[tuple[int, Event]]:
    """What files tell where Snakemake's log is silent: a job begins with its log and ends with its benchmark."""
    for job in start.jobs:
        if job.is_needed and (ended := _written(start, job.benchmark)):
            yield job.number, Event(state="done", time=ended)
        elif job.is_needed and _written(start, job.log):
            yield job.number, Event(state="started", time=None)


def _written(start: Start, name: str | None) -> float | None:
    """When a file was last written; none if that was before the run, or if there is no such file."""
    with suppress(OSError):
        written = start.path(name).stat().st_mtime if name else 0.0
        return written if written >= start.time else None
    return None


def last_lines(start: Start, job: Job, count: int = LINES) -> Sequence[str]:
    """The last lines of a job's log, without empty ones; none where it has no log yet."""
    if job.log is None:
        return []
    try:
        with start.path(job.log).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return [line.rstrip() for line in lines if line.strip()][-count:]
