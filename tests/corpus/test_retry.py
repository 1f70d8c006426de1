"""Failures that may pass are retried, with growing pauses; the API is asked once in so many seconds, whoever asks."""

import errno
import itertools
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.releases.faults import Faults
from tests.releases.server import Arrival, serve

from cocite.core.errors import InputError
from cocite.corpus.release import retry
from cocite.corpus.release.client import DatasetsApi
from cocite.corpus.release.retry import Storage


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """The pauses between retries, of a second and more, which are not slept."""
    slept: list[float] = []
    monkeypatch.setattr(retry, "FIRST_PAUSE", 1.0)
    monkeypatch.setattr(retry, "DISTANCE", 0)
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


@pytest.fixture
def ask(release, key, tmp_path, pauses):
    """List the releases at a server with faults; return what arrived and the pauses."""

    def ask(**faults) -> tuple[list[Arrival], list[float]]:
        requests: list[Arrival] = []
        with serve(release, key=key, faults=Faults(**faults), requests=requests) as origin:
            assert DatasetsApi(origin, tmp_path / "turns").releases() == ["2026-01-06"]
        return requests, [pause for pause in pauses if pause >= 1]

    return ask


def test_pauses_double_and_each_has_a_random_part_as_long_as_itself_at_most(ask, monkeypatch):
    monkeypatch.setattr(retry, "RETRIES", 6)
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 10)
    requests, pauses = ask(api_unavailable=6)
    assert len(requests) == 7
    for pause, least in zip(pauses, [1, 2, 4, 8, 10, 10], strict=True):
        assert least <= pause <= 2 * least
    assert len(set(pauses)) == 6


def in_seconds(seconds):
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        (lambda: "40", 40, 41),
        (lambda: in_seconds(100), 90, 101),
        (lambda: "86400", 3600, 3601),  # a server that asks for a day is asked again after an hour
        (lambda: "soon", 1, 2),
        (lambda: "-5", 1, 2),
        (lambda: "", 1, 2),
    ],
)
def test_a_pause_is_as_long_as_retry_after_asks_for(ask, retry_after, least, most):
    _, pauses = ask(too_many_requests=1, retry_after=retry_after())
    assert least <= pauses[0] <= most


def test_a_key_that_is_refused_for_a_moment_is_not_given_up(ask):
    requests, _ = ask(api_refusals=retry.DOUBTFUL_RETRIES)
    assert [request.status for request in requests] == [403, 403, 403, 200]


@pytest.mark.parametrize(
    ("status", "body", "message", "requests"),
    [
        pytest.param(401, b'{"error": "no key"}', "status 401", 1, id="a missing key, at once"),
        pytest.param(403, b"", r"refuses the key in S2_API_KEY \(status 403\)", 4, id="a key that stays refused"),
        pytest.param(200, b"<html>", "does not answer with JSON", 4, id="what is never JSON"),
        pytest.param(503, b"", "answers with status 503, even after 4 retries", 5, id="what never recovers"),
    ],
)
def test_what_does_not_pass_is_reported_after_a_few_retries(
    serve_answers, key, pauses, tmp_path, status, body, message, requests
):
    answers = [(status, body)] * requests
    with serve_answers(lambda _: answers.pop()) as origin, pytest.raises(InputError, match=message) as caught:
        DatasetsApi(origin, tmp_path / "turns").releases()
    assert not answers
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "bad", [None, (200, b'["2026-01'), (408, b""), (429, b""), (500, b""), (502, b"<html>"), (524, b"")]
)
def test_broken_connections_half_answers_and_passing_statuses_are_retried(serve_answers, pauses, tmp_path, bad):
    answers = [(200, b'["2026-01-06"]'), bad, bad]
    with serve_answers(lambda _: answers.pop()) as origin:
        assert DatasetsApi(origin, tmp_path / "turns").releases() == ["2026-01-06"]
    assert not answers


LIST = "import sys; from pathlib import Path; from cocite.corpus.release.client import DatasetsApi; "
LIST += "DatasetsApi(sys.argv[1], Path(sys.argv[2])).releases()"
HOLD = "import sys; from pathlib import Path; from cocite.corpus.release import retry; retry.DISTANCE = 60; "
HOLD += "print(flush=True); retry.turn(Path(sys.argv[1])).__enter__()"


def python(code: str, *arguments: str | Path, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **options)


def distances(seconds: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(sorted(seconds))]


def test_processes_keep_more_than_a_second_between_all_their_requests_and_retries(release, key, tmp_path):
    requests: list[Arrival] = []
    with serve(release, key=key, faults=Faults(too_many_requests=1), requests=requests) as origin:
        jobs = [python(LIST, origin, tmp_path / "turns") for _ in range(3)]
        assert [job.wait(timeout=60) for job in jobs] == [0, 0, 0]
    assert len(requests) == 4
    assert min(distances([request.seconds for request in requests])) > 1.0


def test_each_hop_of_a_redirect_takes_a_turn_and_the_key_follows_to_no_other_host(
    serve_answers, key, tmp_path, monkeypatch
):
    monkeypatch.setattr(retry, "DISTANCE", 0.2)
    seen: list[tuple[float, str | None]] = []

    def answer(request):
        seen.append((time.monotonic(), request.headers.get("x-api-key")))
        onward = {"/release/": "/here", "/here": f"{elsewhere}/there"}.get(request.path)
        return (307, b"", {"Location": onward}) if onward else (200, b"[]")

    with serve_answers(answer) as origin, serve_answers(answer) as elsewhere:
        assert DatasetsApi(origin, tmp_path / "turns").releases() == []
    seconds, keys = zip(*seen, strict=True)
    assert keys == (key, key, None)
    assert min(distances(seconds)) >= 0.2


def test_the_storage_is_asked_without_turns(release, key, tmp_path, monkeypatch):
    requests: list[Arrival] = []
    with serve(release, key=key, requests=requests) as origin:
        links = DatasetsApi(origin, tmp_path / "turns").dataset("latest", "papers").files
        monkeypatch.setattr(retry, "DISTANCE", 60)
        storage = Storage()
        assert [len(storage.get(link, first=0, last=9).content) for link in links] == [10, 10, 10]
    assert len(requests) == 4


def test_a_killed_job_delays_no_other_and_the_next_one_still_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "DISTANCE", 0.2)
    holder = python(HOLD, tmp_path / "turns", stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"\n"
    time.sleep(0.3)
    assert holder.poll() is None
    with holder:
        holder.kill()
    started = time.monotonic()
    with retry.turn(tmp_path / "turns"):
        assert 0.2 <= time.monotonic() - started < 5


def test_a_disk_without_locks_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(retry.fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    with pytest.raises(InputError, match=f"{tmp_path}/turns cannot be locked .No locks available"):
        retry.turn(tmp_path / "turns").__enter__()
