"""From a server on a bad day, where one request in five fails, everything arrives, within the rate limit."""

import gzip
import itertools
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from subprocess import run
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.releases.faults import AT_RANDOM, Faults
from tests.releases.server import Arrival, serve

from cocite.corpus.release import retry
from cocite.corpus.release.client import DatasetsApi
from cocite.corpus.release.download import download_shards
from cocite.corpus.release.manifest import shards_of_part, write_manifest
from cocite.corpus.release.remote import RemoteDataset, list_release

RELEASE = "2026-01-06"
JOBS = {"papers": 20, "abstracts": 1, "citations": 4}
"""Jobs of each dataset; each has 20 shards."""
SHARDS = 20
AT_ONCE = 8


@dataclass
class Day:
    """A server, where its files are, where they go, and what it has seen."""

    release: Path
    results: Path
    origin: str = ""
    arrivals: list[Arrival] = field(default_factory=list)

    @property
    def manifest(self) -> Path:
        return self.results / "manifest.json"

    @property
    def turns(self) -> Path:
        return self.results / "turns"

    def to_the_api(self) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival.path.startswith("/datasets/v1/")]

    def distances(self) -> list[float]:
        """Seconds between requests of the API."""
        times = sorted(arrival.seconds for arrival in self.to_the_api())
        return [later - earlier for earlier, later in itertools.pairwise(times)]

    def downloads(self, shard: str) -> list[tuple[int, int]]:
        """From which byte on each answer came that brought any of a shard, and how many; not the asking for lengths."""
        asked = [
            (re.fullmatch(r"bytes=(\d+)-", arrival.range), arrival.body_sent)
            for arrival in self.arrivals
            if arrival.path.endswith(f"/{shard}") and arrival.status in (200, 206)
        ]
        return [(int(wanted[1]), sent) for wanted, sent in asked if wanted and sent]


@pytest.fixture
def many_shards(tmp_path: Path) -> Path:
    """A release of 60 shards, from 1 kB to 150 kB long."""
    folder, random = tmp_path / "release", Random(1)
    for dataset in JOBS:
        (folder / dataset).mkdir(parents=True)
        for shard in range(SHARDS):
            content = gzip.compress(random.randbytes(random.randrange(1_000, 150_000)))
            (folder / dataset / f"20260101_000000_{shard:05}_{dataset}.gz").write_bytes(content)
    (folder / "release.json").write_text(json.dumps({"release_id": RELEASE, "datasets": list(JOBS)}))
    return folder


@contextmanager
def bad_day(release: Path, key: str, **faults: Any):
    day = Day(release=release, results=release.parent / "results")
    with serve(release, key=key, faults=Faults(share=0.2, **faults), requests=day.arrivals) as day.origin:
        yield day


def assert_all_is_well(day: Day, key: str, said: str) -> None:
    files = {path.name: path.read_bytes() for path in day.release.rglob("*.gz")}
    assert {path.name: path.read_bytes() for path in day.results.rglob("*.gz")} == files
    assert min(day.distances()) >= retry.DISTANCE
    for shard, content in files.items():
        starts, lengths = zip(*day.downloads(shard), strict=True)
        assert list(starts) == [0, *itertools.accumulate(lengths)][:-1], shard
        assert sum(lengths) == len(content)
    api = urlsplit(day.origin).netloc
    with_key = [arrival for arrival in day.arrivals if key in str(arrival)]
    assert with_key
    assert all(arrival.host == api and arrival.path.startswith("/datasets/v1/") for arrival in with_key)
    assert not re.search(rf"{key}|Signature|Expires|https?://", said + day.manifest.read_text())


def every_job(day: Day, download: Callable[..., object]) -> list[object]:
    """Do all downloads, some at once; each in a state and an output folder of its own."""

    def run_job(job: tuple[str, int]) -> object:
        dataset, part = job
        folders = {"state": day.results / f"state/{dataset}-{part}", "output": day.results / f"raw/{dataset}/{part}"}
        return download(dataset, part, JOBS[dataset], **folders)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run_job, [(dataset, part) for dataset, parts in JOBS.items() for part in range(parts)]))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_everything_arrives_once_and_the_api_is_asked_in_turns(many_shards, key, monkeypatch, capfd, seed):
    monkeypatch.setattr(retry, "DISTANCE", 0.02)
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 1.0))
    monkeypatch.setattr(retry, "RETRIES", 10)
    with bad_day(many_shards, key, seed=seed, retry_after="0") as day:
        manifest = list_release(DatasetsApi(day.origin, day.turns), RELEASE)
        write_manifest(day.manifest, manifest)

        def download(dataset: str, part: int, parts: int, **folders: Path) -> None:
            remote = RemoteDataset(DatasetsApi(day.origin, day.turns), RELEASE, dataset)
            download_shards(remote.open, shards_of_part(manifest, dataset, part=part, parts=parts), **folders)

        every_job(day, download)
    assert_all_is_well(day, key, said="".join(capfd.readouterr()))
    assert {arrival.fault for arrival in day.arrivals} == {None, *AT_RANDOM["storage"]}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_the_same_holds_for_processes_and_the_real_distance(many_shards, key, seed):
    def call(*command: str, **options: object) -> str:
        start = [sys.executable, "-c", "from cocite.cli import main; main()", "corpus", *command]
        settings = json.dumps({"source": "s2", "api": day.origin})
        common = {"settings": settings, "results": day.results, **options}
        started = [*start, *(f"--{name}={value}" for name, value in common.items())]
        result = run(started, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout + result.stderr

    def download(dataset: str, part: int, parts: int, **folders: Path) -> str:
        return call("download", dataset, manifest=day.manifest, part=part, parts=parts, **folders)

    with bad_day(many_shards, key, seed=seed, retry_after="2") as day:
        said = call("list", release=RELEASE, output=day.manifest)
        said += "".join(map(str, every_job(day, download)))
    assert_all_is_well(day, key, said)
    assert {arrival.fault for arrival in day.arrivals} == {None, *AT_RANDOM["storage"]}
