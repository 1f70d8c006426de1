"""The Semantic Scholar Datasets API: a client of it, and the datasets of a release, or the diffs that lead to it.

Shards are reached through signed links that expire. Two hosts, two sessions: the key is sent only to the API's host,
also after redirects. Transient failures are retried; any other is an `InputError`, whose message contains neither the
key nor a signed link.
"""

import logging
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from pydantic import BaseModel, TypeAdapter, ValidationError

from cocite.config.release_folder import DATASETS
from cocite.config.source import S2_KEY
from cocite.core.errors import InputError
from cocite.core.progress import progress, report
from cocite.corpus.release import retry
from cocite.corpus.release.manifest import Dataset, DiffShard, Manifest, Shard, lacks_dataset
from cocite.corpus.release.retry import RateLimitAdapter, Storage, ask, host_of, other_length, shard_name, total_of

RELEASES_TO_NAME = 5
LAPSED = (400, 403, 416)
"""Statuses of an expired link: 403, or 416 for a range; 400 if the session that signed it has ended."""
LISTINGS = 5
"""Times that the links are listed for one shard before such a status is taken to mean something else."""
# The warnings of urllib3 show the link with its signature.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)


class _Summary(BaseModel):
    name: str
    README: str


class _Release(BaseModel):
    release_id: str
    datasets: list[_Summary]


class _Files(BaseModel):
    files: list[str]


class _Diff(BaseModel):
    from_release: str
    to_release: str
    update_files: list[str]
    delete_files: list[str]


class _Diffs(BaseModel):
    diffs: list[_Diff]


class KeptKeySession(requests.Session):
    """A session whose key stays on the host it is for: requests itself drops only `Authorization` on a redirect."""

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Drop the key if a redirect leads to another host, port or scheme."""
        super().rebuild_auth(prepared_request, response)
        asked, redirected = urlsplit(response.request.url), urlsplit(prepared_request.url)
        if (asked.scheme, asked.netloc) != (redirected.scheme, redirected.netloc):
            prepared_request.headers.pop(S2_KEY.name, None)


class SemanticScholarApi:
    """An API at a base URL, with the user's key or without one, and the rate limit that all jobs share."""

    def __init__(self, base_url: str, turns: Path, key: str | None) -> None:
        """`turns` is the file through which all jobs keep the rate limit."""
        self._base_url, self._host = base_url.rstrip("/"), host_of(base_url)
        self._session = KeptKeySession()
        if key:
            self._session.headers[S2_KEY.name] = key
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, RateLimitAdapter(turns))

    def _respond(self, path: str, **options: Any) -> requests.Response:
        """The answer for a path. Raises `InputError` if the key is refused."""
        response = ask(self._session, f"{self._base_url}/{path}", is_doubtful=_is_doubtful, **options)
        if response.status_code not in (401, 403):
            return response
        if S2_KEY.name not in self._session.headers:
            remedy = f"ask for one at {S2_KEY.page} and run `export {S2_KEY.variable}=…`."
            raise InputError(f"{self._host} refuses requests without a key (status {response.status_code}): {remedy}")
        remedy = "check that it is complete and still valid."
        raise InputError(f"{self._host} refuses the key in {S2_KEY.variable} (status {response.status_code}): {remedy}")

    def _content(self, path: str, response: requests.Response, kind: Any) -> Any:
        """What an answer has. Raises `InputError` if it is none of this kind."""
        url = f"{self._base_url}/{path}"
        if not response.ok:
            raise InputError(f"{url} answers with status {response.status_code}; is it the base URL of the API?")
        if not _is_json(response):
            raise InputError(f"{url} does not answer with JSON; is it the base URL of the API?")
        try:
            return TypeAdapter(kind).validate_python(response.json())
        except ValidationError as error:
            said = f"other JSON than expected ({first_fault(error)})"
            raise InputError(f"{self._host} answers {path} with {said}; is it the host of the API?") from None


class DatasetsApi(SemanticScholarApi):
    """The API of releases, such as https://api.semanticscholar.org/datasets/v1, which needs the key. Raises
    `InputError` for what it does not have."""

    def __init__(self, base_url: str, turns: Path, key: str | None = None) -> None:
        """The key defaults to the environment's."""
        super().__init__(base_url, turns, key or S2_KEY.read())

    def releases(self) -> list[str]:
        """Ids of all releases, the oldest first."""
        return sorted(self._ask("release/", list[str]))

    def release(self, name: str) -> _Release:
        """A release by its id, or `latest`."""

        def missing() -> str:
            newest = ", ".join(reversed(self.releases()[-RELEASES_TO_NAME:])) or "none"
            return f"Release {name} does not exist; the newest are {newest}."

        return self._ask(f"release/{name}", _Release, missing)

    def dataset(self, release: str, name: str) -> _Files:
        """A dataset of a release."""
        missing = f"Release {release} has no dataset {name}."
        return self._ask(f"release/{release}/dataset/{name}", _Files, lambda: missing)

    def diffs(self, since: str, release: str, name: str) -> _Diffs:
        """The diffs of a dataset from one release to a later one."""
        missing = f"The API has no diffs of {name} from release {since} to {release}; ingest {release} whole"
        path = f"diffs/{since}/to/{release}/{name}"
        return self._ask(path, _Diffs, lambda: f"{missing} (without corpus.base).")

    def _ask(self, path: str, kind: Any, missing: Callable[[], str] | None = None) -> Any:
        """The answer for a path; `missing` is the error if the API does not have it."""
        response = self._respond(path)
        if response.status_code in (400, 404) and missing:
            raise InputError(missing())
        return self._content(path, response, kind)


