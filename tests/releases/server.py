"""A server of a release, or of a copy of OpenAlex, that fails as real servers do, and records its requests.

It requires the key and signs the links of a release; the storage supports single byte ranges. Subclasses serve APIs.
"""

import io
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

from tests.releases.faults import Fault, Faults, Mishaps
from tests.releases.local_server import LATEST, Catalogue, CopyCatalogue

API = "/datasets/v1"
HOST, OTHER_HOST = "127.0.0.1", "127.0.0.2"
_BLOCK = 1 << 16
_RANGE = re.compile(r"bytes=(?P<first>\d+)-(?P<last>\d*)")
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
        signed, expires = self._signed.get(query, ("", 0.0))
        if signed != path:
            return "SignatureDoesNotMatch"
        return "Request has expired" if time.time() >= expires else None


@dataclass(kw_only=True)
class Arrival:
    """A request as the server saw it, and what became of it."""

    host: str
    method: str
    target: str
    headers: Mapping[str, str]
    seconds: float = field(default_factory=time.monotonic)
    status: int | None = None
    body_sent: int = 0
    fault: Fault | None = None

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def is_whole(self) -> bool:
        return self.status == HTTPStatus.OK and self.fault not in (Fault.CUT, Fault.SHORT, Fault.STALLED)

    @property
    def range(self) -> str:
        """The range of bytes that it asks for; empty if none."""
        return self.headers.get("range", "")


@contextmanager
def serve(
    folder: Path, *, key: str, link_seconds=3600.0, faults: Faults | None = None, requests=None, port: int = 0
) -> Iterator[str]:
    """Serve the release in a folder to those with the key; yield the base URL of the API.

    `requests` collects what arrives; a fault strikes one request. Where faults come at random, the storage has a second
    host to redirect to.
    """
    site = Site(Catalogue(folder), key, link_seconds)
    with serving(site, Mishaps(faults or Faults()), requests, port) as origin:
        yield f"{origin}{API}"


@contextmanager
def serve_copy(folder: Path, *, faults: Faults | None = None, requests: list[Arrival] | None = None) -> Iterator[str]:
    """Serve the copy of OpenAlex in a folder, with faults and `requests` as above; yield the URL of the folder."""
    with serving(Site(CopyCatalogue(folder)), Mishaps(faults or Faults()), requests) as origin:
        yield origin


@contextmanager
def serving(site: "Site", mishaps: Mishaps, requests: list[Arrival] | None, port: int = 0) -> Iterator[str]:
    site.mishaps = mishaps
    site.requests = [] if requests is None else requests
    with ExitStack() as stack:
        stack.callback(site.mishaps.end_stalls)
        for host in (HOST, OTHER_HOST) if site.mishaps.faults.share else (HOST,):
            site.origins.append(stack.enter_context(running(site, site.handler, host, port)))
        site.origin = site.origins[0]
        yield site.origin


class Site:
    mishaps: Mishaps
    requests: list[Arrival]
    origin: str
    """Scheme, host and port that links lead to."""
    handler: type["Handler"]

    def __init__(self, catalogue: Any, key: str = "", link_seconds: float = 3600.0) -> None:
        self.catalogue = catalogue
        self.key, self.link_seconds, self.signer = key, link_seconds, LinkSigner()
        self.origins: list[str] = []


class _Server(ThreadingHTTPServer):
    def __init__(self, site: Any, handler: type[BaseHTTPRequestHandler], host: str, port: int) -> None:
        self.site = site
        super().__init__((host, port), handler)
        self.host = f"{host}:{self.server_port}"


