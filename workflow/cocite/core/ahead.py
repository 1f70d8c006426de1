"""Work done ahead: while one item is used, a thread makes the next ones."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


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
