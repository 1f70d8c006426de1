"""The server answers as the Datasets API is known to answer."""

import json
import re
import socket
import struct
import threading
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
import requests
from tests.releases.local_server import Catalogue
from tests.releases.server import LinkSigner, serve

from cocite.core.errors import InputError

KEY = {"x-api-key": "right"}
CONTENT = bytes(range(256)) * 400
PAPERS = "release/latest/dataset/papers"


@pytest.fixture
def folder(tmp_path):
    """A release of two shards whose bytes are known; the server looks into no shard."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "release.json").write_text(json.dumps({"release_id": "2026-01-06", "datasets": ["papers"]}))
    (tmp_path / "papers" / "README.txt").write_text("Papers.\n\nOf a test.")
    for shard in range(2):
        (tmp_path / "papers" / f"20260106_000000_0000{shard}_papers.gz").write_bytes(CONTENT[shard:])
    return tmp_path


@pytest.fixture
def get(folder):
    """A function that asks for a path or a link, with the key unless other headers are given."""
    with serve(folder, key="right") as url:
        yield lambda path, headers=KEY: requests.get(urljoin(f"{url}/", path), headers=headers, timeout=5)


@pytest.fixture
def links(get):
    return get(PAPERS).json()["files"]


def test_releases_are_listed_to_everyone(get):
    assert get("release/", {}).json() == ["2026-01-06"]
    papers = {"name": "papers", "description": "Papers.", "README": "Papers.\n\nOf a test."}
    for release in ("2026-01-06", "latest"):
        described = get(f"release/{release}", {}).json()
        assert (described["release_id"], described["datasets"]) == ("2026-01-06", [papers])


def test_answers_have_the_keys_of_the_published_description(get, shared):
    described = (shared / "data/s2-openapi/semantic-scholar-datasets-openapi.yml").read_text()
    answers = [get(path).json() for path in ("release/latest", PAPERS)]
    expected = [{"release_id", "README", "datasets"}, {"name", "description", "README", "files"}]
    assert [set(answer) for answer in answers] == expected
    assert all(re.search(rf"^ +{name}:$", described, re.MULTILINE) for answer in answers for name in answer)


@pytest.mark.parametrize(("headers", "status"), [({}, 401), ({"x-api-key": "wrong"}, 403), (KEY, 200)])
def test_links_are_given_only_to_clients_that_send_the_key(get, headers, status):
    answer = get("release/2026-01-06/dataset/papers", headers)
    assert answer.status_code == status
    assert ("error" in answer.json()) == (status != 200)


@pytest.mark.parametrize("path", ["release/1999-01-01", "release/latest/dataset/authors", "diffs/a/to/b/papers", "x"])
def test_what_does_not_exist_is_404(get, path):
    assert get(path).status_code == 404


def test_a_link_fetches_its_shard_without_a_key_which_the_storage_refuses(get, links):
    assert urlsplit(links[0]).path == "/staging/2026-01-06/papers/20260106_000000_00000_papers.gz"
    assert [get(link, {}).content for link in links] == [CONTENT, CONTENT[1:]]
    assert get(links[0]).status_code == 400


def test_links_differ_at_every_listing_and_all_work(get, links):
    links = links + get(PAPERS).json()["files"]
    assert len(set(links)) == 4
    assert [get(link, {}).status_code for link in links] == [200] * 4


def test_a_tampered_link_is_refused(get, links):
    first, second = links
    tampered = [
        first[:-1] + ("0" if first[-1] != "0" else "1"),
        f"{first.partition('?')[0]}?{second.partition('?')[2]}",
        first.partition("?")[0],
        first.replace("papers.gz", "papers.gz/../../../release.json"),
    ]
    assert [get(link, {}).status_code for link in tampered] == [403] * 4


def test_a_link_lapses_at_its_time(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("tests.releases.server.time.time", lambda: now)
    signer = LinkSigner()
    path, _, query = signer.sign("/staging/a.gz", 60).partition("?")
    now = 1059.9
    assert signer.refusal(path, query) is None
    now = 1060.0
    assert signer.refusal(path, query) == "Request has expired"
    assert LinkSigner().refusal(path, query) == "SignatureDoesNotMatch"


@pytest.mark.parametrize(
    ("wanted", "first", "stop"),
    [("0-0", 0, 1), ("100-299", 100, 300), ("102300-", 102300, 102400), ("102399-999999", 102399, 102400)],
)
def test_a_range_is_answered_with_just_its_bytes(get, links, wanted, first, stop):
    answer = get(links[0], {"Range": f"bytes={wanted}"})
    assert (answer.status_code, answer.content) == (206, CONTENT[first:stop])
    assert answer.headers["Content-Range"] == f"bytes {first}-{stop - 1}/102400"


def test_a_range_beyond_the_end_is_416(get, links):
    answer = get(links[0], {"Range": "bytes=102400-"})
    assert (answer.status_code, answer.headers["Content-Range"]) == (416, "bytes */102400")


def test_the_server_listens_on_the_loopback_interface_alone_and_is_gone_afterwards(folder):
    with serve(folder, key="right") as url:
        parts = urlsplit(url)
        bound = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert (parts.hostname, parts.path) == ("127.0.0.1", "/datasets/v1")
    listening = {entry[1] for entry in bound if entry[3] == "0A" and entry[1].endswith(f":{parts.port:04X}")}
    assert listening == {f"0100007F:{parts.port:04X}"}
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/release/", timeout=5)


def test_a_client_that_leaves_is_no_error(folder, capfd):
    before = set(threading.enumerate())
    with serve(folder, key="right") as url:
        client = socket.create_connection(("127.0.0.1", urlsplit(url).port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"GET /datasets/v1/release/ HTTP/1.1\r\n\r\n")
        client.recv(1)
        client.close()
        for thread in set(threading.enumerate()) - before:
            if "process_request_thread" in thread.name:
                thread.join(5)
    assert capfd.readouterr().err == ""


def test_a_folder_that_is_no_release_is_named(tmp_path):
    with pytest.raises(InputError, match=r"release\.json does not exist"):
        Catalogue(tmp_path)
    (tmp_path / "release.json").write_text('{"datasets": []}')
    with pytest.raises(InputError, match="lacks the key 'release_id'"):
        Catalogue(tmp_path)
