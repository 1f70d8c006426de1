"""The progress of a run in words."""

from collections.abc import Iterator
from pathlib import Path

from cocite.config.started import Job, read_start
from cocite.ground.progress import report
from cocite.ground.words import about
from cocite.people.status.progress import Progress, last_lines, read_progress
from cocite.people.status.remaining import Remaining, estimate

WIDTH = 100
"""Characters of a line of progress that are shown."""
NAMED = 6
"""Rules, or jobs in a queue, that are named."""


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
    """Write the failures of the run that has just ended where progress is written, as the last thing a reader sees."""
    start = read_start(results)
    for line in failures(read_progress(start)) if start else ():
        report(line)


def _state(progress: Progress) -> str:
    if not progress.left:
        return "finished"
    if progress.is_alive is None:
        return f"started on {progress.start.host}, which cannot be asked from here whether it still runs"
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
