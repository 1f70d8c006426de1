"""Requests to the API and to storage, with retries of transient failures and a rate limit; no link or key is logged.

The API accepts one request every `DISTANCE` seconds from all jobs of all nodes: a job locks a file in the results
folder, waits, sends one request, and releases the lock when the response headers have arrived. So the clocks of the
nodes do not matter, and the kernel unlocks for a killed job.
"""

import fcntl
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError, ContentDecodingError
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from cocite.core.errors import LONGEST_REASON, InputError
from cocite.core.progress import report

TIMEOUT = (10.0, 60.0)
"""Seconds to wait for a connection, and for the next bytes."""
RETRIES = 10
"""Most retries of a request: over some twenty minutes."""
DOUBTFUL_RETRIES = 3
"""Most retries after an answer that seldom changes, such as a refused key."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
"""Seconds of the first pause and the longest, without their random part of up to as much again."""
LONGEST_WAIT = 3600
"""The most seconds that a server can ask a job to wait: one that sleeps longer keeps others from its slot."""
LASTING_STATUSES = (501, 505)
"""Those of a server that fails for good; gateways have more than are standard for one that fails for now."""
BROKEN = (requests.ConnectionError, requests.Timeout, ChunkedEncodingError, ContentDecodingError)
DISTANCE = 1.1
"""Seconds between two requests; a new key may send one request a second to all endpoints together."""


def ask(
    session: requests.Session,
    url: str,
    *,
    is_doubtful: Callable[[requests.Response], bool] = lambda response: False,
    is_final: Callable[[requests.Response], bool] = lambda response: False,
    **options: Any,
) -> requests.Response:
    """GET, or POST of `json`, with retries, few of them while an answer `is_doubtful` and none once one `is_final`.
    Raises `InputError`, without the link, at last."""
    failures = doubts = 0
    while True:
        response, is_passing = None, True
        try:
            response = session.request("POST" if "json" in options else "GET", url, timeout=TIMEOUT, **options)
            status = response.status_code
            failure = f"answers with status {status}"
            is_passing = status in (408, 429) or (status >= 500 and status not in LASTING_STATUSES)
        except BROKEN as error:
            failure = f"cannot be reached ({type(error).__name__})"
        except requests.RequestException as error:
            # The error's own text contains the link; and its chain would be printed with it.
            raise InputError(f"{host_of(url)} cannot be asked ({type(error).__name__}).") from None
        if response is not None and (not is_passing or is_final(response)):
            if doubts == DOUBTFUL_RETRIES or is_final(response) or not is_doubtful(response):
                return response
            doubts += 1
        if response is not None:
            response.close()
        if failures == RETRIES:
            raise InputError(f"{host_of(url)} {failure}, even after {RETRIES} retries; run again later.")
        failures += 1
        report(f"{host_of(url)} {failure}; trying again soon.")
        wait(failures, response)


def wait(failures: int, response: requests.Response | None = None) -> None:
    """Sleep after this many consecutive failures (from 1), at least as long as Retry-After in the last answer."""
    header = None if response is None else response.headers.get("Retry-After")
    try:
        asked_for = Retry(retry_after_max=LONGEST_WAIT).parse_retry_after(header) if header else 0
    except (InvalidHeader, ValueError, OverflowError):
        asked_for = 0
    pause = min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE)
    time.sleep(max(pause, asked_for) + SystemRandom().uniform(0, pause))


def host_of(url: str) -> str:
    """The host of a URL, for messages: the rest of a signed link is a secret."""
    return urlsplit(url).netloc.rpartition("@")[2]


def said_by(response: requests.Response) -> str:
    """What an API says of an error, in one line; empty if there is none, or it says nothing."""
    if response.status_code < 300:
        return ""
    try:
        content: Any = response.json()
    except requests.JSONDecodeError:
        return ""
    said = [content.get(key) for key in ("error", "message")] if isinstance(content, dict) else []
    return " ".join(": ".join(text for text in said if isinstance(text, str)).split())


def status_of(response: requests.Response, secret: str = "") -> str:
    """The status of an answer and what the API says of it, without a secret, for a message."""
    said = said_by(response)
    said = (said.replace(secret, "…") if secret else said)[:LONGEST_REASON]
    return f"status {response.status_code}: {said}" if said else f"status {response.status_code}"


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait for the lock on a file, and `DISTANCE` with it. Raises `InputError` if its disk has no locks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            remedy = "put the results on a disk that supports locks (Lustre: mounted with -o flock)"
            said = f"cannot be locked ({error.strerror}), so jobs would ask the API too often"
            raise InputError(f"{path} {said}; {remedy}.") from None
        time.sleep(DISTANCE)
        yield


class RateLimitAdapter(HTTPAdapter):
    """Sends each request separately rate-limited, including retries and each hop of a redirect."""

    def __init__(self, path: Path) -> None:
        super().__init__(max_retries=0)  # urllib3 would retry within one turn
        self._path = path

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        """Send a request when its turn comes; the body of the answer may come later."""
        with turn(self._path):
            return super().send(*arguments, **options)


class Storage:
    """The storage of signed links, or of a copy. It is never sent the key."""

    def __init__(self, doubtful: Collection[int] = ()) -> None:
        """`doubtful` are statuses that may change when the storage is asked again."""
        self._session, self._doubtful = requests.Session(), doubtful

    def get(self, link: str, *, first: int, last: int | None = None) -> requests.Response:
        """Request the bytes from `first` to `last` (both inclusive, from 0); the caller streams the body."""
        # By default, requests asks for compressed transfer, and lengths would be those of another stream.
        headers = {"Range": f"bytes={first}-{'' if last is None else last}", "Accept-Encoding": "identity"}
        options: Any = {"headers": headers, "stream": True}
        return ask(self._session, link, is_doubtful=lambda got: got.status_code in self._doubtful, **options)


def shard_name(link: str) -> str:
    """The shard that a link leads to: the last part of its path, without the signature."""
    return urlsplit(link).path.rsplit("/", 1)[-1]


def total_of(response: requests.Response) -> int | None:
    """Length of the whole file of a full or partial response, if it is stated."""
    content_range = response.headers.get("Content-Range", "")
    total = content_range.rpartition("/")[2] if response.status_code != 200 else response.headers.get("Content-Length")
    return int(total) if total and total.isdigit() else None


def first_of(response: requests.Response) -> int | None:
    """The byte of the file, from 0, at which the body of a response begins; None if a part does not state it."""
    if response.status_code == 200:
        return 0
    first = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else None


def other_length(shard: str, found: int | None) -> InputError:
    """The error for a shard that is not the listed one; no part of it may be joined to the bytes that are there."""
    remedy = "delete the manifest and run again."
    return InputError(f"Shard {shard} has {found} bytes at the storage and another length in the manifest; {remedy}")