def first_fault(error: ValidationError) -> str:
    """The place and the kind of the first fault in an answer, without its value: links are secrets."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))


def _is_doubtful(response: requests.Response) -> bool:
    """Whether a retry may help: a gateway rejected the key, or half an answer came."""
    return response.status_code == 403 or (response.ok and not _is_json(response))


def _is_json(response: requests.Response) -> bool:
    try:
        response.json()
    except requests.JSONDecodeError:
        return False
    return True


def list_release(api: DatasetsApi, release: str, since: str | None = None) -> Manifest:
    """The manifest of a release or, since an earlier one, of the diffs that lead to it; `latest` is pinned here. Raises
    `InputError` for what the API does not have, a refused key, and a release that is not later than `since`."""
    description = api.release(release)
    pinned = description.release_id
    if since is not None and pinned <= since:
        raise InputError(f"Release {pinned} is not later than {since}, so no diffs lead to it from there.")
    readmes = {dataset.name: dataset.README for dataset in description.datasets}
    if lacking := next((name for name in DATASETS if name not in readmes), None):
        raise lacks_dataset(pinned, lacking)
    datasets = {}
    for name in DATASETS:
        shards = sorted(RemoteDataset(api, pinned, name, since).shards())
        datasets[name] = Dataset(shards=tuple(shards), readme=readmes[name])
    return Manifest(release=pinned, datasets=datasets, since=since)


class RemoteDataset:
    """The current links of a dataset's shards; listed again when one has lapsed, and found by the shard's name. Since
    an earlier release, they are the files of the diffs that lead from it. The API gives a diff for each release on the
    way, with files of updates and of deletes. Their names are only a date and a number; here they get unique names, so
    that they are listed, downloaded and found again like shards."""

    def __init__(self, api: DatasetsApi, release: str, name: str, since: str | None = None) -> None:
        self._api, self._storage = api, Storage()
        self._release, self._name, self._since = release, name, since

    def shards(self) -> Iterator[Shard]:
        """The shards with their lengths. Raises `InputError` if a release has none, or a step of the diffs is missing.
        The length is that of an answer of one byte, not of a HEAD request: links are signed for GET."""
        of, unit = ("list diffs of", "files") if self._since else ("list", "shards")
        names = list(self._links) if self._since else sorted(self._links)
        if not names and not self._since:
            raise lacks_dataset(self._release, self._name)
        for name in progress(names, of=f"{of} {self._name}", unit=unit):
            with self.open(name, first=0, last=0) as response:
                size = total_of(response)
            if size is None:
                status = response.status_code
                raise InputError(f"Shard {name}: the storage does not state its length (status {status}).")
            _, place = self._links[name]
            yield DiffShard(name=name, bytes=size, **place) if place else Shard(name=name, bytes=size)

    def open(self, shard: str, *, first: int, last: int | None = None) -> requests.Response:
        """Request bytes of a shard (both ends inclusive); the status is 206, or 200 for all. Else raises
        `InputError`."""
        for listing in range(1, LISTINGS + 1):
            if shard not in self._links:
                raise InputError(f"Release {self._release} does not list the shard {shard}; delete the manifest.")
            link, _ = self._links[shard]
            response = self._storage.get(link, first=first, last=last)
            if response.status_code in (200, 206):
                return response
            response.close()
            if response.status_code == 416 and total_of(response) is not None:
                raise other_length(shard, total_of(response))
            if response.status_code not in LAPSED:
                break
            report(f"Shard {shard}: the link has lapsed (status {response.status_code}, listing {listing}).")
            if listing > 1:
                retry.wait(listing - 1)
            del self._links
        raise InputError(f"Shard {shard}: the storage answers with status {response.status_code}; run again later.")

    @cached_property
    def _links(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Name → link, and the fields of a `DiffShard` for a file of diffs."""
        links: dict[str, tuple[str, dict[str, Any]]] = {}
        for name, link, place in self._listing():
            if name in links:
                said = f"the dataset {self._name} lists several shards named {name}"
                raise InputError(f"Release {self._release}: {said}.")
            links[name] = link, place
        return links

    def _listing(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        if self._since is None:
            yield from ((shard_name(link), link, {}) for link in self._api.dataset(self._release, self._name).files)
            return
        reached, diffs = self._since, self._api.diffs(self._since, self._release, self._name).diffs
        for diff in diffs:
            if diff.from_release != reached:
                break
            reached = diff.to_release
        if reached != self._release:
            said = f"lead to {reached} and not on to {self._release}; ingest that release whole (without corpus.base)"
            raise InputError(f"The diffs of {self._name} from release {self._since} {said}.")
        for step, diff in enumerate(diffs, start=1):
            for kind, links in (("updates", diff.update_files), ("deletes", diff.delete_files)):
                for link in links:
                    name = f"{diff.from_release}-to-{diff.to_release}_{kind}_{shard_name(link)}"
                    yield name, link, {"step": step, "deletes": kind == "deletes"}
