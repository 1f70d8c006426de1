"""How far a run is: what became of each of its jobs, by Snakemake's log and the jobs' own files, and what is left."""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from cocite.config.started import Job, Start, is_alive

State = Literal["waiting", "started", "done", "failed"]

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

    state: State
    time: float | None
    """Seconds since 1970; None where it is not known."""


def read_events(lines: Iterable[str]) -> dict[int, Event]:
    """The last event of each job that Snakemake's log speaks of, by the job's number."""
    events: dict[int, Event] = {}
    now: float = 0
    block: State = "started"
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
    def done(self) -> list[Job]:
        """The finished jobs, including those finished before the run."""
        return [job for job in self.start.jobs if not job.is_needed or self._state(job) == "done"]

    @cached_property
    def failed(self) -> list[Job]:
        """The jobs that failed, unless they have been started again."""
        return [job for job in self.start.jobs if self._state(job) == "failed"]

    @cached_property
    def running(self) -> list[Job]:
        """The jobs at work; for a run that has ended, those that it left unfinished."""
        return [job for job in self._started if self._is_at_work(job)]

    @cached_property
    def queued(self) -> list[Job]:
        """The jobs that were submitted to a cluster and have not started."""
        return [job for job in self._started if not self._is_at_work(job)]

    @cached_property
    def left(self) -> list[Job]:
        """The jobs that are not finished."""
        finished = {job.number for job in self.done}
        return [job for job in self.start.jobs if job.number not in finished]

    def by_stage(self) -> dict[str, tuple[int, int]]:
        """For each stage with jobs: the number of finished jobs and of all jobs."""
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        finished = {job.number for job in self.done}
        for job in self.start.jobs:
            counts[job.stage][0] += job.number in finished
            counts[job.stage][1] += 1
        return {stage: (done, total) for stage, (done, total) in counts.items()}

    def seconds_of(self, job: Job) -> float | None:
        """The time that a job has been at work; None where its start is not known."""
        begun = self.events[job.number].time
        return None if begun is None else max(0.0, self.now - begun)

    @cached_property
    def _started(self) -> list[Job]:
        return [job for job in self.start.jobs if self._state(job) == "started"]

    def _state(self, job: Job) -> str:
        event = self.events.get(job.number)
        return event.state if event and job.is_needed else "waiting"

    def _is_at_work(self, job: Job) -> bool:
        """Whether a submitted job has begun: on this machine at once, on a cluster when it writes its log."""
        begun = self.events[job.number].time
        if self.start.cores is not None or job.log is None or begun is None:
            return True
        return (_written(self.start, job.log) or 0.0) >= begun


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
