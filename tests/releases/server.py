"""A server of a release that fails as real servers do, records its requests, and has the diffs of a successor."""

import io
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from tests.releases.faults import Fault, Faults, Mishaps
from tests.releases.local_server import (
    API,
    HOST,
    Catalogue,
    Handler,
    Site,
    read_release,
    running,
)
from tests.releases.successor import DELETES, UPDATES, diff_folder

OTHER_HOST = "127.0.0.2"
LATEST = "latest"
FAILING_STATUSES = {
    Fault.TOO_MANY: HTTPStatus.TOO_MANY_REQUESTS,
    Fault.TOO_MANY_UNTIL: HTTPStatus.TOO_MANY_REQUESTS,
    Fault.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Fault.FAILING: HTTPStatus.INTERNAL_SERVER_ERROR,
    Fault.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


class LinkSigner:
    """Signs paths and checks links: whoever holds one may fetch one file until it lapses, without any key.

    The links of every listing differ, so that no link can be mistaken for the name of a file.
    """

    def __init__(self) -> None:
        self._signed: dict[str, tuple[str, float]] = {}

    def sign(self, path: str, seconds: float) -> str:
        """The path with a query string that allows fetching it for so many seconds; 0 or less makes a lapsed link."""
        query = f"Signature={secrets.token_hex(16)}"
        self._signed[query] = path, time.time() + seconds
        return f"{path}?{query}"

    def refusal(self, path: str, query: str) -> str | None:
        """Why a link is not valid, or None if it is."""
        signed, expires = self._signed.get(query, ("", 0.0))
        if signed != path:
            return "SignatureDoesNotMatch"
        return "Request has expired" if time.time() >= expires else None


class CatalogueWithDiffs(Catalogue):
    """A release in a folder, and the diffs that lead to it from the releases that it follows.

    These are listed too, and the diffs from each to each later one can be fetched, but none of their shards.
    """

    storages = (*Catalogue.storages, f"/{UPDATES}/", f"/{DELETES}/")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder
        self.releases = [*read_release(folder).get("earlier_releases", []), self.release]
        self.files |= {
            self._path_of(path): path for kind in (UPDATES, DELETES) for path in (folder / kind).rglob("*.gz")
        }

    def leads(self, start: str, end: str, name: str) -> bool:
        """Whether the second release, which may be `latest`, is the first or comes after it, and has the dataset."""
        later = [*self.releases[self.releases.index(start) :], LATEST] if start in self.releases else []
        return name in self.datasets and end in later

    def describe_diffs(self, start: str, end: str, name: str, link: Callable[[str], str]) -> dict[str, Any]:
        """The answer to `/diffs/{start}/to/{end}/{name}`: a diff for each step from one release to the next."""
        end = self.release if end == LATEST else end
        span = self.releases[self.releases.index(start) : self.releases.index(end) + 1]
        diffs: list[dict[str, Any]] = []
        for older, newer in pairwise(span):
            links = {
                f"{kind.removesuffix('s')}_files": [
                    link(self._path_of(file))
                    for file in sorted(diff_folder(self._folder, kind, older, newer, name).glob("*.gz"))
                ]
                for kind in (UPDATES, DELETES)
            }
            diffs.append({"from_release": older, "to_release": newer, **links})
        return {"dataset": name, "start_release": start, "end_release": end, "diffs": diffs}

    def _path_of(self, file: Path) -> str:
        return f"/{file.relative_to(self._folder).as_posix()}"


class CopyCatalogue(Catalogue):
    """A copy of OpenAlex in a folder: all its files are given to everyone, by their paths."""

    storages = ("/",)

    def __init__(self, folder: Path) -> None:
        """The files are those that lie in the folder when they are asked for."""
        self._folder = folder.resolve()

    def file(self, path: str) -> Path | None:
        """The file at a path below the folder, if there is one."""
        file = (self._folder / unquote(path).lstrip("/")).resolve()
        return file if file.is_relative_to(self._folder) and file.is_file() else None


@dataclass(kw_only=True)
class Arrival:
    """A request as the server saw it, and what became of it."""

    host: str
    """Address and port that it came to."""
    method: str
    target: str
    """Path and query."""
    headers: Mapping[str, str]
    """Its headers, by their names in small letters."""
    seconds: float = field(default_factory=time.monotonic)
    status: int | None = None
    body_sent: int = 0
    """Bytes of the answer's body that were sent."""
    fault: Fault | None = None

    @property
    def path(self) -> str:
        """The target without the query, in which signatures are."""
        return self.target.partition("?")[0]

    @property
    def range(self) -> str:
        """The range of bytes that it asks for; empty if none."""
        return self.headers.get("range", "")


@contextmanager
def serve(
    folder: Path,
    *,
    key: str,
    link_seconds: float = 3600.0,
    faults: Faults | None = None,
    requests: list[Arrival] | None = None,
    port: int = 0,
) -> Iterator[str]:
    """Serve the release in a folder to those with the key; yield the base URL of the API.

    `requests` collects what arrives; a fault strikes one request. Where faults come at random, the storage has a second
    host to redirect to.
    """
    site = FailingSite(CatalogueWithDiffs(folder), key, link_seconds)
    with serving(site, Mishaps(faults or Faults()), requests, port) as origin:
        yield f"{origin}{API}"


@contextmanager
def serve_copy(folder: Path, *, faults: Faults | None = None, requests: list[Arrival] | None = None) -> Iterator[str]:
    """Serve the copy of OpenAlex in a folder, with faults and `requests` as above; yield the URL of the folder."""
    with serving(FailingSite(CopyCatalogue(folder)), Mishaps(faults or Faults()), requests) as origin:
        yield origin


@contextmanager
def serving(site: "FailingSite", mishaps: Mishaps, requests: list[Arrival] | None, port: int = 0) -> Iterator[str]:
    """Answer for a site; yield the origin."""
    site.mishaps = mishaps
    site.requests = [] if requests is None else requests
    with ExitStack() as stack:
        stack.callback(site.mishaps.end_stalls)
        for host in (HOST, OTHER_HOST) if site.mishaps.faults.share else (HOST,):
            site.origins.append(stack.enter_context(running(site, site.handler, host, port)))
        site.origin = site.origins[0]
        yield site.origin


class FailingSite(Site):
    catalogue: CatalogueWithDiffs | CopyCatalogue
    mishaps: Mishaps
    requests: list[Arrival]
    handler: type["FailingHandler"]

    def __init__(self, catalogue: Catalogue, key: str = "", link_seconds: float = 3600.0) -> None:
        super().__init__(catalogue)
        self.key, self.link_seconds, self.signer = key, link_seconds, LinkSigner()
        self.origins: list[str] = []

    def other_origin(self, host: str) -> str:
        """Another host that has the same files."""
        return next(origin for origin in self.origins if not origin.endswith(f"/{host}"))


class FailingHandler(Handler):
    site: FailingSite

    def answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.arrival = Arrival(host=self.server.host, method=self.command, target=self.path, headers=headers)
        self.site.requests.append(self.arrival)
        stored = self.path.startswith(self.site.catalogue.storages)
        self.arrival.fault = fault = self.site.mishaps.strike("storage" if stored else "api")
        if fault in FAILING_STATUSES:
            self.send_failure(fault)
        elif fault == Fault.DROPPED:
            self.close_connection = True
        elif fault == Fault.ELSEWHERE:
            elsewhere = f"{self.site.other_origin(self.server.host)}{self.path}"
            self.send_bytes(HTTPStatus.TEMPORARY_REDIRECT, b"", {"Location": elsewhere})
        else:
            super().answer()

    def answer_api(self, parts: list[str]) -> None:
        catalogue = self.site.catalogue
        is_known = parts[0] == "diffs" or (parts[0] == "release" and parts[1:2] in ([catalogue.release], [LATEST]))
        if len(parts) > 2 and is_known and not self.key_is_right():
            return
        if parts[0] != "diffs":
            super().answer_api(parts)
        elif len(parts) == 5 and parts[2] == "to" and catalogue.leads(parts[1], parts[3], parts[4]):
            _, start, _, end, name = parts
            self.send_json(HTTPStatus.OK, catalogue.describe_diffs(start, end, name, self.link))
        else:
            self.send_unknown()

    def key_is_right(self) -> bool:
        """Whether the request has the key; refuses it where it has not."""
        given = self.headers.get("x-api-key")
        if given is None:
            self.send_json(HTTPStatus.UNAUTHORIZED, {"error": "the header x-api-key is missing"})
            return False
        if given != self.site.key:
            self.send_json(HTTPStatus.FORBIDDEN, {"error": "the key in x-api-key is not known"})
            return False
        return True

    def answer_storage(self) -> None:
        if self.arrival.fault == Fault.ALL_LAPSED:
            self.site.signer = LinkSigner()
        path, _, query = self.path.partition("?")
        is_open = isinstance(self.site.catalogue, CopyCatalogue)
        refusal = None if is_open else self.site.signer.refusal(path, query)
        if "x-api-key" in self.headers:
            self.send_bytes(HTTPStatus.BAD_REQUEST, b"a key of the API was sent to the storage", {})
        elif refusal is not None:
            self.send_bytes(HTTPStatus.FORBIDDEN, refusal.encode(), {})
        else:
            super().answer_storage()

    def link(self, path: str) -> str:
        self.use_up("listing")
        lapsed = self.arrival.fault == Fault.LAPSED
        return self.site.origin + self.site.signer.sign(path, -1 if lapsed else self.site.link_seconds)

    def send_file(self, path: Path) -> None:
        self.use_up("body")
        super().send_file(path)

    def use_up(self, kind: str) -> None:
        """Let the next fault that a count sets for an answer of this kind strike this one, if none has."""
        self.arrival.fault = self.arrival.fault or self.site.mishaps.use_up(kind)

    def send_failure(self, fault: Fault) -> None:
        """Send one of the `FAILING_STATUSES`, with Retry-After where it belongs."""
        after = self.site.mishaps.faults.retry_after if fault in (Fault.TOO_MANY_UNTIL, Fault.UNAVAILABLE) else None
        self.send_json(FAILING_STATUSES[fault], {"message": fault}, {"Retry-After": after} if after else {})

    def stream(self, status: HTTPStatus, body: BinaryIO, length: int, headers: dict[str, str]) -> None:
        self.arrival.status = status
        announced, sent = self.damaged(length)
        self.close_connection = self.close_connection or not announced == sent == length
        super().stream(status, io.BytesIO(body.read(sent)), announced, headers)
        if self.arrival.fault == Fault.STALLED:
            self.site.mishaps.stall()

    def damaged(self, length: int) -> tuple[int, int]:
        """The stated length of a body, and how much of it is sent."""
        match self.arrival.fault:
            case Fault.CUT | Fault.STALLED:
                return length, self.site.mishaps.break_off(length)
            case Fault.SHORT:
                short = self.site.mishaps.break_off(length)
                return short, short
        return length, length

    def send_block(self, block: bytes) -> None:
        super().send_block(block)
        self.arrival.body_sent += len(block)


FailingSite.handler = FailingHandler
