"""The Semantic Scholar Datasets API, served locally from a folder in the layout of a release.

It serves without a key what the real one serves with a key; the storage supports single byte ranges. Subclasses
require the key, sign the links and fail as real servers do.
"""

import io
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

from cocite.config.release_folder import readme_of, stated_by
from cocite.core.errors import InputError

API = "/datasets/v1"
HOST = "127.0.0.1"
_BLOCK = 1 << 16
_RANGE = re.compile(r"bytes=(?P<first>\d+)-(?P<last>\d*)")
STORAGE = "/staging"


class Catalogue:
    """A release in a folder, as the Datasets API describes it."""

    storages: tuple[str, ...] = (f"{STORAGE}/",)
    """What the paths begin with that a link can lead to."""

    def __init__(self, folder: Path) -> None:
        """Read the folder. Raises `InputError` if it has no `release.json` with an id and names of datasets."""
        described = read_release(folder)
        self.release: str = described["release_id"]
        self.releases: list[str] = [self.release]
        """All that are known, the oldest first."""
        readmes = {name: readme_of(folder / name) for name in described["datasets"]}
        texts = {name: text or f"The dataset {name} of a local release." for name, text in readmes.items()}
        self.datasets = {name: {"description": text.partition("\n")[0], "README": text} for name, text in texts.items()}
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


def read_release(folder: Path) -> Mapping[str, Any]:
    """The metadata of the release in a folder. Raises `InputError` if it lacks the id or the datasets."""
    path = folder / "release.json"
    if not path.exists():
        raise InputError(f"{path} does not exist, so {folder} is not the folder of a release.")
    described = stated_by(folder)
    for name in ("release_id", "datasets"):
        if name not in described:
            raise InputError(f"{path}: lacks the key {name!r}.")
    return described


class Site:
    """What all requests to a served release share."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.origin = ""
        """Scheme, host and port that links lead to."""


class _Server(ThreadingHTTPServer):
    def __init__(self, site: Site, handler: type["Handler"], host: str, port: int) -> None:
        self.site = site
        super().__init__((host, port), handler)
        self.host = f"{host}:{self.server_port}"


@contextmanager
def running(site: Site, handler: type["Handler"], host: str = HOST, port: int = 0) -> Iterator[str]:
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
        elif len(parts) == 4 and parts[2] == "dataset" and parts[3] in catalogue.datasets:
            self.send_json(HTTPStatus.OK, catalogue.describe_dataset(parts[3], self.link))
        else:
            self.send_unknown()

    def answer_storage(self) -> None:
        """Send the file that a link leads to."""
        file = self.site.catalogue.file(self.path.partition("?")[0])
        if file is None:
            self.send_unknown()
        else:
            self.send_file(file)

    def link(self, path: str) -> str:
        """A link to the file behind a path."""
        return self.site.origin + path

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
        """Send a file, or the requested single range of it."""
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
        """Send the head of an answer and so many bytes of its body, or as many as it has."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        while length > 0 and (block := body.read(min(length, _BLOCK))):
            self.send_block(block)
            length -= len(block)

    def send_block(self, block: bytes) -> None:
        """Send some bytes of a body."""
        self.wfile.write(block)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: links are secrets, and the log belongs to the command that is served."""
