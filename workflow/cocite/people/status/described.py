"""The progress of a run in words, with an estimate of the time that is left.

The estimate is the larger of two bounds: the remaining work divided among the cores, and the longest chain of jobs that
wait for each other. It does not include time in a cluster's queue.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cocite.config.started import Job, Start, read_start
from cocite.ground.progress import report
from cocite.ground.words import about
from cocite.people.status.progress import Progress, last_lines, read_progress

WIDTH = 100
"""Characters of a line of progress that are shown."""
NAMED = 6
"""Rules, or jobs in a queue, that are named."""


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """The time that a run still needs."""

    seconds: float
    unknown: list[str]
    """Rules without a finished job; the seconds do not include their jobs."""


def described(progress: Progress, results: Path) -> Iterator[str]:
    """The progress of a run, as lines for people."""
    yield f"{results}: {_state(progress)}, {len(progress.done):,} of {len(progress.start.jobs):,} steps done"
    stages = progress.by_stage()
    width = max((len(stage) for stage in stages), default=0)
    for stage, (done, total) in stages.items():
        yield f"  {stage:<{width}}  {done:>{len(str(total))},} of {total:,}"
    at_work = "Running" if progress.is_alive is not False else "Cut off"
    yield from _listed(at_work, [line for job in progress.running for line in _running(progress, job)])
    yield from _listed("In the queue", [_name(job) for job in progress.queued[:NAMED]])
    yield from failures(progress)
    if progress.left and progress.is_alive is not False:
        yield _time_left(estimate(progress))


def failures(progress: Progress) -> Iterator[str]:
    """The jobs that failed, each with the last lines of its log."""
    lines = []
    for job in progress.failed:
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
    return "ended with failures" if progress.failed else "stopped before its end"


def _running(progress: Progress, job: Job) -> list[str]:
    lines = last_lines(progress.start, job, 1)
    seconds = progress.seconds_of(job) if progress.is_alive is not False else None
    since = "" if seconds is None else f", for {about(seconds)}"
    return [f"{_name(job)}{since}", *(f"    {line[:WIDTH]}" for line in lines)]


def _time_left(remaining: Remaining) -> str:
    unknown = remaining.unknown[:NAMED] + ["…"] * (len(remaining.unknown) > NAMED)
    if not unknown:
        return f"About {about(remaining.seconds)} left, by what earlier steps took."
    return (
        f"At least {about(remaining.seconds)} left, by what earlier steps took; there is no earlier step of "
        f"{', '.join(unknown)}."
    )


def _listed(heading: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield heading
        yield from (f"  {line}" for line in lines)


def _name(job: Job) -> str:
    return f"{job.rule} {job.of}".rstrip()


def estimate(progress: Progress) -> Remaining:
    """Estimate the time that is left of a run."""
    start, took = progress.start, _seconds_of_jobs(progress.start)
    by_rule: dict[str, list[float]] = defaultdict(list)
    for job in start.jobs:
        if job.number in took:
            by_rule[job.rule].append(took[job.number])
    running = {job.number for job in progress.running}
    left = {}
    for job in progress.left:
        # An earlier run of the same job predicts its time better than other jobs of its rule.
        expected = took.get(job.number, median(by_rule[job.rule]) if by_rule[job.rule] else 0.0)
        gone = progress.seconds_of(job) if job.number in running else 0.0
        left[job.number] = max(0.0, expected - (gone or 0.0))
    unknown = {job.rule for job in progress.left if not by_rule[job.rule]}
    return Remaining(seconds=max(_shared(start, left), _longest_chain(start, left)), unknown=sorted(unknown))


def _seconds_of_jobs(start: Start) -> dict[int, float]:
    """The time of each job when it last ran, from its benchmark file."""
    took = {}
    for job in start.jobs:
        if job.benchmark is not None:
            try:
                last = start.path(job.benchmark).read_text(encoding="utf-8").splitlines()[-1]
                took[job.number] = float(json.loads(last)["s"])
            except (OSError, IndexError, KeyError, TypeError, ValueError):
                continue  # not there yet, or half written
    return took


def _shared(start: Start, left: Mapping[int, float]) -> float:
    """The time of all work divided among this machine's cores; zero on a cluster, whose cores are not counted."""
    if not start.cores:
        return 0.0
    jobs = {job.number: job for job in start.jobs}
    return sum(seconds * min(jobs[number].threads, start.cores) for number, seconds in left.items()) / start.cores


def _longest_chain(start: Start, left: Mapping[int, float]) -> float:
    """The time of the longest chain of jobs that wait for each other."""
    jobs: dict[int, Job] = {job.number: job for job in start.jobs}
    ends: dict[int, float] = {}
    pending = list(left)
    while pending:
        number = pending[-1]
        earlier = [other for other in jobs[number].after if other in left]
        missing = [other for other in earlier if other not in ends]
        if missing:
            pending += missing
        else:
            ends[number] = left[number] + max((ends[other] for other in earlier), default=0.0)
            pending.pop()
    return max(ends.values(), default=0.0)
