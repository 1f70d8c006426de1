"""What a step tells people: messages, its progress, and what it took; and items made ahead.

Progress is a bar on a terminal, or a plain line now and then in a log. The last line of a step's log has its time and
memory, which the report sums up: Snakemake's benchmarks miss what comes after the last sample, half of a short job.
"""

import re
import resource
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from cocite.core.errors import printable

Item = TypeVar("Item")

STARTED = time.monotonic()
"""When this process began to import the package."""
PROCESS = Path("/proc/self/status")
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
_LINE = re.compile(
    r"^Took (?P<seconds>[\d.]+) s, (?P<cpu_seconds>[\d.]+) s of processor time, (?P<peak_mb>\d+) MB at most\.$",
    re.MULTILINE,
)


def progress(items: Iterable[Item], *, of: str, unit: str = "it", total: int | None = None) -> Iterator[Item]:
    """Yield `items` and report progress; `of` names the work, `unit` what is counted."""
    yield from progress_bar(items, of=of, unit=unit, total=total)


def progress_bar(items: Iterable[Any] | None = None, *, of: str, unit: str, **options: Any) -> "tqdm[Any]":
    """A bar over `items`, or one to be moved by hand with `.update(n)` and to be closed. `options` are tqdm's: total,
    initial, and delay, the seconds of work from which on the bar is shown."""
    options |= {"desc": of, "unit": unit, "unit_scale": unit == "B"}
    if sys.stderr.isatty():
        return tqdm(items, file=sys.stderr, mininterval=0.5, maxinterval=10.0, **options)
    line = "{desc}: {n_fmt}/{total_fmt} {unit}, {rate_fmt}, {remaining} left"
    return tqdm(items, file=_Lines(), bar_format=line, mininterval=30.0, maxinterval=30.0, **options)


def report(line: str) -> None:
    """Write one line where progress is written (standard error), without characters that a terminal obeys."""
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


def ahead(items: Iterator[Item], count: int = 1) -> Iterator[Item]:
    """The items, none of which is None; a thread computes up to `count` of them in advance."""
    thread = ThreadPoolExecutor(1)
    upcoming = deque(thread.submit(next, items, None) for _ in range(count))

    def made() -> Iterator[Item]:
        with thread:
            while (item := upcoming.popleft().result()) is not None:
                upcoming.append(thread.submit(next, items, None))
                yield item

    return made()


class _Lines:
    """A stream for tqdm that writes each state of a bar as a separate line."""

    def write(self, text: str) -> None:
        if text.strip():
            report(text.strip())

    def flush(self) -> None:
        sys.stderr.flush()


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one run of a command took."""

    seconds: float
    cpu_seconds: float
    """Of all its threads, and of the processes that it started and waited for."""
    peak_mb: float
    """Largest resident memory of one of its processes, MB."""

    def __str__(self) -> str:
        """Write the line that `last_usage` reads."""
        return f"Took {self.seconds:.2f} s, {self.cpu_seconds:.2f} s of processor time, {self.peak_mb:.0f} MB at most."


def usage() -> Usage:
    """What this process and its finished children have taken so far."""
    itself, children = (resource.getrusage(whom) for whom in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # The system's maximum may still be that of the process which started this one; only Linux has another.
    lines = PROCESS.read_text(encoding="utf-8").splitlines() if PROCESS.is_file() else []
    peaks = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return Usage(
        seconds=time.monotonic() - STARTED,
        cpu_seconds=sum(part.ru_utime + part.ru_stime for part in (itself, children)),
        peak_mb=max(*(peaks or [itself.ru_maxrss * MAXRSS_UNIT]), children.ru_maxrss * MAXRSS_UNIT) / 1e6,
    )


def report_usage() -> None:
    """Write the line to standard error, which the rules send to their logs."""
    sys.stderr.write(f"{usage()}\n")


def last_usage(log: Path) -> Usage | None:
    """What the last finished run of a command took, by its log; None if none has finished."""
    matches = [*_LINE.finditer(log.read_text(encoding="utf-8", errors="replace"))]
    return Usage(**{name: float(value) for name, value in matches[-1].groupdict().items()}) if matches else None


def clock_time(seconds: float) -> str:
    """A duration as hours, minutes and seconds, such as 25:01:01; a day counts as 24 hours."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def about(seconds: float) -> str:
    """A duration in the unit that fits, such as 4 min."""
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"


def byte_size(size: float, figures: str = ",.1f") -> str:
    """A number of bytes in the unit that fits, such as 44.1 GB; `figures` is how the number before it is written."""
    for unit, length in {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}.items():
        if size >= length:
            return f"{size / length:{figures}} {unit}"
    return f"{size:.0f} B"
