"""Small releases written by hand, a key, and servers on the loopback interface."""

import gzip
import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.corpus.made import PAPERS, RULE, SHARD, Ingested, left_out, settings, write_corpus, write_twins
from tests.releases.server import running

from cocite.config.queries import QuerySettings
from cocite.config.release_folder import DATASETS
from cocite.config.source import WorkFilters
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.accounting import account
from cocite.corpus.ingest.release_shards import ingest_shards
from cocite.corpus.ingest.works import WorksSettings, ingest_files
from cocite.corpus.release import retry
from cocite.corpus.release.manifest import Shard
from cocite.corpus.selection import select

KEY = "a-key-that-must-stay-secret"

WriteShard = Callable[..., Path]
Chosen = tuple[dict[str, set[int]], dict[str, int]]
"""Split → ids, and reason → how many are missing."""


class QuietHandler(BaseHTTPRequestHandler):
    """Serves what no release holds, and writes no log; a subclass defines `respond`, which sends one answer."""

    def do_GET(self):
        self.respond()

    def send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send an answer. Its length is not stated, unless in the headers; the connection is closed at its end."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2_API_KEY", KEY)
    monkeypatch.setattr(retry, "DISTANCE", 0.002)
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(retry, "RETRIES", 4)


@pytest.fixture
def key() -> str:
    return KEY


def write_lines(path: Path, *lines: dict | bytes) -> Path:
    """Write lines, given as records or as raw bytes, to a `.gz`; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in raw)))
    return path


@pytest.fixture
def write_shard() -> WriteShard:
    return write_lines


@pytest.fixture(scope="session")
def _original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three shards of each dataset, each some 60 kB long; random numbers do not pack."""
    folder = tmp_path_factory.mktemp("release")
    for name in DATASETS:
        for shard in range(3):
            random = Random(f"{name} {shard}")
            noise = [{"corpusid": n, "noise": random.getrandbits(200)} for n in range(2000)]
            write_lines(folder / name / f"20260101_000000_0000{shard}_{name}.gz", *noise)
    (folder / "release.json").write_text(json.dumps({"release_id": "2026-01-06", "datasets": DATASETS}))
    return folder


@pytest.fixture
def release(_original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(_original, tmp_path / "release")


@pytest.fixture
def serve_handler() -> Callable[[type[BaseHTTPRequestHandler]], AbstractContextManager[str]]:
    """Serve a request handler of a test; a context manager that yields the base URL."""
    return partial(running, None)


@pytest.fixture
def serve_answers(serve_handler):
    """As `serve_handler`, from what a function answers to a request: what `send` takes, or nothing."""

    def serve(answer):
        class Answering(QuietHandler):
            def respond(self):
                sent = answer(self)
                if sent is not None:
                    self.send(*sent)

        return serve_handler(Answering)

    return serve


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Ingested]:
    """Ingest shards of a dataset and account for their lines; return what was written."""

    def read(dataset: str, *paths: Path, malformed: float = 0.0, **options) -> Ingested:
        shards = [Shard(name=path.name, bytes=path.stat().st_size) for path in paths]
        folder = paths[0].parent if paths else tmp_path
        ingest_shards(settings(dataset, **options), folder, shards, output=tmp_path / "out", report=tmp_path / "report")
        account(tmp_path / "report", malformed=malformed, omissions=tmp_path / "omissions")
        return Ingested(tmp_path)

    return read


@pytest.fixture
def read_works(tmp_path: Path) -> Callable[..., Path]:
    """Ingest files of works and account for their records; return the folder of the tables."""

    def read(*paths: Path, malformed=0.0, threads=1, authors=False, mag=False, **filters) -> Path:
        folder, shards = tmp_path / "works", []
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "raw").mkdir(parents=True)
        for path in paths:
            shards.append(Shard(name=f"{path.parent.name}_{path.name}", bytes=path.stat().st_size))
            shutil.copy(path, folder / "raw" / shards[-1].name)
        given = {"authors": authors, "mag": mag, "buckets": 2, "memory_mb": 500, "threads": threads}
        how = WorksSettings(filters=WorkFilters(**filters), **given)
        outputs = {name: folder / name / "0.parquet" for name in DATASETS}
        ingest_files(how, folder / "raw", shards, outputs, report=folder / "report")
        account(folder / "report", malformed=malformed, omissions=folder / "omissions")
        return folder

    return read


@pytest.fixture
def shard(tmp_path: Path) -> Callable[..., Path]:
    """Write lines to the shard `SHARD`; return its path."""
    return lambda *lines: write_lines(tmp_path / SHARD, *lines)


@pytest.fixture(scope="session")
def pairs() -> list[tuple[int, int]]:
    """Distinct citations at random, also to and from papers without a record."""
    random = np.random.default_rng(5)
    drawn = {tuple(map(int, pair)) for pair in random.integers(0, PAPERS + 50, size=(1800, 2))}
    return sorted(pair for pair in drawn if pair[0] != pair[1])


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]) -> Path:
    """A corpus with these citations, in two buckets."""
    return write_corpus(tmp_path_factory.mktemp("corpus"), pairs, buckets=2)


@pytest.fixture
def choose(corpus: Path, tmp_path: Path) -> Callable[..., Chosen]:
    """Select with changed settings; return split → ids, and the omissions."""

    def choose(folder=corpus, seed=1, threads=1, exclude=(), works=(), **changed):
        twins, output, omissions = (tmp_path / name for name in ("twins.parquet", "queries", "omissions"))
        write_twins(twins, works)
        given = {"papers": folder / "papers", "citations": folder / "citations", "twins": twins, "seed": seed}
        written = {"output": output, "omissions": omissions, "memory_mb": 500, "threads": threads}
        select(exclude, settings=QuerySettings(**RULE | changed), **given, **written)
        splits = defaultdict(set, {name: set() for name in ("train", "validation", "holdout", "excluded")})
        for row in read_table(output, "queries").to_pylist():
            splits[row["split"]].add(row["corpusid"])
        return splits, left_out(omissions, zero=True)

    return choose
