"""Failures that may pass are retried, with growing pauses; the API is asked once in so many seconds, whoever asks."""

import errno
import itertools
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from tests.corpus.conftest import QuietHandler
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

    def ask_for_releases(**faults) -> tuple[list[Arrival], list[float]]:
        requests: list[Arrival] = []
        with serve(release, key=key, faults=Faults(**faults), requests=requests) as origin:
            assert DatasetsApi(origin, tmp_path / "turns").releases() == ["2026-01-06"]
        return requests, [pause for pause in pauses if pause >= 1]

    return ask_for_releases


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


class Counting(QuietHandler):
    """Counts its requests, and answers each with a status and a body, or not at all."""

    requests = 0
    answers: tuple[tuple[int, bytes] | None, ...] = ()

    def respond(self):
        type(self).requests += 1
        answer = self.answers[min(self.requests, len(self.answers)) - 1]
        if answer is not None:
            self.send(*answer)


def handler(*answers: tuple[int, bytes] | None) -> type[Counting]:
    return type("Answering", (Counting,), {"requests": 0, "answers": answers})


GIVEN_UP = {
    "a missing key, at once": (401, b'{"error": "no key"}', "status 401", 1),
    "a key that stays refused": (403, b"", r"refuses the key in S2_API_KEY \(status 403\)", 1 + retry.DOUBTFUL_RETRIES),
    "what is never JSON": (200, b"<html>", "does not answer with JSON", 1 + retry.DOUBTFUL_RETRIES),
}


@pytest.mark.parametrize(("status", "body", "message", "requests"), GIVEN_UP.values(), ids=GIVEN_UP)
def test_what_does_not_pass_is_reported_after_a_few_retries(
    serve_handler, key, pauses, tmp_path, status, body, message, requests
):
    refusing = handler((status, body))
    with serve_handler(refusing) as origin, pytest.raises(InputError, match=message) as caught:
        DatasetsApi(origin, tmp_path / "turns").releases()
    assert refusing.requests == requests
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "bad", [None, (200, b'["2026-01'), (408, b""), (429, b""), (500, b""), (502, b"<html>"), (524, b"")]
)
def test_broken_connections_half_answers_and_passing_statuses_are_retried(serve_handler, pauses, tmp_path, bad):
    recovering = handler(bad, bad, (200, b'["2026-01-06"]'))
    with serve_handler(recovering) as origin:
        assert DatasetsApi(origin, tmp_path / "turns").releases() == ["2026-01-06"]
    assert recovering.requests == 3


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


def test_each_hop_of_a_redirect_takes_a_turn(serve_handler, key, tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "DISTANCE", 0.2)
    seconds: list[float] = []

    class Redirecting(QuietHandler):
        def respond(self):
            seconds.append(time.monotonic())
            self.send(200 if self.path.endswith("/here") else 307, b"[]", {"Location": "/here"})

    with serve_handler(Redirecting) as origin:
        assert DatasetsApi(origin, tmp_path / "turns").releases() == []
    assert len(seconds) == 2
    assert distances(seconds)[0] >= 0.2


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
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    started = time.monotonic()
    with retry.turn(tmp_path / "turns"):
        assert 0.2 <= time.monotonic() - started < 5


def test_a_disk_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(retry.fcntl, "flock", refuse)
    with (
        pytest.raises(InputError, match=f"{tmp_path}/turns cannot be locked .No locks available"),
        retry.turn(tmp_path / "turns"),
    ):
        pass
