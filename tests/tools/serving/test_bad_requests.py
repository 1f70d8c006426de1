"""Requests that nobody should send: each gets a fitting status and one sentence, and nothing is read or written."""

import contextlib
import json
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import quote, urlencode

import pytest
from tests.tools.serving.conftest import MODELS, REQUESTS, SCRIPT, served, states

MODEL = MODELS[0]
RANGE = f"a whole number from 0 to {2**63 - 1:,}"
UP = "../../etc/passwd"
TRICKS = [UP, quote(UP, safe=""), quote(quote(UP, safe=""), safe=""), "/etc/passwd", "..%2f..%2fetc%2fpasswd"]
TRICKS += ["....//....//etc/passwd", "..\\..\\etc\\passwd", "file:///etc/passwd", "%c0%ae%c0%ae/etc/passwd"]
TRICKS += ["\0/etc/passwd"]
PARAMETERS = {f"/api{path}": parameters for path, parameters in REQUESTS.items()}


@pytest.fixture
def send(server):
    """Sends a request as it is written, and returns the status, the headers and the content of the answer."""

    def send(target, method="GET", body=None, host=None):
        with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            connection._validate_path = lambda path: None
            connection.request(method, target, body, {} if host is None else {"Host": host})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    return send


@pytest.fixture
def refused(send):
    """Sends a request that is refused, and returns the status and the sentence."""

    def refused(target, *more, **named):
        status, headers, content = send(target, *more, **named)
        assert headers["Content-Type"] == "application/json"
        assert headers["X-Content-Type-Options"] == "nosniff"
        sentence = json.loads(content)["error"]
        assert sentence[-1] == "."
        assert "\n" not in sentence
        assert len(sentence) < 300
        return status, sentence

    return refused


def nearest(**parameters):
    return f"/api/nearest?{urlencode({'model': MODEL, **parameters})}"


@pytest.mark.parametrize(
    ("target", "status", "sentence"),
    [
        (nearest(text=""), 400, "There is nothing to search for: text is empty."),
        (nearest(text=" \t\n"), 400, "There is nothing to search for: text is empty."),
        (nearest(text="x" * 100_000), 400, "text has 100,000 characters, and may have 8,000 at most."),
        (nearest(), 400, "A search is for papers or for a text: give one of the two."),
        (nearest(unlike=1), 400, "A search is for papers or for a text: give one of the two."),
        (nearest(paper="1,77"), 404, None),
        (nearest(paper=1, unlike=77), 404, None),
        (nearest(paper=1, years="199"), 400, "years is '199'; it can be 2010, 2010-2015 or 2010-."),
        (nearest(paper=1, years="2010–2015"), 400, None),
        (nearest(paper=1, known="most"), 400, "known is 'most'; it can be more, balanced, less."),
        ("/api/export?papers=1&form=pdf", 400, "form is 'pdf'; it can be bibtex, ris, csv."),
        ("/api/links?papers=" + ",".join(["2"] * 201), 400, "papers may name 200 papers at most."),
        (nearest(paper=77), 404, f"Model {MODEL} has no vector of paper 77: it is not in the corpus, or has no text."),
        ("/api/paper?paper=77", 404, "The corpus has no record of paper 77."),
        ("/api/paper?paper=one", 400, f"paper must be a corpus id, {RANGE}, and is 'one'."),
        (nearest(paper=2**63), 400, None),
        (nearest(paper="٣"), 400, None),
        (nearest(paper="1.0"), 400, None),
        (nearest(paper=1, k=-1), 400, "k must be a whole number from 1 to 100, and is '-1'."),
        (nearest(paper=1, k=0), 400, None),
        (nearest(paper=1, k=10**30), 400, None),
        (nearest(paper=1, k="1e1"), 400, None),
        (nearest(model=SCRIPT, paper=1), 404, None),
        (nearest(model="x", paper=1), 404, f"This run has no model 'x' with vectors; there is {' or '.join(MODELS)}."),
        (nearest(paper=1) + "&k=1&k=2", 400, "The parameter k is given twice."),
        ("/api/paper?file=x", 400, "/api/paper has no parameter 'file'; those that it takes: paper."),
        ("/api/map?name=holdout", 400, "/api/map has no parameter 'name'; those that it takes: model."),
        ("/api/nearest?model=%ff%fe", 400, "The parameters cannot be read: there are too many, or they are not UTF-8."),
        ("/api/nearest?" + "&".join(["k=1"] * 5000), 400, None),
        ("/api/relations?paper=1&others=2,,3", 400, None),
        ("/api/relations?paper=1&others=" + ",".join(["2"] * 101), 400, "others may name 100 papers at most."),
        (f"/api/papers?words={'x' * 201}", 400, "words has 201 characters, and may have 200 at most."),
        ("/api/map?model=bm25", 404, f"This run has no model 'bm25' with vectors; there is {' or '.join(MODELS)}."),
        ("/api/nothing", 404, None),
        ("/index.html", 404, None),
    ],
)  # fmt: skip
def test_a_wrong_request_is_answered_with_a_status_and_a_sentence(refused, target, status, sentence):
    answered, said = refused(target)
    assert answered == status
    assert sentence in (None, said)


@pytest.mark.parametrize("path", PARAMETERS)
@pytest.mark.parametrize("trick", TRICKS)
def test_no_parameter_leads_to_a_file(send, path, trick):
    for name in PARAMETERS[path]:
        values = PARAMETERS[path] | {name: trick}
        for query in (urlencode(values), "&".join(f"{key}={quote(value)}" for key, value in values.items())):
            status, _, content = send(f"{path}?{query}")
            # Words that no title has are no mistake.
            assert status in (400, 404) or (name, content) == ("words", b"[]")
            assert b"root:" not in content


