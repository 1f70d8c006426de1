"""A client of the Semantic Scholar Datasets API, and of the storage that its signed links lead to.

Two hosts, two sessions: the key goes to the API's host and nowhere else, not even where the API redirects to. All jobs
share the rate limit of the API. A failure that may pass is retried; any other is an `InputError`, whose message holds
neither the key nor a signed link.
"""

import logging
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from jsonschema import Draft202012Validator

from cocite.core.errors import InputError
from cocite.corpus.release.retry import RateLimitAdapter, ask, host_of

KEY_VARIABLE = "S2_API_KEY"
KEY_HEADER = "x-api-key"
SCHEMES = ("http://", "https://")
RELEASES_TO_NAME = 5
# The warnings of urllib3 show the link with its signature.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)

TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": TEXT}


def object_with(description: str = "", **keys: Any) -> dict[str, Any]:
    """The JSON schema of an object that has these keys, and may have others."""
    return {"description": description, "type": "object", "properties": keys, "required": [*keys]}


def list_with(**keys: Any) -> dict[str, Any]:
    """The JSON schema of a list of such objects."""
    return {"type": "array", "items": object_with(**keys)}


RESPONSE_SCHEMAS = {
    "releases": _TEXTS | {"description": "a list of ids"},
    "release": object_with(
        "release_id and datasets, each with name and README",
        release_id=TEXT,
        datasets=list_with(name=TEXT, README=TEXT),
    ),
    "dataset": object_with("README and files, a list of links", README=TEXT, files=_TEXTS),
    "diffs": object_with(
        "diffs, each with from_release, to_release, update_files and delete_files, which are lists of links",
        diffs=list_with(from_release=TEXT, to_release=TEXT, update_files=_TEXTS, delete_files=_TEXTS),
    ),
}
"""A response of another shape is refused where it arrives, in a sentence that quotes the description."""


class KeptKeySession(requests.Session):
    """A session whose key stays on the host it is for: requests itself drops only `Authorization` on a redirect."""

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Drop the key where a redirect leads to another host, port or scheme."""
        super().rebuild_auth(prepared_request, response)
        asked, redirected = urlsplit(response.request.url), urlsplit(prepared_request.url)
        if (asked.scheme, asked.netloc) != (redirected.scheme, redirected.netloc):
            prepared_request.headers.pop(KEY_HEADER, None)


class DatasetsApi:
    """The API at a base URL such as https://api.semanticscholar.org/datasets/v1, asked with the user's key."""

    def __init__(self, base_url: str, turns: Path, key: str | None = None) -> None:
        """`turns` is the file through which all jobs keep the rate limit (see `retry.py`).

        Without a key, it is the user's, in the environment.
        """
        self._base_url = base_url.rstrip("/")
        self._session = KeptKeySession()
        self._session.headers[KEY_HEADER] = key or _read_key()
        for scheme in SCHEMES:
            self._session.mount(scheme, RateLimitAdapter(turns))

    def releases(self) -> list[str]:
        """Ids of all releases, the oldest first."""
        return sorted(self._ask("release/", "releases"))

    def release(self, name: str) -> dict[str, Any]:
        """A release's `release_id`, `README` and `datasets`; `latest` is a name too."""
        return self._ask(
            f"release/{name}", "release", lambda: f"Release {name} does not exist; the newest are {self._newest()}."
        )

    def dataset(self, release: str, name: str) -> dict[str, Any]:
        """A dataset's `README` and `files`, which are links that lapse after some hours."""
        return self._ask(
            f"release/{release}/dataset/{name}", "dataset", lambda: f"Release {release} has no dataset {name}."
        )

    def diffs(self, since: str, release: str, name: str) -> dict[str, Any]:
        """The `diffs` of a dataset from one release to a later one, each with links to its files, which lapse."""
        return self._ask(
            f"diffs/{since}/to/{release}/{name}",
            "diffs",
            lambda: (
                f"The API has no diffs of {name} from release {since} to {release}; ingest {release} whole "
                "(without corpus.base)."
            ),
        )

    def _ask(self, path: str, kind: str, unknown: Callable[[], str] | None = None) -> Any:
        url = f"{self._base_url}/{path}"
        response = ask(self._session, url, is_doubtful=_is_doubtful)
        if response.status_code in (401, 403):
            raise InputError(
                f"{host_of(url)} refuses the key in {KEY_VARIABLE} (status {response.status_code}): "
                "check that it is complete and still valid."
            )
        if response.status_code in (400, 404) and unknown is not None:
            raise InputError(unknown())
        if not response.ok:
            raise InputError(f"{url} answers with status {response.status_code}; is it the base URL of the API?")
        if not _is_json(response):
            raise InputError(f"{url} does not answer with JSON; is it the base URL of the API?")
        answer = response.json()
        schema = RESPONSE_SCHEMAS[kind]
        if not Draft202012Validator(schema).is_valid(answer):
            raise InputError(
                f"{host_of(url)} answers {path} with other JSON than expected ({schema['description']}); is it the "
                "host of the API?"
            )
        return answer

    def _newest(self) -> str:
        return ", ".join(reversed(self.releases()[-RELEASES_TO_NAME:])) or "none"


class Storage:
    """The storage that signed links lead to, or that a copy lies in. It is never sent the key."""

    def __init__(self, doubtful: Collection[int] = ()) -> None:
        """`doubtful` are statuses of answers that may change when they are asked for again."""
        self._session = requests.Session()
        self._doubtful = doubtful

    def get(self, link: str, *, first: int, last: int | None = None) -> requests.Response:
        """Ask for the bytes from `first` to `last` (both counted, from 0); the body is streamed by the caller."""
        # Without this, requests asks for packed transfer, and lengths would be those of another stream.
        headers = {"Range": f"bytes={first}-{'' if last is None else last}", "Accept-Encoding": "identity"}
        return ask(
            self._session,
            link,
            is_doubtful=lambda response: response.status_code in self._doubtful,
            headers=headers,
            stream=True,
        )


def shard_name(link: str) -> str:
    """The shard that a link leads to: the last part of its path, without the signature."""
    return urlsplit(link).path.rsplit("/", 1)[-1]


def total_of(response: requests.Response) -> int | None:
    """Length of the whole file that a response holds or holds a part of, if it is stated."""
    content_range = response.headers.get("Content-Range", "")
    total = content_range.rpartition("/")[2] if response.status_code != 200 else response.headers.get("Content-Length")
    return int(total) if total and total.isdigit() else None


def first_of(response: requests.Response) -> int | None:
    """The byte of the file, from 0, at which the body of a response begins; None if a part does not state it."""
    if response.status_code == 200:
        return 0
    first = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else None


def has_key() -> bool:
    """Whether the user has set a key."""
    return bool(os.environ.get(KEY_VARIABLE, "").strip())


def _read_key() -> str:
    if not has_key():
        raise InputError(
            f"The environment variable {KEY_VARIABLE} is not set; ask for a key at "
            f"https://www.semanticscholar.org/product/api and run `export {KEY_VARIABLE}=…`."
        )
    key = os.environ[KEY_VARIABLE].strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"The environment variable {KEY_VARIABLE} holds characters that no key has; copy it again.")
    return key


def _is_doubtful(response: requests.Response) -> bool:
    """Whether a response may change when it is asked for again: a gateway refused the key, or half an answer came."""
    return response.status_code == 403 or (response.ok and not _is_json(response))


def _is_json(response: requests.Response) -> bool:
    try:
        response.json()
    except requests.JSONDecodeError:
        return False
    return True
