"""The server: Python's own, on this machine alone unless it is told otherwise. It answers GET and writes nothing.

A page of a stranger, open in the same browser, cannot read what is served here: no answer allows another origin, and a
request under a name that is not this machine's own is refused (DNS rebinding).
"""

import errno
import io
import ipaddress
import json
import re
import resource
import socket
import socketserver
import sys
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.tools.serving.finished import MissingError, Run
from cocite.tools.serving.page import read_page
from cocite.tools.serving.requests import RefusedError, answer, path_in

AT_ONCE = 4
"""Requests that are worked on at once; the others wait."""
CONNECTIONS = 64
"""Connections that are open at once; others wait until one of them ends."""
SECONDS_TO_ASK = 10
"""Time for the whole head of a request, from the answer before it or the opening of the connection on."""
SECONDS_TO_READ = 30
"""Time for a client to take an answer."""
JSON = "application/json; charset=utf-8"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
UNREADABLE = {
    HTTPStatus.REQUEST_URI_TOO_LONG: "The address is too long; it may have 65,536 characters at most.",
    HTTPStatus.NOT_IMPLEMENTED: "There is no such method; only GET is answered.",
}
"""What is said of requests that cannot be read as far as their parameters."""


class Server(ThreadingHTTPServer):
    """A run, served at a host and a port."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_port = False
    is_full = False
    """Whether a connection had to wait; then each ends with its next answer."""

    def __init__(self, run: Run, host: str, port: int) -> None:
        """Raises `InputError` where the port is taken, or the host is no address of this machine."""
        self.run, self.page = run, read_page()
        self.turns = BoundedSemaphore(AT_ONCE)
        # Most of the files that the system lets a process open are left to the tables.
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.places = BoundedSemaphore(max(1, min(CONNECTIONS, files // 4)))
        self.names = {"localhost", host.lower(), socket.gethostname().lower()}
        self.address_family, address = _address(host, port)
        self.is_loopback = ipaddress.ip_address(address[0]).is_loopback
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            raise InputError(_why_not(host, port, error)) from None

    def server_bind(self) -> None:
        """Bind without asking the network for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection, or wait until there is a place for it."""
        self.is_full = not self.places.acquire(blocking=False)
        if self.is_full:
            self.places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection, and give its place to another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def is_called(self, host: str) -> bool:
        """Whether the header Host has a name of this machine, or an address, which no DNS can point elsewhere."""
        name = re.sub(r":\d*$", "", host).lower()
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return name in self.names
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone away."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where the page is."""
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"


def _address(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise InputError(f"--host {host} is no address; name one of this machine's, such as 127.0.0.1.") from None
    return family, address


def _why_not(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} of {host} is taken by another program; name another with --port."
        case errno.EACCES:
            return f"Port {port} of {host} is not this user's to open; name one from 1024 on with --port."
        case _:
            return f"Nothing can be served at --host {host} ({error.strerror}); name an address of this machine."


class _Reader(io.RawIOBase):
    """The bytes that a client sends, until a time; a limit for each byte would let a slow one stay for ever."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self.connection, self.until = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.connection.settimeout(max(0.001, self.until - time.monotonic()))
        size = self.connection.recv_into(buffer)
        self.connection.settimeout(SECONDS_TO_READ)
        return size


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection after the other's request."""

    server: Server
    protocol_version = "HTTP/1.1"
    # With the head in a packet of its own, the content would wait 40 ms for the browser to acknowledge it.
    wbufsize, disable_nagle_algorithm = 1 << 16, True
    server_version, sys_version = "CoCite", ""

    def setup(self) -> None:
        """Read through `_Reader`."""
        super().setup()
        self.reader = _Reader(self.connection)
        self.rfile = io.BufferedReader(self.reader)

    def handle_one_request(self) -> None:
        """Answer a request whose head comes in time; otherwise the base class ends the connection."""
        self.reader.until = time.monotonic() + SECONDS_TO_ASK
        super().handle_one_request()

    def do_GET(self) -> None:
        # What follows the head of a request would be read as the next one.
        self.close_connection |= "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        self.close_connection |= self.server.is_full
        try:
            self._check_host()
            if path_in(self.path) == "/":
                page = self.server.page
                self._send(HTTPStatus.OK, page.content, "text/html; charset=utf-8", page.policy)
                return
            with self.server.turns:
                found = answer(self.server.run, self.path)
            self._send_json(HTTPStatus.OK, found)
        except RefusedError as refused:
            self._send_error(refused.status, str(refused))
        except MissingError as missing:
            self._send_error(HTTPStatus.NOT_FOUND, str(missing))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            report(f"{type(error).__name__} at {self.path[:200]!r}: {error}")
            sentence = "This could not be answered; the terminal of `cocite serve` says why."
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)

    def _refuse_method(self) -> None:
        self.close_connection = True
        self._send_error(HTTPStatus.METHOD_NOT_ALLOWED, f"{self.command} is not answered; only GET is.")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse_method  # noqa: N815

    def _check_host(self) -> None:
        if not self.server.is_called(self.headers.get("Host", "")):
            sentence = f"This server is not called that; open {self.server.url}, or give its name as --host."
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, sentence)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what could not be read as a request; called by the base class."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send_error(status, UNREADABLE.get(status, "This is no request that can be read."))

    def _send_error(self, status: HTTPStatus, sentence: str) -> None:
        self._send_json(status, {"error": sentence})

    def _send_json(self, status: HTTPStatus, content: Any) -> None:
        self._send(status, json.dumps(content, ensure_ascii=False).encode(), JSON)

    def _send(self, status: HTTPStatus, content: bytes, kind: str, policy: str = "default-src 'none'") -> None:
        self.send_response(status)
        own = {"Content-Type": kind, "Content-Length": str(len(content)), "Content-Security-Policy": policy}
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            own["Allow"] = "GET"
        if self.close_connection:
            own["Connection"] = "close"
        for name, value in {**own, **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing of requests that were answered: what people search for is theirs."""
