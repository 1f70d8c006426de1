"""A client of the Semantic Scholar Datasets API, and of the storage that its signed links lead to.

Two hosts, two sessions: the key goes to the API's host and nowhere else, not even where the API redirects to. A failure
that may pass is retried; any other is an `InputError`, whose message holds neither the key nor a signed link.
"""

import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from pydantic import BaseModel, TypeAdapter, ValidationError

from cocite.core.errors import InputError
from cocite.corpus.release.retry import RateLimitAdapter, ask, host_of

KEY_VARIABLE = "S2_API_KEY"
KEY_HEADER = "x-api-key"
RELEASES_TO_NAME = 5
# The warnings of urllib3 show the link with its signature.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)


class DatasetSummary(BaseModel):
    """A dataset as a release lists it."""

    name: str
    README: str


class ReleaseAnswer(BaseModel):
    """What the API answers of a release."""

    release_id: str
    datasets: list[DatasetSummary]


class DatasetAnswer(BaseModel):
    """What it answers of a dataset: `files` are links that lapse after some hours."""

    README: str
    files: list[str]


class Diff(BaseModel):
    """What changes in a dataset from one release to the next; files are links that lapse."""

    from_release: str
    to_release: str
    update_files: list[str]
    delete_files: list[str]


class DiffsAnswer(BaseModel):
    """What the API answers of the diffs of a dataset from one release to a later one."""

    diffs: list[Diff]


Answer = TypeVar("Answer")


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
        """`turns` is the file through which all jobs keep the rate limit; the key defaults to the environment's."""
        self._base_url = base_url.rstrip("/")
        self._session = KeptKeySession()
        self._session.headers[KEY_HEADER] = key or _read_key()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, RateLimitAdapter(turns))

    def releases(self) -> list[str]:
        """Ids of all releases, the oldest first."""
        return sorted(self._ask("release/", list[str]))

    def release(self, name: str) -> ReleaseAnswer:
        """A release by its id, or `latest`."""
        answer = self._ask(f"release/{name}", ReleaseAnswer, may_be_missing=True)
        if answer is None:
            newest = ", ".join(reversed(self.releases()[-RELEASES_TO_NAME:])) or "none"
            raise InputError(f"Release {name} does not exist; the newest are {newest}.")
        return answer

    def dataset(self, release: str, name: str) -> DatasetAnswer:
        """A dataset of a release."""
        answer = self._ask(f"release/{release}/dataset/{name}", DatasetAnswer, may_be_missing=True)
        if answer is None:
            raise InputError(f"Release {release} has no dataset {name}.")
        return answer

    def diffs(self, since: str, release: str, name: str) -> DiffsAnswer:
        """The diffs of a dataset from one release to a later one."""
        answer = self._ask(f"diffs/{since}/to/{release}/{name}", DiffsAnswer, may_be_missing=True)
        if answer is None:
            raise InputError(
                f"The API has no diffs of {name} from release {since} to {release}; ingest {release} whole "
                "(without corpus.base)."
            )
        return answer

    def _ask(self, path: str, kind: type[Answer], *, may_be_missing: bool = False) -> Any:
        """The answer for a path; None where the API does not know it, if it may be missing."""
        url = f"{self._base_url}/{path}"
        response = ask(self._session, url, is_doubtful=_is_doubtful)
        if response.status_code in (401, 403):
            raise InputError(
                f"{host_of(url)} refuses the key in {KEY_VARIABLE} (status {response.status_code}): "
                "check that it is complete and still valid."
            )
        if response.status_code in (400, 404) and may_be_missing:
            return None
        if not response.ok:
            raise InputError(f"{url} answers with status {response.status_code}; is it the base URL of the API?")
        if not _is_json(response):
            raise InputError(f"{url} does not answer with JSON; is it the base URL of the API?")
        try:
            return TypeAdapter(kind).validate_python(response.json())
        except ValidationError as error:
            raise InputError(
                f"{host_of(url)} answers {path} with other JSON than expected ({first_fault(error)}); is it the host "
                "of the API?"
            ) from None


def first_fault(error: ValidationError) -> str:
    """The place and the kind of the first fault in an answer, without its value: links are secrets."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))


class Storage:
    """The storage that signed links lead to, or that a copy lies in. It is never sent the key."""

    def __init__(self, doubtful: Collection[int] = ()) -> None:
        """`doubtful` are statuses that may change when the storage is asked again."""
        self._session = requests.Session()
        self._doubtful = doubtful

    def get(self, link: str, *, first: int, last: int | None = None) -> requests.Response:
        """Ask for the bytes from `first` to `last` (both counted, from 0); the body is streamed by the caller."""
        # By itself, requests asks for packed transfer, and lengths would be those of another stream.
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
