"""How far a run is: what became of each of its jobs, in words, and an estimate of the time that is left.

It is read from the plan that a run records, Snakemake's log and the jobs' own files; neither Snakemake nor a cluster is
asked. So it is known at once, during a run, after a killed one, and on any machine that can read the folder.
"""

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from cocite.config.started import Job, Start, is_alive, read_start
from cocite.core.progress import report
from cocite.core.usage import about

State = Literal["waiting", "queued", "running", "done", "failed"]
"""The state of a job. Done: also before the run. Queued: submitted to a cluster, and not started. Running: at work, or
left unfinished by a run that has ended. Failed: and not started again."""

WIDTH = 100
"""Characters of a line of progress that are shown."""
NAMED = 6
"""Rules, or jobs in a queue, that are named."""
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


class Event(NamedTuple):
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
            events[int(job[1])] = Event(block, now)
        elif job := _FINISHED.match(line):
            events[int(job[1])] = Event("done", now)
        elif job := _AGAIN.match(line):
            events[int(job[1])] = Event("waiting", now)
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
            yield job.number, Event("done", ended)
        elif job.is_needed and _written(start, job.log):
            yield job.number, Event("started", None)


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


def described(progress: Progress, results: Path) -> Iterator[str]:
    """The progress of a run, as lines for people."""
    done = len(progress.jobs("done"))
    yield f"{results}: {_state(progress)}, {done:,} of {len(progress.start.jobs):,} steps done"
    stages = progress.by_stage()
    width = max((len(stage) for stage in stages), default=0)
    for stage, (done, total) in stages.items():
        yield f"  {stage:<{width}}  {done:>{len(str(total))},} of {total:,}"
    at_work = "Running" if progress.is_alive is not False else "Cut off"
    yield from _listed(at_work, [line for job in progress.jobs("running") for line in _running(progress, job)])
    yield from _listed("In the queue", [_name(job) for job in progress.jobs("queued")[:NAMED]])
    yield from failures(progress)
    if progress.left and progress.is_alive is not False:
        seconds, unknown = estimate(progress)
        named = ", ".join(unknown[:NAMED] + ["…"] * (len(unknown) > NAMED))
        yield (
            f"At least {about(seconds)} left, by what earlier steps took; there is no earlier step of {named}."
            if unknown
            else f"About {about(seconds)} left, by what earlier steps took."
        )


def failures(progress: Progress) -> Iterator[str]:
    """The jobs that failed, each with the last lines of its log."""
    lines = []
    for job in progress.jobs("failed"):
        lines.append(f"{_name(job)}: {progress.start.path(job.log) if job.log else 'it has no log'}")
        lines += [f"    {line}" for line in last_lines(progress.start, job)]
    yield from _listed("Failed", lines)


def report_failures(results: Path) -> None:
    """Report the failures of the run that has just ended, as the last lines of its output."""
    start = read_start(results)
    for line in failures(read_progress(start)) if start else ():
        report(line)


def _state(progress: Progress) -> str:
    if not progress.left:
        return "finished"
    if progress.is_alive is None:
        return f"started on {progress.start.host}, and whether it still runs cannot be checked from here"
    if progress.is_alive:
        return "running"
    return "ended with failures" if progress.jobs("failed") else "stopped before its end"


def _running(progress: Progress, job: Job) -> list[str]:
    lines = last_lines(progress.start, job, 1)
    seconds = progress.seconds_of(job) if progress.is_alive is not False else None
    since = "" if seconds is None else f", for {about(seconds)}"
    return [f"{_name(job)}{since}", *(f"    {line[:WIDTH]}" for line in lines)]


def _listed(heading: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield heading
        yield from (f"  {line}" for line in lines)


def _name(job: Job) -> str:
    return f"{job.rule} {job.of}".rstrip()


def estimate(progress: Progress) -> tuple[float, list[str]]:
    """The seconds that a run still needs, and the rules without a finished job, whose jobs they do not include.

    They are the larger of two bounds: the remaining work divided among the cores, and the longest chain of jobs that
    wait for each other. Time in a cluster's queue, whose cores are not counted, is not included.
    """
    cores, took = progress.start.cores, _seconds_of_jobs(progress.start)
    by_rule: dict[str, list[float]] = defaultdict(list)
    for job in progress.start.jobs:
        if job.number in took:
            by_rule[job.rule].append(took[job.number])
    left = {}
    for job in progress.left:
        # An earlier run of the same job predicts its time better than other jobs of its rule.
        expected = took.get(job.number, median(by_rule[job.rule]) if by_rule[job.rule] else 0.0)
        gone = progress.seconds_of(job) if progress.states[job.number] == "running" else 0.0
        left[job.number] = max(0.0, expected - (gone or 0.0))
    work = sum(left[job.number] * min(job.threads, cores) for job in progress.left) / cores if cores else 0.0
    unknown = {job.rule for job in progress.left if not by_rule[job.rule]}
    return max(work, _longest_chain(progress.left, left)), sorted(unknown)


def _seconds_of_jobs(start: Start) -> dict[int, float]:
    """The time of each job when it last ran, from its benchmark file."""
    took = {}
    for job in start.jobs:
        if job.benchmark is not None:
            # It may not exist yet, or be half written.
            with suppress(OSError, IndexError, KeyError, TypeError, ValueError):
                last = start.path(job.benchmark).read_text(encoding="utf-8").splitlines()[-1]
                took[job.number] = float(json.loads(last)["s"])
    return took


def _longest_chain(jobs: list[Job], seconds: Mapping[int, float]) -> float:
    """The time of the longest chain of jobs that wait for each other."""
    after = {job.number: [earlier for earlier in job.after if earlier in seconds] for job in jobs}
    ends: dict[int, float] = {}
    for number in TopologicalSorter(after).static_order():
        ends[number] = seconds[number] + max((ends[earlier] for earlier in after[number]), default=0.0)
    return max(ends.values(), default=0.0)
