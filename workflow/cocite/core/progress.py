"""Long work: its progress, as a bar on a terminal or a plain line now and then in a log; and items made ahead."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tqdm import tqdm

from cocite.core.errors import printable

Item = TypeVar("Item")

SECONDS_BETWEEN_LOG_LINES = 30.0


def progress(items: Iterable[Item], *, of: str, unit: str = "it", total: int | None = None) -> Iterator[Item]:
    """Yield `items` and report progress; `of` names the work, `unit` what is counted."""
    yield from tqdm(items, **_style(of, unit, total))


def progress_bar(*, of: str, unit: str, total: int | None, initial: int = 0) -> "tqdm[None]":
    """A bar to be moved by hand with `.update(n)`; close it, or use it in a `with` block."""
    return tqdm(initial=initial, **_style(of, unit, total))


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


def _style(of: str, unit: str, total: int | None) -> dict[str, object]:
    terminal = sys.stderr.isatty()
    seconds = 0.5 if terminal else SECONDS_BETWEEN_LOG_LINES
    return {
        "desc": of,
        "unit": unit,
        "total": total,
        "unit_scale": unit == "B",
        "mininterval": seconds,
        "maxinterval": max(seconds, 10.0),
        "file": sys.stderr if terminal else _Lines(),
        "bar_format": None if terminal else "{desc}: {n_fmt}/{total_fmt} {unit}, {rate_fmt}, {remaining} left",
    }
