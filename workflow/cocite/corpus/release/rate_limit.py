"""The rate limit of the API: at most one request every `DISTANCE` seconds, over all jobs of all nodes.

All jobs share a file in the results folder. A job that holds its lock waits, sends one request, and releases the lock
when the head of the answer has come. So a request leaves at least `DISTANCE` after the previous one has arrived,
whatever the clocks of the nodes say. The lock is the kernel's: a killed job releases it too, and the next one still
waits first.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from cocite.core.errors import InputError

DISTANCE = 1.1
"""Seconds between two requests; a new key may send one request a second to all endpoints together."""


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait for the lock on the file `path`, and `DISTANCE` with it; then the block may send one request.

    Raises `InputError` where the file's disk has no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise InputError(
                f"{path} cannot be locked ({error.strerror}), so jobs would ask the API too often; put the results "
                "on a disk that supports locks (Lustre: mounted with -o flock)."
            ) from None
        time.sleep(DISTANCE)
        yield


class RateLimitAdapter(HTTPAdapter):
    """Sends each request in a turn of its own, also a retry and each hop of a redirect."""

    def __init__(self, path: Path) -> None:
        """`path` is the file that all jobs share."""
        super().__init__(max_retries=0)  # urllib3 would retry within one turn
        self._path = path

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        """Send a request when its turn comes; the body of the answer may come later."""
        with turn(self._path):
            return super().send(*arguments, **options)
