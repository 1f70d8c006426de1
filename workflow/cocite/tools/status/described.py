"""The progress of a run in words, with an estimate of the time that is left.

The estimate is the larger of two bounds: the remaining work divided among the cores, and the longest chain of jobs that
wait for each other. It does not include time in a cluster's queue.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median

from cocite.config.started import Job, Start, read_start
from cocite.core.progress import report
from cocite.core.words import about
from cocite.tools.status.progress import Progress, last_lines, read_progress

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
        yield _time_left(estimate(progress))


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
    # Cores of a cluster are not counted.
    work = sum(left[job.number] * min(job.threads, cores) for job in progress.left) / cores if cores else 0.0
    unknown = {job.rule for job in progress.left if not by_rule[job.rule]}
    return Remaining(seconds=max(work, _longest_chain(progress.left, left)), unknown=sorted(unknown))


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
