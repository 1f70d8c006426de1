"""The Semantic Scholar Datasets API over a folder in the layout of a release, on this machine alone.

It answers as the real one is known to answer: releases are listed to everyone, file links only to those who send the
key; the links are pre-signed, lapse, and differ at every listing; the storage takes single byte ranges and no key. The
server uses the standard library alone, so that starting it costs nothing. Tests serve by subclasses that fail as real
servers do.
"""

import hashlib
import hmac
import io
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlencode

from cocite.config.release_folder import readme_of, stated_by
from cocite.core.errors import InputError

STORAGE = "/staging"
_NONCE_DIGITS = 16


class Catalogue:
    """A release in a folder, as the Datasets API describes it."""

    storages: tuple[str, ...] = (f"{STORAGE}/",)
    """What the paths begin with that a link can lead to."""
    is_open = False
    """Whether files are given to everyone, without a signed link."""

    def __init__(self, folder: Path) -> None:
        """Read the folder. Raises `InputError` if it holds no `release.json` with an id and names of datasets."""
        described = read_release(folder)
        self.release: str = described["release_id"]
        self.releases: list[str] = [self.release]
        """All that are known, the oldest first."""
        self.datasets = {name: _describe(folder / name) for name in described["datasets"]}
        self.files = {
            f"{STORAGE}/{self.release}/{name}/{path.name}": path
            for name in self.datasets
            for path in sorted((folder / name).glob("*.gz"))
        }
        """The file behind each path that a link can lead to."""

    def file(self, path: str) -> Path | None:
        """The file behind a path, if there is one."""
        return self.files.get(path)

    def describe_release(self) -> dict[str, Any]:
        """The answer to `/release/{id}`."""
        datasets = [{"name": name, **described} for name, described in self.datasets.items()]
        return {"release_id": self.release, "README": "Each dataset has a README of its own.", "datasets": datasets}

    def describe_dataset(self, name: str, link: Callable[[str], str]) -> dict[str, Any]:
        """The answer to `/release/{id}/dataset/{name}`; `link` makes a link of the path of a shard."""
        paths = [path for path in self.files if path.startswith(f"{STORAGE}/{self.release}/{name}/")]
        return {"name": name, **self.datasets[name], "files": [link(path) for path in paths]}


