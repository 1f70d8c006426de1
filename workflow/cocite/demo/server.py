"""The Semantic Scholar Datasets API over a folder in the layout of a release, on this machine alone.

It answers as the real one is known to answer: releases are listed to everyone, file links only to who sends the key;
the links are pre-signed, lapse, and differ at every listing; the storage takes single byte ranges and no key. Tests
make it fail in the ways that real servers fail (`Faults`). It stands on the standard library, so that starting it
costs nothing.
"""

import hmac
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cocite.demo.catalogue import STORAGE, Catalogue
from cocite.demo.links import LinkSigner

API = "/datasets/v1"
_BLOCK = 1 << 16
_RANGE = re.compile(r"bytes=(?=.*\d)(?P<first>\d*)-(?P<last>\d*)")


@dataclass(kw_only=True)
class Faults:
    """What goes wrong. Counts say how many answers still do; each goes down as it is used."""

    too_many_requests: int = 0
    """Answers of the API that are 429."""
    retry_after: str | None = None
    """The header Retry-After of each 429 and 503, or none."""
    api_unavailable: int = 0
    """Answers of the API that are 503."""
    storage_unavailable: int = 0
    """Answers of the storage that are 503."""
    lapsed_listings: int = 0
    """Listings whose links have lapsed when they are given."""
    cuts: int = 0
    """Downloads whose connection is closed before the end; a large number means always."""
    cut_after: int = 0
    """Bytes of the body that are sent before a cut."""
    wrong_lengths: int = 0
    """Downloads whose Content-Length promises one byte more than come."""


@contextmanager
def serve(
    folder: Path,
    *,
    key: str,
    link_seconds: float = 3600.0,
    faults: Faults | None = None,
    requests: list[str] | None = None,
) -> Iterator[str]:
    """Serve the release in `folder` on a free port of the loopback interface; yield the API's base URL.

    `requests` collects one line for each request: method, path and query, and the Range header where there is one.
    Raises `InputError` if the folder holds no `release.json`.
    """
    server = _ReleaseServer(Catalogue(folder), key, LinkSigner(link_seconds), faults or Faults(), requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"{server.origin}{API}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _ReleaseServer(ThreadingHTTPServer):
    def __init__(
        self, catalogue: Catalogue, key: str, signer: LinkSigner, faults: Faults, requests: list[str] | None
    ) -> None:
        self.catalogue, self.key, self.signer, self.faults, self.requests = catalogue, key, signer, faults, requests
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = f"http://127.0.0.1:{self.server_port}"

    def fails(self, fault: str) -> bool:
        """Whether this answer shall fail in the way that a count of `Faults` names; uses one of them up."""
        with self._lock:
            left = getattr(self.faults, fault)
            setattr(self.faults, fault, max(left - 1, 0))
            return left > 0


class _Handler(BaseHTTPRequestHandler):
    server: _ReleaseServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client may leave at any time
            super().handle()

    def do_GET(self) -> None:
        if self.server.requests is not None:
            self.server.requests.append(" ".join([self.command, self.path, self.headers.get("Range", "")]).rstrip())
        path, _, query = self.path.partition("?")
        if path.startswith(f"{STORAGE}/"):
            self._answer_storage(path, query)
        elif path.startswith(f"{API}/"):
            self._answer_api(path.removeprefix(API).strip("/").split("/"))
        else:
            self._send_json(HTTPStatus.NOT_FOUND, {"error": f"{path} does not exist"})

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer_api(self, parts: list[str]) -> None:
        server = self.server
        if server.fails("too_many_requests"):
            self._send_json(HTTPStatus.TOO_MANY_REQUESTS, {"message": "Too Many Requests"}, self._retry_after())
        elif server.fails("api_unavailable"):
            self._send_json(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "unavailable"}, self._retry_after())
        elif parts == ["release"]:
            self._send_json(HTTPStatus.OK, [server.catalogue.release])
        elif parts[0] != "release" or parts[1] not in (server.catalogue.release, "latest"):
            self._send_json(HTTPStatus.NOT_FOUND, {"error": f"{'/'.join(parts)} does not exist"})
        elif len(parts) == 2:
            self._send_json(HTTPStatus.OK, server.catalogue.describe_release())
        elif self._key_is_right():
            self._answer_dataset(parts[2:])

    def _answer_dataset(self, parts: list[str]) -> None:
        server = self.server
        if len(parts) == 2 and parts[0] == "dataset" and parts[1] in server.catalogue.datasets:
            lapsed = server.fails("lapsed_listings")
            described = server.catalogue.describe_dataset(parts[1], server.origin, server.signer, lapsed=lapsed)
            self._send_json(HTTPStatus.OK, described)
        else:
            self._send_json(HTTPStatus.NOT_FOUND, {"error": f"{'/'.join(parts)} does not exist"})

    def _key_is_right(self) -> bool:
        given = self.headers.get("x-api-key")
        if given is None:
            self._send_json(HTTPStatus.UNAUTHORIZED, {"error": "the header x-api-key is missing"})
            return False
        if not hmac.compare_digest(given.encode(), self.server.key.encode()):
            self._send_json(HTTPStatus.FORBIDDEN, {"error": "the key in x-api-key is not known"})
            return False
        return True

    def _answer_storage(self, path: str, query: str) -> None:
        refusal = self.server.signer.refusal(path, query)
        if "x-api-key" in self.headers:
            self._send(HTTPStatus.BAD_REQUEST, b"a key of the API was sent to the storage", {})
        elif refusal is not None:
            self._send(HTTPStatus.FORBIDDEN, refusal.encode(), {})
        elif self.server.fails("storage_unavailable"):
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, b"Please reduce your request rate.", self._retry_after())
        else:
            self._send_file(self.server.catalogue.shards[path])

    def _send_file(self, path: Path) -> None:
        size = path.stat().st_size
        headers = {"Accept-Ranges": "bytes", "ETag": f'"{path.stat().st_mtime_ns:x}-{size:x}"'}
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted is None or self.headers.get("If-Range", headers["ETag"]) != headers["ETag"]:
            return self._stream(HTTPStatus.OK, path, range(size), headers)
        span = _span(wanted["first"], wanted["last"], size)
        if not span:
            return self._send(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", {"Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{size}"
        return self._stream(HTTPStatus.PARTIAL_CONTENT, path, span, headers)

    def _stream(self, status: HTTPStatus, path: Path, span: range, headers: dict[str, str]) -> None:
        wrong = self.command == "GET" and self.server.fails("wrong_lengths")
        cut = self.command == "GET" and self.server.fails("cuts")
        self._send_head(status, len(span) + wrong, {"Content-Type": "binary/octet-stream", **headers})
        left = min(len(span), self.server.faults.cut_after) if cut else len(span)
        self.close_connection = self.close_connection or cut or wrong
        if self.command == "HEAD":
            return
        with path.open("rb") as file:
            file.seek(span.start)
            while left > 0:
                left -= self.wfile.write(file.read(min(left, _BLOCK)))

    def _send_json(self, status: HTTPStatus, content: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self._send_head(status, len(body), headers)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_head(self, status: HTTPStatus, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def _retry_after(self) -> dict[str, str]:
        after = self.server.faults.retry_after
        return {} if after is None else {"Retry-After": after}

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: links are secrets, and the log belongs to the command that is served."""


def _span(first: str, last: str, size: int) -> range:
    """The bytes that a range asks for (RFC 9110, section 14.1.2); without a first one, so many from the end."""
    if not first:
        return range(max(size - int(last), 0), size)
    return range(int(first), min(int(last) + 1 if last else size, size))
