"""Downloading: whole or not at all, and never the same byte twice, also from a server on a bad day."""

import gzip
import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest
import requests as http
from tests.releases.faults import AT_RANDOM, Faults
from tests.releases.server import Arrival, serve

from cocite.core.errors import InputError
from cocite.corpus.release import retry
from cocite.corpus.release.client import DatasetsApi, RemoteDataset, list_release
from cocite.corpus.release.download import download_shards
from cocite.corpus.release.manifest import Shard, shards_of_part, write_manifest
from cocite.corpus.release.retry import Storage
from cocite.corpus.sources.directory import list_folder

RELEASE = "2026-01-06"


@pytest.fixture
def shards(release: Path) -> list[Shard]:
    return list(list_folder(release, RELEASE).datasets["papers"].shards)


@pytest.fixture
def download(release, key, tmp_path):
    """Download shards into `raw` from a server with faults; return what arrived there."""

    def download(shards: list[Shard], link_seconds: float = 3600, **faults) -> list[Arrival]:
        requests: list[Arrival] = []
        with serve(release, key=key, link_seconds=link_seconds, faults=Faults(**faults), requests=requests) as origin:
            remote = RemoteDataset(DatasetsApi(origin, tmp_path / "turns"), RELEASE, "papers")
            download_shards(remote.open, shards, state=tmp_path / "state", output=tmp_path / "raw")
        return requests

    return download


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The folder of what an earlier download left."""
    folder = tmp_path / "state" / "shards"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def part(state: Path, shards: list[Shard], release: Path) -> Path:
    """The first 1000 bytes of the first shard, which an earlier download left."""
    part = state / f"{shards[0].name}.part"
    part.write_bytes(bytes_of(release, shards[0])[:1000])
    return part


def bytes_of(release: Path, shard: Shard) -> bytes:
    return (release / "papers" / shard.name).read_bytes()


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def first_bytes(requests: list[Arrival]) -> list[int]:
    """Where each download began; requests for one byte only, as listing makes them, are not among them."""
    return [int(first) for request in requests for first in re.findall(r"bytes=(\d+)-$", request.range)]


def test_the_shards_arrive_as_they_are_served_and_the_state_is_gone(release, shards, download, tmp_path):
    for chosen, expected in (([], {}), (shards, contents(release / "papers"))):
        download(chosen)
        assert contents(tmp_path / "raw") == expected
        assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("fault", "starts"),
    [({"cuts": 1}, [0, 5000]), ({"short_lengths": 2}, [0, 5000, 10000]), ({"stalls": 1}, [0, 5000])],
)
def test_a_download_resumes_at_the_byte_where_it_broke_off(
    release, shards, download, tmp_path, monkeypatch, fault, starts
):
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 0.3))
    assert first_bytes(download(shards[:1], **fault, cut_after=5000)) == starts
    assert contents(tmp_path / "raw") == {shards[0].name: bytes_of(release, shards[0])}


def test_a_later_run_fetches_only_what_an_earlier_one_did_not(release, shards, download, tmp_path, part, state):
    whole = bytes_of(release, shards[1])
    (state / shards[1].name).write_bytes(whole)
    assert first_bytes(download(shards[:2])) == [1000]
    assert contents(tmp_path / "raw") == {shards[0].name: bytes_of(release, shards[0]), shards[1].name: whole}


def test_a_server_that_always_cuts_is_given_up_and_what_came_is_kept(shards, download, tmp_path, part):
    begun = part.read_bytes()
    broke = rf"{shards[0].name}: \d+ connections in a row broke at byte 1000 of {shards[0].bytes}"
    with pytest.raises(InputError, match=broke):
        download(shards, cuts=10**6)
    assert part.read_bytes() == begun
    assert not (tmp_path / "raw").exists()


def test_a_lapsed_link_is_listed_again_and_found_by_the_name_of_the_shard(release, shards, download, tmp_path, capsys):
    requests = download(shards, lapsed_listings=1)
    assert contents(tmp_path / "raw") == contents(release / "papers")
    assert sum("/dataset/papers" in request.path for request in requests) == 2
    log = capsys.readouterr().err
    assert "the link has lapsed" in log
    assert "Signature" not in log


def test_links_that_always_lapse_end_in_an_error_that_shows_no_link_and_no_key(shards, download, key):
    with pytest.raises(InputError, match=f"{shards[0].name}.*status 403") as caught:
        download(shards, link_seconds=0)
    assert "Signature" not in str(caught.value)
    assert key not in str(caught.value)


def test_no_link_is_logged_when_the_storage_cannot_be_reached(caplog, capsys):
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 cannot be reached") as caught:
        Storage().get("http://127.0.0.1:9/shard.gz?Signature=x", first=0)
    assert "Signature" not in caplog.text + capsys.readouterr().err + str(caught.value)


@pytest.fixture
def download_from(shards, serve_answers, tmp_path, part):
    """Download the first shard, of which 1000 bytes are there, from a storage that answers with a status and a body."""

    def download_from(status: int, body: bytes, **headers: str) -> None:
        with serve_answers(lambda _: (status, body, headers)) as origin:
            folders = {"state": tmp_path / "state", "output": tmp_path / "raw"}
            download_shards(lambda *_, **__: http.get(origin, stream=True, timeout=5), shards[:1], **folders)

    return download_from


def test_a_storage_that_takes_no_ranges_sends_the_shard_from_its_start(release, shards, download_from, tmp_path, part):
    part.write_bytes(b"the beginning of something else")
    whole = bytes_of(release, shards[0])
    download_from(200, whole, **{"Content-Length": str(len(whole))})
    assert contents(tmp_path / "raw") == {shards[0].name: whole}


ELSEWHERE = "requested bytes from 1000, but the storage sent bytes from "


@pytest.mark.parametrize(
    ("status", "length", "headers", "message"),
    [
        (206, 10, {"Content-Range": "bytes 0-9/*"}, f"{ELSEWHERE}byte 0"),
        (206, 10, {}, f"{ELSEWHERE}an unknown byte"),
        (206, 200_000, {"Content-Range": "bytes 1000-/*"}, "the storage sends more than the bytes from 1000 to"),
        (200, 200_000, {}, "sends more than"),
    ],
)
def test_what_was_not_asked_for_is_refused_and_not_joined(
    download_from, shards, part, status, length, headers, message
):
    before = part.read_bytes()
    with pytest.raises(InputError, match=f"{shards[0].name}: .*{message}"):
        download_from(status, bytes(length), **headers)
    assert part.read_bytes() == (before if status == 206 else b"")


def test_a_shard_of_another_length_than_listed_is_named(shards, download):
    listed = Shard(name=shards[1].name, bytes=shards[1].bytes + 1)
    with pytest.raises(InputError, match=f"{listed.name} has {shards[1].bytes}"):
        download([shards[0], listed])


def test_a_shard_that_has_become_shorter_than_what_is_there_of_it_is_named(release, shards, download, tmp_path, part):
    (release / "papers" / shards[0].name).write_bytes(b"another")
    with pytest.raises(InputError, match=f"{shards[0].name} has 7 bytes"):
        download(shards)
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize("damage", [lambda whole: whole[:-2000], lambda whole: whole[:3000] + bytes(8) + whole[3008:]])
def test_a_shard_that_is_broken_at_the_server_is_named_and_not_kept(release, download, tmp_path, damage):
    path = release / "papers" / "20260101_000000_00001_papers.gz"
    path.write_bytes(damage(path.read_bytes()))
    shards = list(list_folder(release, RELEASE).datasets["papers"].shards)
    with pytest.raises(InputError, match=f"{path.name} is not a whole gzip file"):
        download(shards)
    assert not (tmp_path / "raw").exists()
    assert {file.name for file in (tmp_path / "state" / "shards").iterdir()} == {shards[0].name}


def test_a_full_disk_is_reported_with_its_folder_and_free_space(shards, download, tmp_path, state):
    (state / f"{shards[0].name}.part").symlink_to("/dev/full")
    with pytest.raises(InputError, match=rf"disk is full: {tmp_path / 'state'} has [\d.]+ GB free"):
        download(shards)
    assert not (tmp_path / "raw").exists()
    assert not (state / shards[0].name).exists()


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
    came = [each for each in arrivals if each.path.endswith(f"/{shard}") and each.status in (200, 206)]
    return [(first, each.body_sent) for each in came if each.body_sent for first in first_bytes([each])]


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
