"""Failures that may pass are retried, with growing pauses; others are reported."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.corpus.handlers import QuietHandler
from tests.releases.faults import Faults
from tests.releases.server import Arrival, serve

from cocite.core.errors import InputError
from cocite.corpus.release import retry
from cocite.corpus.release.client import DatasetsApi


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """The pauses between retries, of a second and more, which are not slept."""
    slept: list[float] = []
    monkeypatch.setattr(retry, "FIRST_PAUSE", 1.0)
    monkeypatch.setattr("cocite.corpus.release.rate_limit.DISTANCE", 0)
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


def test_a_number_of_seconds_in_retry_after_is_waited_for(ask):
    _, pauses = ask(too_many_requests=1, retry_after="40")
    assert 40 <= pauses[0] <= 41


def test_a_date_in_retry_after_is_waited_for(ask):
    date = datetime.now(UTC) + timedelta(seconds=100)
    _, pauses = ask(api_unavailable=1, retry_after=format_datetime(date, usegmt=True))
    assert 90 <= pauses[0] <= 101


def test_a_server_that_asks_for_a_day_is_asked_again_after_an_hour(ask):
    _, pauses = ask(too_many_requests=1, retry_after="86400")
    assert 3600 <= pauses[0] <= 3601


@pytest.mark.parametrize("nonsense", ["soon", "-5", ""])
def test_a_retry_after_that_says_nothing_is_a_pause_like_any_other(ask, nonsense):
    _, pauses = ask(too_many_requests=1, retry_after=nonsense)
    assert 1 <= pauses[0] <= 2


def test_a_key_that_is_refused_for_a_moment_is_not_given_up(ask):
    requests, _ = ask(api_refusals=retry.DOUBTFUL_RETRIES)
    assert [request.status for request in requests] == [403, 403, 403, 200]


def test_a_key_that_stays_refused_is_reported_after_a_few_retries(release, key, tmp_path, pauses):
    requests: list[Arrival] = []
    with (
        serve(release, key=key, faults=Faults(api_refusals=1000), requests=requests) as origin,
        pytest.raises(InputError, match=r"refuses the key in S2_API_KEY \(status 403\)") as caught,
    ):
        DatasetsApi(origin, tmp_path / "turns").releases()
    assert len(requests) == 4
    assert key not in str(caught.value)


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


def test_a_missing_key_is_reported_at_once(serve_handler, pauses, tmp_path):
    refusing = handler((401, b'{"error": "no key"}'))
    with serve_handler(refusing) as origin, pytest.raises(InputError, match="status 401"):
        DatasetsApi(origin, tmp_path / "turns").releases()
    assert refusing.requests == 1


@pytest.mark.parametrize("bad", [None, (200, b'["2026-01'), (429, b""), (500, b""), (502, b"<html>"), (503, b"")])
def test_broken_connections_half_answers_and_passing_statuses_are_retried(serve_handler, pauses, tmp_path, bad):
    recovering = handler(bad, bad, (200, b'["2026-01-06"]'))
    with serve_handler(recovering) as origin:
        assert DatasetsApi(origin, tmp_path / "turns").releases() == ["2026-01-06"]
    assert recovering.requests == 3


def test_what_is_never_json_is_reported_after_a_few_retries(serve_handler, pauses, tmp_path):
    page = handler((200, b"<html>"))
    with serve_handler(page) as origin, pytest.raises(InputError, match="does not answer with JSON"):
        DatasetsApi(origin, tmp_path / "turns").releases()
    assert page.requests == 1 + retry.DOUBTFUL_RETRIES
