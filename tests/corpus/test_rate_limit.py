"""At most one request in so many seconds reaches the API, whoever sends it and whatever becomes of it."""

import errno
import itertools
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.corpus.handlers import QuietHandler
from tests.releases.faults import Faults
from tests.releases.server import Arrival, serve

from cocite.core.errors import InputError
from cocite.corpus.release import rate_limit
from cocite.corpus.release.client import DatasetsApi, Storage

LIST = "import sys; from pathlib import Path; from cocite.corpus.release.client import DatasetsApi; "
LIST += "DatasetsApi(sys.argv[1], Path(sys.argv[2])).releases()"
HOLD = "import sys; from pathlib import Path; from cocite.corpus.release import rate_limit; rate_limit.DISTANCE = 60; "
HOLD += "print(flush=True); rate_limit.turn(Path(sys.argv[1])).__enter__()"


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
    monkeypatch.setattr(rate_limit, "DISTANCE", 0.2)
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
        links = DatasetsApi(origin, tmp_path / "turns").dataset("latest", "papers")["files"]
        monkeypatch.setattr(rate_limit, "DISTANCE", 60)
        storage = Storage()
        assert [len(storage.get(link, first=0, last=9).content) for link in links] == [10, 10, 10]
    assert len(requests) == 4


def test_a_killed_job_delays_no_other_and_the_next_one_still_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(rate_limit, "DISTANCE", 0.2)
    holder = python(HOLD, tmp_path / "turns", stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"\n"
    time.sleep(0.3)
    assert holder.poll() is None
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    started = time.monotonic()
    with rate_limit.turn(tmp_path / "turns"):
        assert 0.2 <= time.monotonic() - started < 5


def test_a_disk_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(rate_limit.fcntl, "flock", refuse)
    with (
        pytest.raises(InputError, match=f"{tmp_path}/turns cannot be locked .No locks available"),
        rate_limit.turn(tmp_path / "turns"),
    ):
        pass