class LinkSigner:
    """Signs paths and checks links: whoever holds one may fetch one file until it lapses, without any key.

    Like the links of a storage host, a link carries the time it lapses at and a signature over its path and that time.
    A random part makes the links of every listing differ, so that no link can be mistaken for the name of a file. The
    secret never leaves the signer.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def sign(self, path: str, seconds: float) -> str:
        """The path with a query string that allows fetching it for so many seconds; 0 or less makes a lapsed link."""
        expires = f"{time.time() + seconds:.3f}"
        nonce = secrets.token_hex(_NONCE_DIGITS // 2)
        return f"{path}?{urlencode({'Expires': expires, 'Signature': nonce + self._digest(path, expires, nonce)})}"

    def refusal(self, path: str, query: str) -> str | None:
        """Why a link is not valid, or None if it is."""
        given = parse_qs(query)
        expires, signature = (given.get(name, [""])[0] for name in ("Expires", "Signature"))
        nonce, digest = signature[:_NONCE_DIGITS], signature[_NONCE_DIGITS:]
        if not hmac.compare_digest(digest.encode(), self._digest(path, expires, nonce).encode()):
            return "SignatureDoesNotMatch"
        return "Request has expired" if time.time() >= float(expires) else None

    def _digest(self, path: str, expires: str, nonce: str) -> str:
        return hmac.new(self._secret, f"{path}\n{expires}\n{nonce}".encode(), hashlib.sha256).hexdigest()


def read_release(folder: Path) -> Mapping[str, Any]:
    """What the release in a folder states of itself. Raises `InputError` where it lacks the id or the datasets."""
    path = folder / "release.json"
    if not path.exists():
        raise InputError(f"{path} does not exist, so {folder} is not the folder of a release.")
    described = stated_by(folder)
    for name in ("release_id", "datasets"):
        if name not in described:
            raise InputError(f"{path}: lacks the key {name!r}.")
    return described


def _describe(folder: Path) -> dict[str, str]:
    text = readme_of(folder) or f"The dataset {folder.name} of a local release."
    return {"description": text.partition("\n")[0], "README": text}


API = "/datasets/v1"
HOST = "127.0.0.1"
_BLOCK = 1 << 16
_RANGE = re.compile(r"bytes=(?=.*\d)(?P<first>\d*)-(?P<last>\d*)")


@contextmanager
def serve(folder: Path, *, key: str) -> Iterator[str]:
    """Serve the release in `folder` on a free port of the loopback interface; yield the API's base URL.

    Raises `InputError` if the folder holds no `release.json`.
    """
    site = Site(Catalogue(folder), key)
    with running(site, Handler) as site.origin:
        yield f"{site.origin}{API}"


class Site:
    """What all requests to a served release share."""

    def __init__(self, catalogue: Catalogue, key: str, link_seconds: float = 3600.0) -> None:
        """Links are valid for `link_seconds`."""
        self.catalogue, self.key, self.link_seconds = catalogue, key, link_seconds
        self.signer = LinkSigner()
        self.origin = ""
        """Scheme, host and port that links lead to."""


class _Server(ThreadingHTTPServer):
    def __init__(self, site: Site, handler: type["Handler"], host: str) -> None:
        self.site = site
        super().__init__((host, 0), handler)
        self.host = f"{host}:{self.server_port}"


@contextmanager
def running(site: Site, handler: type["Handler"], host: str = HOST) -> Iterator[str]:
    """Answer for a site on a free port of a host of the loopback interface; yield the origin."""
    server = _Server(site, handler, host)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://{server.host}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """Answers one request after another of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        """Take what all requests share from the server."""
        super().setup()
        self.site = self.server.site

    def handle(self) -> None:
        """Answer until the client leaves, which it may do at any time."""
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        """Answer one request."""
        self.answer()

    def do_HEAD(self) -> None:
        """Answer one request, without the body."""
        self.answer()

    def answer(self) -> None:
        """Answer for the storage or for the API."""
        if self.path.startswith(self.site.catalogue.storages):
            self.answer_storage()
        else:
            path = self.path.partition("?")[0]
            self.answer_api(path.removeprefix(API).strip("/").split("/") if path.startswith(f"{API}/") else [""])

    def answer_api(self, parts: list[str]) -> None:
        """Answer for the path of these parts, below the base URL."""
        catalogue = self.site.catalogue
        if parts == ["release"]:
            self.send_json(HTTPStatus.OK, catalogue.releases)
        elif parts[0] != "release" or parts[1] not in (catalogue.release, "latest"):
            self.send_unknown()
        elif len(parts) == 2:
            self.send_json(HTTPStatus.OK, catalogue.describe_release())
        elif self.key_is_right():
            if len(parts) == 4 and parts[2] == "dataset" and parts[3] in catalogue.datasets:
                self.send_json(HTTPStatus.OK, catalogue.describe_dataset(parts[3], self.link))
            else:
                self.send_unknown()

    def answer_storage(self) -> None:
        """Send the file that a link leads to, unless the link is not valid."""
        path, _, query = self.path.partition("?")
        catalogue = self.site.catalogue
        refusal = None if catalogue.is_open else self.site.signer.refusal(path, query)
        if "x-api-key" in self.headers:
            self.send_bytes(HTTPStatus.BAD_REQUEST, b"a key of the API was sent to the storage", {})
        elif refusal is not None:
            self.send_bytes(HTTPStatus.FORBIDDEN, refusal.encode(), {})
        elif (file := catalogue.file(path)) is not None:
            self.send_file(file)
        else:
            self.send_unknown()

    def link(self, path: str) -> str:
        """A signed link to the file behind a path."""
        return self.site.origin + self.site.signer.sign(path, self.site.link_seconds)

    def key_is_right(self) -> bool:
        """Whether the request has the key; refuses it where it has not."""
        given = self.headers.get("x-api-key")
        if given is None:
            self.send_json(HTTPStatus.UNAUTHORIZED, {"error": "the header x-api-key is missing"})
            return False
        if not hmac.compare_digest(given.encode(), self.site.key.encode()):
            self.send_json(HTTPStatus.FORBIDDEN, {"error": "the key in x-api-key is not known"})
            return False
        return True

    def send_unknown(self) -> None:
        """Answer that nothing is at this path."""
        self.send_json(HTTPStatus.NOT_FOUND, {"error": f"{self.path.partition('?')[0]} does not exist"})

    def send_json(self, status: HTTPStatus, content: Any, headers: dict[str, str] | None = None) -> None:
        """Send an answer of the API."""
        self.send_bytes(status, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    def send_bytes(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        """Send a short answer."""
        self.stream(status, io.BytesIO(body), len(body), headers)

    def send_file(self, path: Path) -> None:
        """Send a file, or the single range of it that was asked for."""
        size = path.stat().st_size
        headers = {"Accept-Ranges": "bytes", "ETag": f'"{path.stat().st_mtime_ns:x}-{size:x}"'}
        headers["Content-Type"] = "binary/octet-stream"
        status, span = HTTPStatus.OK, range(size)
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted is not None and self.headers.get("If-Range", headers["ETag"]) == headers["ETag"]:
            status, span = HTTPStatus.PARTIAL_CONTENT, _span(wanted["first"], wanted["last"], size)
            if not span:
                self.send_bytes(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", {"Content-Range": f"bytes */{size}"})
                return
            headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{size}"
        with path.open("rb") as file:
            file.seek(span.start)
            self.stream(status, file, len(span), headers)

    def stream(self, status: HTTPStatus, body: BinaryIO, length: int, headers: dict[str, str]) -> None:
        """Send the head of an answer and, but for HEAD, so many bytes of its body, or as many as it has."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        while self.command != "HEAD" and length > 0 and (block := body.read(min(length, _BLOCK))):
            self.send_block(block)
            length -= len(block)

    def send_block(self, block: bytes) -> None:
        """Send some bytes of a body."""
        self.wfile.write(block)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: links are secrets, and the log belongs to the command that is served."""


def _span(first: str, last: str, size: int) -> range:
    """The bytes that a range asks for (RFC 9110, section 14.1.2); without a first one, so many from the end."""
    if not first:
        return range(max(size - int(last), 0), size)
    return range(int(first), min(int(last) + 1 if last else size, size))
