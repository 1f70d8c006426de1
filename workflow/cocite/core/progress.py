"""Long work: its progress, as a bar on a terminal or a plain line now and then in a log; and items made ahead."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tqdm import tqdm

from cocite.core.errors import printable

Item = TypeVar("Item")

SECONDS_BETWEEN_LOG_LINES = 30.0


def progress(items: Iterable[Item], *, of: str, unit: str = "it", total: int | None = None) -> Iterator[Item]:
    """Yield `items` and report progress; `of` names the work, `unit` what is counted."""
    yield from _bar(items, of=of, unit=unit, total=total)


def progress_bar(*, of: str, unit: str, total: int | None, initial: int = 0) -> "tqdm[None]":
    """A bar to be moved by hand with `.update(n)`; close it, or use it in a `with` block."""
    return _bar(None, of=of, unit=unit, total=total, initial=initial)


def report(line: str) -> None:
    """Write one line where progress is written (standard error), without characters that a terminal obeys."""
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


def ahead(items: Iterator[Item], count: int = 1) -> Iterator[Item]:
    """The items, none of which is None; a thread makes them from now on, up to `count` before they are asked for."""
    thread = ThreadPoolExecutor(1)
    upcoming = deque(thread.submit(next, items, None) for _ in range(count))

    def made() -> Iterator[Item]:
        with thread:
            while (item := upcoming.popleft().result()) is not None:
                upcoming.append(thread.submit(next, items, None))
                yield item

    return made()


class _Lines:
    """A stream for tqdm that writes each state of a bar as a line of its own."""

    def write(self, text: str) -> None:
        if text.strip():
            report(text.strip())

    def flush(self) -> None:
        sys.stderr.flush()


def _bar(items: Iterable[Any] | None, *, of: str, unit: str, **options: Any) -> "tqdm[Any]":
    terminal = sys.stderr.isatty()
    seconds = 0.5 if terminal else SECONDS_BETWEEN_LOG_LINES
    line = None if terminal else "{desc}: {n_fmt}/{total_fmt} {unit}, {rate_fmt}, {remaining} left"
    file = sys.stderr if terminal else _Lines()
    times = {"mininterval": seconds, "maxinterval": max(seconds, 10.0)}
    return tqdm(items, desc=of, unit=unit, unit_scale=unit == "B", file=file, bar_format=line, **times, **options)
