"""How far a run is: what became of each of its jobs, by Snakemake's log and the jobs' own files, and what is left."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from cocite.config.started import Job, Start, is_alive

State = Literal["waiting", "queued", "running", "done", "failed"]
"""The state of a job. Done: also before the run. Queued: submitted to a cluster, and not started. Running: at work, or
left unfinished by a run that has ended. Failed: and not started again."""

LINES = 5
"""Lines of a failed job's log that are shown."""
TAIL = 4096
"""Bytes at the end of a log that are searched for its last lines."""

_TIME = re.compile(r"^\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]")
_FAILED = re.compile(r"^(?:Error in (?:rule|checkpoint) \S+:|    jobs:)$")
"""The line above a failed job, or above the jobs of a failed group."""
_JOB = re.compile(r"^\s+jobid: (\d+)$")
_FINISHED = re.compile(r"^Finished jobid: (\d+)\b")
_AGAIN = re.compile(r"^Trying to restart job (\d+)\.$")
_QUOTED = re.compile(r"^Logfile .+:$")
_FENCE = re.compile(r"^=+$")


@dataclass(frozen=True, kw_only=True)
class Event:
    """The last thing that happened to a job."""

    state: Literal["waiting", "started", "done", "failed"]
    time: float | None
    """Seconds since 1970; None where it is not known."""


def read_events(lines: Iterable[str]) -> dict[int, Event]:
    """The last event of each job that Snakemake's log speaks of, by the job's number."""
    events: dict[int, Event] = {}
    now: float = 0
    block: Literal["started", "failed"] = "started"
    for line in _unquoted(lines):
        if stamp := _TIME.match(line):
            now, block = time.mktime(time.strptime(stamp[1], "%a %b %d %H:%M:%S %Y")), "started"
        elif _FAILED.match(line):
            block = "failed"
        elif job := _JOB.match(line):
            events[int(job[1])] = Event(state=block, time=now)
        elif job := _FINISHED.match(line):
            events[int(job[1])] = Event(state="done", time=now)
        elif job := _AGAIN.match(line):
            events[int(job[1])] = Event(state="waiting", time=now)
    return events


def _unquoted(lines: Iterable[str]) -> Iterator[str]:
    """The lines without the logs of failed jobs, which Snakemake quotes between two lines of equals signs."""
    fences = 2
    for line in lines:
        if fences < 2:
            fences += bool(_FENCE.match(line))
        elif _QUOTED.match(line):
            fences = 0
        else:
            yield line.rstrip("\n")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A run as it is now."""

    start: Start
    events: Mapping[int, Event]
    is_alive: bool | None
    """Whether it is still running; None where that cannot be known."""
    now: float
    """Seconds since 1970."""

    @cached_property
    def states(self) -> dict[int, State]:
        """The state of each job, by its number."""
        return {job.number: self._state(job) for job in self.start.jobs}

    def jobs(self, state: State) -> list[Job]:
        """The jobs in a state."""
        return [job for job in self.start.jobs if self.states[job.number] == state]

    @cached_property
    def left(self) -> list[Job]:
        """The jobs that are not finished."""
        return [job for job in self.start.jobs if self.states[job.number] != "done"]

    def by_stage(self) -> dict[str, tuple[int, int]]:
        """For each stage with jobs: the number of finished jobs and of all jobs."""
        counts: dict[str, tuple[int, int]] = {}
        for job in self.start.jobs:
            done, total = counts.get(job.stage, (0, 0))
            counts[job.stage] = done + (self.states[job.number] == "done"), total + 1
        return counts

    def seconds_of(self, job: Job) -> float | None:
        """The time that a job has been at work; None where its start is not known."""
        begun = self.events[job.number].time
        return None if begun is None else max(0.0, self.now - begun)

    def _state(self, job: Job) -> State:
        event = self.events.get(job.number)
        if event is None or not job.is_needed:
            return "waiting" if job.is_needed else "done"
        if event.state != "started":
            return event.state
        # A submitted job begins on this machine at once, on a cluster when it writes its log.
        if self.start.cores is not None or job.log is None or event.time is None:
            return "running"
        return "running" if (_written(self.start, job.log) or 0.0) >= event.time else "queued"


def read_progress(start: Start) -> Progress:
    """Read how far a run is."""
    events = dict(_by_files(start))
    if start.log and Path(start.log).is_file():
        with Path(start.log).open(encoding="utf-8", errors="replace") as lines:
            events |= read_events(lines)
    return Progress(start=start, events=events, is_alive=is_alive(start), now=time.time())


def _by_files(start: Start) -> Iterator[tuple[int, Event]]:
    """Events by files, for jobs missing from Snakemake's log: a job begins with its log and ends with its benchmark."""
    for job in start.jobs:
        if job.is_needed and (ended := _written(start, job.benchmark)):
            yield job.number, Event(state="done", time=ended)
        elif job.is_needed and _written(start, job.log):
            yield job.number, Event(state="started", time=None)


def _written(start: Start, name: str | None) -> float | None:
    """When a file was last written; None if that was before the run, or if the file does not exist."""
    with suppress(OSError):
        written = start.path(name).stat().st_mtime if name else 0.0
        return written if written >= start.time else None
    return None


def last_lines(start: Start, job: Job, count: int = LINES) -> Sequence[str]:
    """The last lines of a job's log that are not empty; none where it has no log yet."""
    if job.log is None:
        return []
    try:
        with start.path(job.log).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return [line.rstrip() for line in lines if line.strip()][-count:]
