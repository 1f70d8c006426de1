"""The progress of a run: the state of each of its jobs, and an estimate of the time that is left. It is read from files
only: so it is known during a run, after a killed one, and on any machine that sees the folder."""

import json
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from cocite.config.started import Job, Start, is_alive, read_start
from cocite.core.errors import existing_folder, full_disk
from cocite.core.progress import about, report

State = Literal["waiting", "queued", "running", "done", "failed"]
"""Done: also before the run. Queued: submitted to a cluster, and not started. Running: at work, or left unfinished by a
run that has ended. Failed: and not started again."""

WIDTH, LINES = 100, 5
"""Characters of a line of a log, and lines of a failed job's log, that are shown."""
NAMED = 6
"""Rules, or jobs in a queue, that are named."""
REPORT = "report/index.html"

_TIME = re.compile(r"^\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]")
_FAILED = re.compile(r"^(?:Error in (?:rule|checkpoint) \S+:|    jobs:)$")
"""The line above a failed job, or above the jobs of a failed group."""
_JOB = re.compile(r"^(?:\s+jobid: (\d+)$|Finished jobid: (?P<done>\d+)\b|Trying to restart job (?P<waiting>\d+)\.$)")
_QUOTED = re.compile(r"^Logfile .+:$")
_FENCE = re.compile(r"^=+$")


class Event(NamedTuple):
    """The last thing that happened to a job."""

    state: Literal["waiting", "started", "done", "failed"]
    time: float | None
    """Seconds since 1970; None if unknown."""


def read_events(lines: Iterable[str]) -> dict[int, Event]:
    """The last event of each job in Snakemake's log, by the job's number. The logs of failed jobs, which it quotes
    between two lines of equals signs, are skipped."""
    events: dict[int, Event] = {}
    now, fences = 0.0, 2
    block: Literal["started", "failed"] = "started"
    for line in lines:
        if fences < 2:
            fences += bool(_FENCE.match(line))
        elif _QUOTED.match(line):
            fences = 0
        elif stamp := _TIME.match(line):
            now, block = time.mktime(time.strptime(stamp[1], "%a %b %d %H:%M:%S %Y")), "started"
        elif _FAILED.match(line):
            block = "failed"
        elif job := _JOB.match(line):
            events[int(job[job.lastindex or 0])] = Event(job.lastgroup or block, now)  # type: ignore[arg-type]
    return events


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A run as it is now."""

    start: Start
    events: Mapping[int, Event]
    is_alive: bool | None
    """Whether it is still running; None if that cannot be known."""
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

    def seconds_of(self, job: Job) -> float | None:
        """The time that a job has been at work; None if its start is unknown."""
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
    """Read the progress of a run. A job that Snakemake's log lacks begins with its log and ends with its benchmark."""
    events = {}
    for job in start.jobs:
        if job.is_needed and (ended := _written(start, job.benchmark)):
            events[job.number] = Event("done", ended)
        elif job.is_needed and _written(start, job.log):
            events[job.number] = Event("started", None)
    if start.log and Path(start.log).is_file():
        with Path(start.log).open(encoding="utf-8", errors="replace") as lines:
            events |= read_events(lines)
    return Progress(start=start, events=events, is_alive=is_alive(start), now=time.time())


def _written(start: Start, name: str | None) -> float | None:
    """The time when a file was last written; None if that was before the run, or if the file does not exist."""
    with suppress(OSError):
        written = start.path(name).stat().st_mtime if name else 0.0
        return written if written >= start.time else None
    return None


def last_lines(start: Start, job: Job, count: int = LINES) -> Sequence[str]:
    """The last lines of a job's log that are not empty; none if it has no log yet."""
    lines: list[str] = []
    with suppress(OSError):
        if job.log is not None:
            with start.path(job.log).open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - 4096))
                lines = file.read().decode(errors="replace").splitlines()
    return [line.rstrip() for line in lines if line.strip()][-count:]


def contents_of_copy(results: Path) -> Iterator[str]:
    """What a copy of results has: the stages with results, the report and its verdict."""
    stages = sorted(path.name for path in results.iterdir() if path.is_dir() and "." not in path.name)
    yield f"  results of {', '.join(stages)}; `cocite show` lists the tables, `cocite check` reads them to their ends"
    if (page := results / REPORT).is_file():
        from cocite.tools.leaderboard import verdict_in_lines

        yield f"The report: {page}"
        yield from verdict_in_lines(results)


