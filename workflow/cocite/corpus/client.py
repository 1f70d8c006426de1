"""The Semantic Scholar Datasets API and the storage that its signed links lead to, spoken to over HTTP.

Two hosts, two sessions: the key goes to the API's host and nowhere else, not even where the API redirects to. What
passes by itself (too many requests, a failing server, a broken connection) is tried again with growing pauses; what
does not is an `InputError`, whose message holds neither the key nor a signed link.
"""

import logging
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse
from urllib3.util import Retry

from cocite.errors import InputError
from cocite.progress import report

KEY_VARIABLE = "S2_API_KEY"
KEY_HEADER = "x-api-key"
TIMEOUT = (10.0, 60.0)
"""Seconds to wait for a connection, and for the next bytes."""
ATTEMPTS = 8
FIRST_PAUSE = 1.0
"""Seconds before the second repetition; each pause is twice the one before, and up to this much longer at random."""
LONGEST_PAUSE = 300.0
PASSING_STATUSES = (429, 500, 502, 503, 504)
RELEASES_TO_NAME = 5


class KeptKeySession(requests.Session):
    """A session whose key stays on the host it is for: requests itself drops only `Authorization` on a redirect."""

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Drop the key where a redirect leads to another host, port or scheme."""
        super().rebuild_auth(prepared_request, response)
        asked, redirected = urlsplit(response.request.url), urlsplit(prepared_request.url)
        if (asked.scheme, asked.netloc) != (redirected.scheme, redirected.netloc):
            prepared_request.headers.pop(KEY_HEADER, None)


class ToldRetry(Retry):
    """Repetitions that are told in the log, without the link that they ask for."""

    def sleep(self, response: BaseHTTPResponse | None = None) -> None:
        """Wait before the next repetition."""
        reason = "The connection failed" if response is None else f"The server answers with status {response.status}"
        report(f"{reason}; trying again soon.")
        super().sleep(response)


class DatasetsApi:
    """The API at a base URL such as https://api.semanticscholar.org/datasets/v1, asked with the user's key."""

    def __init__(self, base_url: str) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise InputError(
                f"--origin {base_url} is not the base URL of an API; a release in a folder is ingested there."
            )
        self._base_url = base_url.rstrip("/")
        self._session = _retrying(KeptKeySession())
        self._session.headers[KEY_HEADER] = _read_key()

    def releases(self) -> list[str]:
        """Ids of all releases, the oldest first."""
        return sorted(self._ask("release/"))

    def release(self, name: str) -> dict[str, Any]:
        """A release's `release_id`, `README` and `datasets`; `latest` is a name too."""
        answer: dict[str, Any] = self._ask(f"release/{name}", unknown=lambda: self._unknown_release(name))
        return answer

    def dataset(self, release: str, name: str) -> dict[str, Any]:
        """A dataset's `README` and `files`, which are links that lapse after some hours."""
        missing = InputError(f"Release {release} has no dataset {name}.")
        answer: dict[str, Any] = self._ask(f"release/{release}/dataset/{name}", unknown=lambda: missing)
        return answer

    def _ask(self, path: str, unknown: Callable[[], InputError] | None = None) -> Any:
        url = f"{self._base_url}/{path}"
        response = _get(self._session, url)
        if response.status_code in (401, 403):
            raise InputError(
                f"{host_of(url)} refuses the key in {KEY_VARIABLE} (status {response.status_code}): "
                "check that it is complete and still valid."
            )
        if response.status_code in (400, 404) and unknown is not None:
            raise unknown()
        if not response.ok:
            raise InputError(f"{url} answers with status {response.status_code}; is it the base URL of the API?")
        try:
            return response.json()
        except requests.JSONDecodeError:
            raise InputError(f"{url} does not answer with JSON; is it the base URL of the API?") from None

    def _unknown_release(self, name: str) -> InputError:
        newest = ", ".join(reversed(self.releases()[-RELEASES_TO_NAME:])) or "none"
        return InputError(f"Release {name} does not exist; the newest are {newest}.")


class Storage:
    """Where signed links lead to. It is never sent the key."""

    def __init__(self) -> None:
        self._session = _retrying(requests.Session())

    def get(self, link: str, *, first: int, last: int | None = None) -> requests.Response:
        """Ask for the bytes from `first` to `last` (both counted, from 0); the body is streamed by the caller."""
        # Without this, requests asks for packed transfer, and lengths would be those of another stream.
        headers = {"Range": f"bytes={first}-{'' if last is None else last}", "Accept-Encoding": "identity"}
        return _get(self._session, link, headers=headers, stream=True)


def shard_name(link: str) -> str:
    """The shard that a link leads to: the last part of its path, without the signature."""
    return urlsplit(link).path.rsplit("/", 1)[-1]


def host_of(url: str) -> str:
    """The host of a URL, for messages: the rest of a signed link is a secret."""
    return urlsplit(url).netloc


def total_of(response: requests.Response) -> int | None:
    """Length of the whole file that a response is (a part of), where it says so."""
    content_range = response.headers.get("Content-Range", "")
    total = content_range.rpartition("/")[2] if response.status_code != 200 else response.headers.get("Content-Length")
    return int(total) if total and total.isdigit() else None


def _read_key() -> str:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise InputError(
            f"The environment variable {KEY_VARIABLE} is not set; ask for a key at "
            f"https://www.semanticscholar.org/product/api and run `export {KEY_VARIABLE}=…`."
        )
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"The environment variable {KEY_VARIABLE} holds characters that no key has; copy it again.")
    return key


def _retrying(session: requests.Session) -> requests.Session:
    # urllib3 would log the links that it repeats, with their signatures.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    retry = ToldRetry(
        total=ATTEMPTS,
        status_forcelist=PASSING_STATUSES,
        allowed_methods=["GET"],
        backoff_factor=FIRST_PAUSE,
        backoff_jitter=FIRST_PAUSE,
        backoff_max=LONGEST_PAUSE,
        respect_retry_after_header=True,
        raise_on_status=False,
    )
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    return session


def _get(session: requests.Session, url: str, **options: Any) -> requests.Response:
    try:
        response = session.get(url, timeout=TIMEOUT, **options)
    except requests.RequestException as error:
        # The error's own text holds the link; and its chain would be printed with it.
        raise InputError(
            f"{host_of(url)} cannot be reached ({type(error).__name__}, {ATTEMPTS} repetitions)."
        ) from None
    if response.status_code in PASSING_STATUSES:
        raise InputError(
            f"{host_of(url)} still answers with status {response.status_code} after {ATTEMPTS} repetitions."
        )
    return response
