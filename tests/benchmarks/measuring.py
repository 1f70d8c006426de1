"""Commands as whole processes: their wall time, processor time and peak memory, and ratios of medians between them."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROUNDS = 5

Command = Sequence[str | Path]


@dataclass(frozen=True, kw_only=True)
class Cost:
    wall: float
    """Seconds from start to end."""
    cpu: float
    """Seconds of all processors."""
    peak_mb: float
    """Largest resident memory of one process, MB; never below what the benchmark itself has held, since a process
    starts with the peak of the one that starts it. So a benchmark reads nothing large."""

    def __str__(self) -> str:
        return f"{self.wall:.1f} s ({self.cpu:.1f} s of processors), peak memory {self.peak_mb:,.0f} MB"

    def __add__(self, other: "Cost") -> "Cost":
        """The cost of one command after another."""
        peak_mb = max(self.peak_mb, other.peak_mb)
        return Cost(wall=self.wall + other.wall, cpu=self.cpu + other.cpu, peak_mb=peak_mb)


def cocite(*words: object, **options: object) -> Command:
    """A command of ours; an option that is true has no value, a tuple several, and a dictionary is written as JSON."""
    return [str(Path(sys.executable).with_name("cocite")), *map(str, words), *_as_words(options)]


def python(function: Callable[..., Any] | str, *arguments: object, **options: object) -> Command:
    """The command that calls a function of a benchmark, or one named MODULE:FUNCTION, in a process of its own."""
    if callable(function):
        function = f"{function.__module__.removeprefix('tests.benchmarks.')}:{function.__name__}"
    return [sys.executable, "-m", "tests.benchmarks", function, *map(str, arguments), *_as_words(options)]


def _as_words(options: dict[str, object]) -> list[str]:
    words = []
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            values = value if isinstance(value, tuple) else (value,)
            words += [json.dumps(each) if isinstance(each, dict) else str(each) for each in values]
    return words


def run(command: Command) -> Cost:
    """Run a command to its end; it must succeed."""
    return run_and_read(command)[0]


def answer(function: Callable[..., Any] | str, *arguments: object) -> tuple[Cost, Any]:
    """Call a function in a process of its own; return the cost of that, and what it returned."""
    with tempfile.TemporaryFile() as printed:
        cost, _ = run_and_read(python(function, *arguments), printed)
        printed.seek(0)
        return cost, json.load(printed)


def run_and_read(command: Command, printed: Any = subprocess.DEVNULL) -> tuple[Cost, str]:
    """Run a command to its end; return its cost and what it reported on standard error. It must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=printed, stderr=subprocess.PIPE)
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
    title: str, ours: Callable[[], Cost] | Command, rival: Callable[[], Cost] | Command, of: str, rounds: int = ROUNDS
) -> tuple[Cost, float]:
    """Run both in turn, print the ratio of their medians of `wall` or `cpu`; return our last cost and the ratio."""
    mine, others = ((lambda side=side: side() if callable(side) else run(side)) for side in (ours, rival))
    mine(), others()  # both start with warm caches
    pairs = [(mine(), others()) for _ in range(rounds)]
    medians = [statistics.median(getattr(pair[side], of) for pair in pairs) for side in (0, 1)]
    ratio = medians[0] / medians[1]
    spread = spread_of(getattr(ours_, of) / getattr(rival_, of) for ours_, rival_ in pairs)
    say(f"{title}: {ratio:.2f} × ({medians[0]:.2f} s to {medians[1]:.2f} s of {of}, medians of {rounds}; {spread})")
    return pairs[-1][0], ratio


def in_turn(ways: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, list[Any]]:
    """What each way gives in each round, the ways one after the other."""
    found: dict[Any, list[Any]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    return found


def median_ratio(some: Iterable[float], others: Iterable[float]) -> str:
    """The median of the ratios of the rounds, in words."""
    ratios = [one / other for one, other in zip(some, others, strict=True)]
    return f"{statistics.median(ratios):.2f} × ({spread_of(ratios)})"


def spread_of(ratios: Iterable[float]) -> str:
    """The least and the largest of the ratios of the rounds, in words."""
    found = list(ratios)
    return f"round by round {min(found):.2f} to {max(found):.2f}"


def mean_and_deviation(values: Sequence[float]) -> str:
    """Mean ± standard deviation, or the one value there is."""
    deviation = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{deviation}"


def say_header(*names: str) -> None:
    """The names of the columns of a table."""
    say(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}")


def say_row(*cells: object) -> None:
    say(f"| {' | '.join(map(str, cells))} |")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
