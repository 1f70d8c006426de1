"""Commands as whole processes: their wall time, processor time and peak memory, and ratios of medians between them."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 5

Command = Sequence[str | Path]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a command took."""

    wall: float
    """Seconds from start to end."""
    cpu: float
    """Seconds of all processors."""
    peak_mb: float
    """Largest resident memory of one process, MB; never below what the benchmark itself has held, since a process
    starts with the peak of the one that starts it. So a benchmark reads nothing large."""


def run(command: Command) -> Cost:
    """Run a command to its end, its output to nowhere; it must succeed."""
    return run_and_read(command)[0]


def run_and_read(command: Command) -> tuple[Cost, str]:
    """Run a command to its end; return its cost and what it reported on standard error. It must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    reported = process.stderr.read().decode() if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}: {reported[-2000:]}")
    wall = time.perf_counter() - start
    return Cost(wall=wall, cpu=usage.ru_utime + usage.ru_stime, peak_mb=usage.ru_maxrss / 1000), reported


def run_together(queues: Sequence[Sequence[Command]]) -> Cost:
    """Run queues of commands side by side, each queue in its order; their processor time is summed."""
    start = time.perf_counter()
    with ThreadPoolExecutor(len(queues)) as threads:
        costs = [cost for queue in threads.map(lambda queue: list(map(run, queue)), queues) for cost in queue]
    wall = time.perf_counter() - start
    return Cost(wall=wall, cpu=sum(cost.cpu for cost in costs), peak_mb=max(cost.peak_mb for cost in costs))


def compare(
    title: str, ours: Callable[[], Cost], rival: Callable[[], Cost], of: str, *, rounds: int = ROUNDS
) -> tuple[Cost, float]:
    """Run both in turn, print the ratio of their medians of `wall` or `cpu`; return our last cost and the ratio."""
    ours(), rival()  # both start with warm caches
    pairs = [(ours(), rival()) for _ in range(rounds)]
    mine, others = (statistics.median(getattr(pair[side], of) for pair in pairs) for side in (0, 1))
    spread = sorted(getattr(ours_, of) / getattr(rival_, of) for ours_, rival_ in pairs)
    say(
        f"{title}: {mine / others:.2f} × ({mine:.2f} s to {others:.2f} s of {of}, medians of {rounds}; "
        f"round by round {spread[0]:.2f} to {spread[-1]:.2f})"
    )
    return pairs[-1][0], mine / others


def say(line: str) -> None:
    """Print a result at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
