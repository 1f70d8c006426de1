"""The server fails as it is made to: in turn by a count, or at random with a seed."""

import json
from collections import Counter
from pathlib import Path

import pytest
import requests
from tests.releases.faults import AT_RANDOM, Fault, Faults, Mishaps
from tests.releases.server import Arrival, serve

KEY = {"x-api-key": "right"}
CONTENT = bytes(range(256)) * 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release of one shard whose bytes are known."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "release.json").write_text(json.dumps({"release_id": "2026-01-06", "datasets": ["papers"]}))
    (tmp_path / "papers" / "20260106_000000_00000_papers.gz").write_bytes(CONTENT)
    return tmp_path


def link_to_the_shard(url: str) -> str:
    return requests.get(f"{url}/release/latest/dataset/papers", headers=KEY, timeout=5).json()["files"][0]


def outcome_of(link: str) -> tuple[int, str | None] | type[Exception]:
    try:
        answer = requests.get(link, timeout=5)
    except requests.RequestException as error:
        return type(error)
    return answer.status_code, answer.headers.get("Retry-After")


def struck(faults: Faults, kind: str, times: int) -> list[Fault | None]:
    mishaps = Mishaps(faults)
    return [mishaps.strike(kind) for _ in range(times)]


def test_a_share_of_the_requests_fails_and_each_way_to_fail_is_as_frequent():
    assert struck(Faults(seed=1), "storage", 1000) == [None] * 1000
    faults = struck(Faults(share=0.2, seed=1), "storage", 10_000)
    counts = Counter(fault for fault in faults if fault is not None)
    assert 1_800 < counts.total() < 2_200  # 5 standard deviations are 200
    assert set(counts) == set(AT_RANDOM["storage"])
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault.DROPPED, requests.ConnectionError),
        (Fault.CUT, requests.exceptions.ChunkedEncodingError),
        (Fault.STALLED, requests.exceptions.ChunkedEncodingError),
        (Fault.TOO_MANY, (429, None)),
        (Fault.TOO_MANY_UNTIL, (429, "7")),
        (Fault.FORBIDDEN, (403, None)),
        (Fault.FAILING, (500, None)),
        (Fault.ALL_LAPSED, (403, None)),
        (Fault.ELSEWHERE, (200, None)),
    ],
)
def test_a_request_that_is_struck_fails_in_its_way(folder, monkeypatch, fault, outcome):
    strikes = iter([None, fault])
    monkeypatch.setattr(Mishaps, "strike", lambda self, kind: next(strikes, None))
    seen: list[Arrival] = []
    faults = Faults(share=0.5, retry_after="7", stall_seconds=0)
    with serve(folder, key="right", faults=faults, requests=seen) as url:
        link = link_to_the_shard(url)
        assert outcome_of(link) == outcome
        assert outcome_of(link) == ((403 if fault is Fault.ALL_LAPSED else 200), None)
    assert seen[1].fault is fault
    hosts = [arrival.host.partition(":")[0] for arrival in seen]
    assert hosts == ["127.0.0.1"] * 2 + ["127.0.0.2"] * (fault is Fault.ELSEWHERE) + ["127.0.0.1"]