def described(progress: Progress, results: Path) -> Iterator[str]:
    """The progress of a run, as lines for people."""
    done = progress.jobs("done")
    has_page = any(job.rule == "write_page" for job in progress.start.jobs)
    targets = " for its targets, which are not all: a run without targets makes the report"
    of = "" if has_page or progress.left else targets
    yield f"{results}: {_state(progress)}, {len(done):,} of {len(progress.start.jobs):,} steps done{of}"
    stages = Counter(job.stage for job in progress.start.jobs)
    of_done = Counter(job.stage for job in done)
    width = max(map(len, stages), default=0)
    for stage, total in stages.items():
        yield f"  {stage:<{width}}  {of_done[stage]:>{len(str(total))},} of {total:,}"
    has_ended, running = progress.is_alive is False, []
    for job in progress.jobs("running"):
        seconds = None if has_ended else progress.seconds_of(job)
        running.append(f"{_name(job)}{'' if seconds is None else f', for {about(seconds)}'}")
        running += [f"    {line[:WIDTH]}" for line in last_lines(progress.start, job, 1)]
    yield from _listed("Cut off" if has_ended else "Running", running)
    yield from _listed("In the queue", [_name(job) for job in progress.jobs("queued")[:NAMED]])
    yield from failures(progress)
    if progress.left and not has_ended:
        needed, unknown = estimate(progress)
        named = ", ".join(unknown[:NAMED] + ["…"] * (len(unknown) > NAMED))
        lack = f"; there is no earlier step of {named}" if unknown else ""
        yield f"{'At least' if unknown else 'About'} {about(needed)} left, by what earlier steps took{lack}."
    if has_page and not progress.left:
        yield f"The report: {results / REPORT}; `cocite scores` prints its verdict."


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
    if shutil.disk_usage(existing_folder(results)).free < 1e8:  # so logs may lack what went wrong
        report(full_disk(results))


def _state(progress: Progress) -> str:
    if not progress.left:
        return "finished"
    if progress.is_alive is None:
        return f"started on {progress.start.host}, and whether it still runs cannot be checked from here"
    if progress.is_alive:
        return "running"
    return "ended with failures" if progress.jobs("failed") else "stopped before its end"


def _listed(heading: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield heading
        yield from (f"  {line}" for line in lines)


def _name(job: Job) -> str:
    return f"{job.rule} {job.of}".rstrip()


def estimate(progress: Progress) -> tuple[float, list[str]]:
    """The seconds that a run still needs, and the rules without a finished job, whose jobs they do not include. They
    are the larger of two bounds: the remaining work divided among the cores, and the longest chain of jobs that wait
    for each other. Time in a cluster's queue, whose cores are not counted, is not included."""
    cores, took, by_rule = progress.start.cores, dict[int, float](), defaultdict[str, list[float]](list)
    for job in progress.start.jobs:
        # The benchmark of its last run may not exist yet, or be half written.
        with suppress(OSError, IndexError, KeyError, TypeError, ValueError):
            if job.benchmark is not None:
                last = progress.start.path(job.benchmark).read_text(encoding="utf-8").splitlines()[-1]
                took[job.number] = float(json.loads(last)["s"])
                by_rule[job.rule].append(took[job.number])
    left = {}
    for job in progress.left:
        # An earlier run of the same job predicts its time better than other jobs of its rule.
        expected = took.get(job.number, median(by_rule[job.rule]) if by_rule[job.rule] else 0.0)
        gone = progress.seconds_of(job) if progress.states[job.number] == "running" else 0.0
        left[job.number] = max(0.0, expected - (gone or 0.0))
    work = sum(left[job.number] * min(job.threads, cores) for job in progress.left) / cores if cores else 0.0
    after = {job.number: [earlier for earlier in job.after if earlier in left] for job in progress.left}
    ends: dict[int, float] = {}  # of the longest chain that ends with a job
    for number in TopologicalSorter(after).static_order():
        ends[number] = left[number] + max((ends[earlier] for earlier in after[number]), default=0.0)
    unknown = {job.rule for job in progress.left if not by_rule[job.rule]}
    return max(work, max(ends.values(), default=0.0)), sorted(unknown)
