"""How long a run will still take, by what earlier jobs of the same rules took.

The estimate is the larger of two bounds: the work that is left, shared out over the cores, and the longest chain of
jobs that wait for each other. Time in a cluster's queue is not in it.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from cocite.config.started import Job, Start
from cocite.people.status.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """How long a run will still take."""

    seconds: float
    unknown: list[str]
    """Rules of which no job has been finished yet; the time of their jobs is not in the seconds."""


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
        # What the same job took in an earlier run says more than what others of its rule took in this one.
        expected = took.get(job.number, median(by_rule[job.rule]) if by_rule[job.rule] else 0.0)
        gone = progress.seconds_of(job) if job.number in running else 0.0
        left[job.number] = max(0.0, expected - (gone or 0.0))
    unknown = {job.rule for job in progress.left if not by_rule[job.rule]}
    return Remaining(seconds=max(_shared(start, left), _longest_chain(start, left)), unknown=sorted(unknown))


def _seconds_of_jobs(start: Start) -> dict[int, float]:
    """What jobs took when they were done last, by their benchmark files."""
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
    """The time of all work, shared out over this machine's cores; on a cluster there are as many as it takes."""
    if not start.cores:
        return 0.0
    jobs = {job.number: job for job in start.jobs}
    return sum(seconds * min(jobs[number].threads, start.cores) for number, seconds in left.items()) / start.cores


def _longest_chain(start: Start, left: Mapping[int, float]) -> float:
    """The time of the longest chain of jobs, each of which waits for the one before."""
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
