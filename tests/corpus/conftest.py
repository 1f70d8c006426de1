"""Small releases written by hand, a key, and servers on the loopback interface."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import pytest

from cocite.corpus.release import rate_limit, retry

KEY = "a-key-that-must-stay-secret"

WriteShard = Callable[..., Path]


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2_API_KEY", KEY)
    monkeypatch.setattr(rate_limit, "DISTANCE", 0.002)
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(retry, "REPETITIONS", 4)


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture
def write_shard() -> WriteShard:
    """Write lines, given as records or as raw bytes, to a `.gz`; return its path."""

    def write(path: Path, *lines: dict | bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in raw)))
        return path

    return write


@pytest.fixture
def release(tmp_path: Path, write_shard: WriteShard) -> Path:
    """A folder with three shards of each dataset, each some 60 kB long; random numbers do not pack."""
    folder = tmp_path / "release"
    for name in ("papers", "abstracts", "citations"):
        for shard in range(3):
            random = Random(f"{name} {shard}")
            noise = [{"corpusid": n, "noise": random.getrandbits(200)} for n in range(2000)]
            write_shard(folder / name / f"20260101_000000_0000{shard}_{name}.gz", *noise)
    (folder / "release.json").write_text(
        json.dumps({"release_id": "2026-01-06", "datasets": ["papers", "abstracts", "citations"]})
    )
    return folder


@contextmanager
def _serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def serve_handler() -> Callable[[type[BaseHTTPRequestHandler]], object]:
    """Serve a request handler of a test; a context manager that yields the base URL."""
    return _serve