@pytest.mark.parametrize("trick", [quote(each, safe="/%.\\:") for each in TRICKS])
def test_no_address_leads_to_a_file(send, trick):
    for target in (f"/{trick}", f"/api/{trick}", f"/api/run/{trick}"):
        status, _, content = send(target)
        assert status == 404
        assert b"root:" not in content


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
def test_only_get_is_answered(send, refused, method):
    assert refused(nearest(paper=1), method, b"k=1") == (405, f"{method} is not answered; only GET is.")
    assert send(nearest(paper=1), method)[1]["Allow"] in ("GET, HEAD", "HEAD, GET")


def test_head_gets_no_body(send):
    assert send("/", "HEAD")[::2] == (200, b"")


NO_REQUESTS = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    "version": b"GET / HTTP/9.9\r\n\r\n",
    "host": b"GET / HTTP/1.1\r\n\r\n",
    "address": b"GET /" + b"x" * 2**17 + b" HTTP/1.1\r\nHost: localhost\r\n",
    "headers": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2**15,
}


@pytest.mark.parametrize("sent", NO_REQUESTS.values(), ids=NO_REQUESTS)
def test_what_is_no_request_is_refused_and_the_connection_ends(server, sent):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        answered = b""
        with contextlib.suppress(ConnectionError):  # what is beyond the limit is never read
            connection.sendall(sent)
            while part := connection.recv(65536):
                answered += part
    assert answered[:13] in (b"HTTP/1.1 400 ", b"" if len(sent) > 2**17 else None)


@pytest.mark.parametrize(("method", "status"), [("GET", b"200"), ("POST", b"405")])
def test_an_answer_does_not_wait_for_the_body_of_a_request(server, method, status):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(f"{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {10**12}\r\n\r\nx".encode())
        assert connection.recv(12) == b"HTTP/1.1 " + status


def test_a_browser_that_goes_away_is_no_error(server, send, capfd):
    for sent in (b"GET /api/run HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, b"GET /api/run HT", b""):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(sent)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends it at once
    assert send("/api/run")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_name_that_is_not_this_machine_s_own_is_refused(send, server):
    for other in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example"):
        assert [send(target, host=other)[0] for target in ("/", "/api/run", "/nothing")] == [400] * 3
    for own in ("localhost", f"LOCALHOST:{server.port}", f"127.0.0.1:{server.port}", "[::1]:80"):
        assert send("/", host=own)[0] == 200


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.2"])  # noqa: S104
def test_at_every_address_the_page_opens_by_address_and_host_name_and_not_by_another_name(run, address):
    with served(run, address) as server:
        own = [f"{address}:{server.port}", "192.0.2.7", "[2001:db8::7]:8642", socket.gethostname().upper(), "localhost"]
        others = ["evil.example", "127.0.0.1.evil.example:80", "2130706433", ""]
        for host, status in {**dict.fromkeys(own, 200), **dict.fromkeys(others, 400)}.items():
            with contextlib.closing(HTTPConnection("127.0.0.2", server.port, timeout=60)) as connection:
                connection.request("GET", "/api/run", headers={"Host": host})
                assert (host, connection.getresponse().status) == (host, status)


def test_no_answer_lets_another_origin_read_it_or_show_it(send):
    for target in ("/", "/api/run", "/nothing"):
        _, headers, _ = send(target)
        assert "Access-Control-Allow-Origin" not in headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    policy = send("/")[1]["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "targets",
    [
        [nearest(paper=paper, k=100) for paper in range(1, 8)],
        ["/api/relations?paper=1&others=2,3,4,5,6", "/api/relations?paper=2&others=1,3", "/api/papers?words=bees"],
    ],
)
def test_fifty_requests_at_once_are_all_answered_rightly(send, targets):
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(send, (targets * 50)[:50]))
    alone = [send(target) for target in targets]
    assert [(status, content) for status, _, content in answers] == [(200, found) for *_, found in alone * 50][:50]
    assert all(json.loads(content) for *_, content in alone)


def test_the_words_of_a_suggestion_are_no_commands_of_the_search(send):
    for words in ('"', "a AND (", "title:bees", "bees* OR", "NEAR(", "'; DROP TABLE papers; --", "-bees", "^bees"):
        status, _, content = send(f"/api/papers?{urlencode({'words': words})}")
        assert status == 200
        assert all("bees" in found["title"].lower() for found in json.loads(content))
    found = json.loads(send(f"/api/papers?{urlencode({'words': 'loops OR'})}")[2])
    assert [each["title"] for each in found] == ['Loops "OR" compilers']


def test_an_error_says_nothing_of_the_machine_s_folders(send, results, capsys):
    broken = results / "corpus/citations/0.parquet"
    held = broken.read_bytes()
    try:
        broken.write_bytes(held[: len(held) // 2])
        status, _, content = send("/api/relations?paper=1&others=2")
    finally:
        broken.write_bytes(held)
    assert status == 500
    assert json.loads(content)["error"] == "This could not be answered; the terminal of `cocite serve` says why."
    assert "names what is broken" in capsys.readouterr().err


def test_nothing_is_written_to_the_results_by_any_request(send, results):
    before = states(results)
    for path, good in PARAMETERS.items():
        for method in ("GET", "POST", "PUT", "DELETE"):
            send(f"{path}?{urlencode(good)}", method, b"x" if method != "GET" else None)
    for target in ("/", "/api/run", nearest(text="bees")):
        send(target)
    assert states(results) == before
