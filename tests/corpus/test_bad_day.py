"""From a server on a bad day, where one request in five fails, everything arrives, within the rate limit."""

import gzip
import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
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


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    """A release of 60 shards, from 1 kB to 150 kB long, in the folder `release`."""
    random, files = Random(1), {}
    for dataset in JOBS:
        (tmp_path / "release" / dataset).mkdir(parents=True)
        for shard in range(20):
            name = f"20260101_000000_{shard:05}_{dataset}.gz"
            files[name] = gzip.compress(random.randbytes(random.randrange(1_000, 150_000)))
            (tmp_path / "release" / dataset / name).write_bytes(files[name])
    (tmp_path / "release/release.json").write_text(json.dumps({"release_id": RELEASE, "datasets": list(JOBS)}))
    return files


def downloads(arrivals: list[Arrival], shard: str) -> list[tuple[int, int]]:
    """From which byte on each answer came that brought any of a shard, and how many; not the asking for lengths."""
    asked = [
        (re.fullmatch(r"bytes=(\d+)-", arrival.range), arrival.body_sent)
        for arrival in arrivals
        if arrival.path.endswith(f"/{shard}") and arrival.status in (200, 206)
    ]
    return [(int(wanted[1]), sent) for wanted, sent in asked if wanted and sent]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_everything_arrives_once_and_the_api_is_asked_in_turns(files, key, tmp_path, monkeypatch, capfd, seed):
    monkeypatch.setattr(retry, "DISTANCE", 0.02)
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 1.0))
    monkeypatch.setattr(retry, "RETRIES", 10)
    arrivals: list[Arrival] = []
    faults = Faults(share=0.2, seed=seed, retry_after="0")
    with serve(tmp_path / "release", key=key, faults=faults, requests=arrivals) as origin:
        manifest = list_release(DatasetsApi(origin, tmp_path / "turns"), RELEASE)

        def download(job: tuple[str, int]) -> None:
            dataset, part = job
            remote = RemoteDataset(DatasetsApi(origin, tmp_path / "turns"), RELEASE, dataset)
            folders = {"state": tmp_path / f"state/{dataset}-{part}", "output": tmp_path / f"raw/{dataset}/{part}"}
            shards = shards_of_part(manifest, dataset, part=part, parts=JOBS[dataset])
            download_shards(remote.open, shards, **folders)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(download, [(dataset, part) for dataset, parts in JOBS.items() for part in range(parts)]))
    assert {path.name: path.read_bytes() for path in (tmp_path / "raw").rglob("*.gz")} == files
    for shard, content in files.items():
        starts, lengths = zip(*downloads(arrivals, shard), strict=True)
        assert list(starts) == [0, *itertools.accumulate(lengths)][:-1], shard
        assert sum(lengths) == len(content)
    to_the_api = [arrival for arrival in arrivals if arrival.path.startswith("/datasets/v1/")]
    times = sorted(arrival.seconds for arrival in to_the_api)
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= retry.DISTANCE
    assert {arrival.host for arrival in to_the_api} == {urlsplit(origin).netloc}
    assert not any(key in str(arrival) for arrival in arrivals if arrival not in to_the_api)
    write_manifest(tmp_path / "manifest.json", manifest)
    said = "".join(capfd.readouterr()) + (tmp_path / "manifest.json").read_text()
    assert not re.search(rf"{key}|Signature|Expires|https?://", said)
    assert {arrival.fault for arrival in arrivals} == {None, *AT_RANDOM["storage"]}