@contextmanager
def running(site: Any, handler: type[BaseHTTPRequestHandler], host: str = HOST, port: int = 0) -> Iterator[str]:
    """Answer for a site on a port, free unless given, of a host of the loopback interface; yield the origin."""
    server = _Server(site, handler, host, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://{server.host}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """Answers one request after another of one connection, and fails as the site's mishaps say."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.site = self.server.site

    def handle(self) -> None:
        """Answer until the client leaves, which it may do at any time."""
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.arrival = Arrival(host=self.server.host, method=self.command, target=self.path, headers=headers)
        self.site.requests.append(self.arrival)
        stored = self.path.startswith(self.site.catalogue.storages)
        self.arrival.fault = fault = self.site.mishaps.strike("storage" if stored else "api")
        if fault in FAILING_STATUSES:
            # Retry-After is only where it belongs.
            after = self.site.mishaps.faults.retry_after if fault in (Fault.TOO_MANY_UNTIL, Fault.UNAVAILABLE) else None
            self.send_json(FAILING_STATUSES[fault], {"message": fault}, {"Retry-After": after} if after else {})
        elif fault == Fault.DROPPED:
            self.close_connection = True
        elif fault == Fault.ELSEWHERE:
            elsewhere = next(origin for origin in self.site.origins if not origin.endswith(f"/{self.server.host}"))
            self.send_bytes(HTTPStatus.TEMPORARY_REDIRECT, b"", {"Location": f"{elsewhere}{self.path}"})
        elif stored:
            self.answer_storage()
        else:
            path = self.arrival.path
            self.answer_api(path.removeprefix(API).strip("/").split("/") if path.startswith(f"{API}/") else [""])

    def answer_api(self, parts: list[str]) -> None:
        catalogue, content = self.site.catalogue, None
        is_known = parts[0] == "diffs" or (parts[0] == "release" and parts[1:2] in ([catalogue.release], [LATEST]))
        if len(parts) > 2 and is_known and not self.key_is_right():
            return
        match parts:
            case ["release"]:
                content = catalogue.releases
            case ["release", _] if is_known:
                content = catalogue.describe_release()
            case ["release", _, "dataset", name] if is_known and name in catalogue.datasets:
                content = catalogue.describe_dataset(name, self.link)
            case ["diffs", start, "to", end, name] if catalogue.leads(start, end, name):
                content = catalogue.describe_diffs(start, end, name, self.link)
        if content is None:
            self.send_unknown()
        else:
            self.send_json(HTTPStatus.OK, content)

    def key_is_right(self) -> bool:
        """Whether the request has the key; refuses it where it has not."""
        given = self.headers.get("x-api-key")
        if given is None:
            self.send_json(HTTPStatus.UNAUTHORIZED, {"error": "the header x-api-key is missing"})
        elif given != self.site.key:
            self.send_json(HTTPStatus.FORBIDDEN, {"error": "the key in x-api-key is not known"})
        return given == self.site.key

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
        elif file := self.site.catalogue.file(path):
            self.send_file(file)
        else:
            self.send_unknown()

    def link(self, path: str) -> str:
        self.use_up("listing")
        lapsed = self.arrival.fault == Fault.LAPSED
        return self.site.origin + self.site.signer.sign(path, -1 if lapsed else self.site.link_seconds)

    def use_up(self, kind: str) -> None:
        """Let the next fault that a count sets for an answer of this kind strike this one, if none has."""
        self.arrival.fault = self.arrival.fault or self.site.mishaps.use_up(kind)

    def send_unknown(self) -> None:
        self.send_json(HTTPStatus.NOT_FOUND, {"error": f"{self.arrival.path} does not exist"})

    def send_json(self, status: HTTPStatus, content: Any, headers: dict[str, str] | None = None) -> None:
        self.send_bytes(status, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    def send_bytes(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self.stream(status, io.BytesIO(body), len(body), headers)

    def send_file(self, path: Path) -> None:
        self.use_up("body")
        size = path.stat().st_size
        headers = {"Content-Type": "binary/octet-stream"}
        status, span = HTTPStatus.OK, range(size)
        if wanted := _RANGE.fullmatch(self.headers.get("Range", "")):
            status = HTTPStatus.PARTIAL_CONTENT
            span = range(int(wanted["first"]), min(int(wanted["last"] or size) + 1, size))
            if not span:
                self.send_bytes(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", {"Content-Range": f"bytes */{size}"})
                return
            headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{size}"
        with path.open("rb") as file:
            file.seek(span.start)
            self.stream(status, file, len(span), headers)

    def stream(self, status: HTTPStatus, body: BinaryIO, length: int, headers: dict[str, str]) -> None:
        """Send the head of an answer and so many bytes of its body, or as many as the fault lets through."""
        self.arrival.status = status
        announced = left = length
        if self.arrival.fault in (Fault.CUT, Fault.STALLED, Fault.SHORT):
            left = self.site.mishaps.break_off(length)
            announced = left if self.arrival.fault == Fault.SHORT else length
        self.close_connection = self.close_connection or left < length
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(announced)}.items():
            self.send_header(name, value)
        self.end_headers()
        while left > 0 and (block := body.read(min(left, _BLOCK))):
            self.wfile.write(block)
            self.arrival.body_sent += len(block)
            left -= len(block)
        if self.arrival.fault == Fault.STALLED:
            self.site.mishaps.stall()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: links are secrets, and the log belongs to the command that is served."""


Site.handler = Handler
