"""What became of a run's jobs, as Snakemake's log tells."""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

State = Literal["waiting", "started", "done", "failed"]

_TIME = re.compile(r"^\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]")
_FAILED = re.compile(r"^(?:Error in (?:rule|checkpoint) \S+:|    jobs:)$")
"""What stands above the job that failed, or above the jobs of a group that did."""
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
    """Seconds since 1970; none where it is not known."""


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
