"""The page and its answers over HTTP, for this machine only unless --host names another address; nothing is written.

A page of a stranger, open in the same browser, cannot read the answers: none allows another origin, and a request under
a name that is not this machine's own is refused (DNS rebinding). A request consists of a route, numbers, and texts that
are looked up among names. No part of it ever becomes a path of a file.
"""

import errno
import hashlib
import ipaddress
import os
import re
import socket
from asyncio import Semaphore
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.written_ids import LARGEST_ID, is_id
from cocite.tools import finished_run
from cocite.tools.finished_run import MissingError, Run, WrongRequestError

TEMPLATES = Path(__file__).parents[2] / "report"
"""The templates of pages; this one looks like the report."""
AT_ONCE = 4
"""Requests that are processed at once; the others wait."""
CONNECTIONS = 64
"""Connections that are open at once, so that most of the files that a process may open are left to the tables."""
LONGEST_HEAD = 1 << 17
"""Bytes of an address with its parameters: the longest text has 72,000 if each character is written as nine bytes."""
LARGEST_K = 100
LONGEST_TEXT = 8000
"""Characters of a text that is searched for: more than any abstract has, and no encoder reads more of it."""
LONGEST_NAME = 200
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ANSWERS: Mapping[str, Callable[..., Any]] = {
    "/api/run": finished_run.described,
    "/api/papers": finished_run.suggested,
    "/api/paper": finished_run.record,
    "/api/nearest": finished_run.nearest,
    "/api/relations": finished_run.related,
    "/api/points": finished_run.points,
}
"""Path → the function that answers there, given the run; its other parameters are those of the request."""


class _TrustedHosts(TrustedHostMiddleware):
    """Refuses names that are not this machine's own; an address passes, as no DNS can point it elsewhere."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = re.sub(r":\d*$", "", Headers(scope=scope).get("host", ""))
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def application(run: Run, host: str) -> Starlette:
    """The page of a run and the answers to its script; `host` is a further name of this machine."""
    content, policy = _page()
    turns = Semaphore(AT_ONCE)

    async def page(request: Request) -> Response:
        return HTMLResponse(content, headers={"Content-Security-Policy": policy})

    async def answer(path: str, request: Request) -> Response:
        values = _values(path, request)
        async with turns:
            return _json(await run_in_threadpool(ANSWERS[path], run, **values))

    app = Starlette(
        routes=[Route("/", page), *(Route(path, partial(answer, path)) for path in ANSWERS)],
        middleware=[Middleware(_TrustedHosts, ["localhost", host, socket.gethostname()], www_redirect=False)],
        exception_handlers=dict.fromkeys((HTTPException, InputError, Exception), _refused),
    )
    app.router.redirect_slashes = False
    return app


def listen(host: str, port: int) -> socket.socket:
    """A socket at a host and a port. Raises `InputError` if the port is taken, or the host is not this machine's."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise InputError(f"--host {host} is no address; name one of this machine's, such as 127.0.0.1.") from None
    try:
        listening = socket.create_server(address, family=family)
    except OSError as error:
        match error.errno:
            case errno.EADDRINUSE:
                reason = f"Port {port} of {host} is taken by another program; name another with --port."
            case errno.EACCES:
                reason = f"Port {port} of {host} is not this user's to open; name one from 1024 on with --port."
            case number:
                said = os.strerror(number or 0)
                reason = f"Nothing can be served at --host {host} ({said}); name an address of this machine."
        raise InputError(reason) from None
    # Otherwise the content of an answer, which follows its head, would wait 40 ms for the browser to acknowledge that.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def url_of(listening: socket.socket) -> str:
    """The address of the page."""
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def server(run: Run, host: str) -> uvicorn.Server:
    """A server of a run, to be run with a socket; `host` is the name by which that was opened."""
    config = uvicorn.Config(
        application(run, host),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # What people search for is theirs.
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[*HEADERS.items()],
        h11_max_incomplete_event_size=LONGEST_HEAD,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def _page() -> tuple[str, str]:
    """The page from its templates, and its Content-Security-Policy: only its style and script, and only this server."""
    template, style, script = (
        "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)
        for names in (["search/page.html"], ["style.css", "search/style.css"], ["search/map.js", "search/search.js"])
    )
    style_hash, script_hash = (
        f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (style, script)
    )
    policy = (
        f"default-src 'none'; style-src {style_hash}; script-src {script_hash}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Template(template).substitute(style=style, script=script), policy


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(content, status, {"Content-Security-Policy": "default-src 'none'", **(headers or {})})


def _refused(request: Request, error: Exception) -> Response:
    """An error as a status and a sentence; one that is not the request's fault is reported on the terminal."""
    headers = error.headers if isinstance(error, HTTPException) else None
    match error:
        case HTTPException(status_code=405):
            status, sentence = 405, f"{request.method} is not answered; only GET is."
        case HTTPException():
            status, sentence = 404, f"There is nothing at this address; there are / and {', '.join(ANSWERS)}."
        case WrongRequestError():
            status, sentence = 400, str(error)
        case MissingError():
            status, sentence = 404, str(error)
        case _:
            report(f"{type(error).__name__} at {request.scope['path'][:200]!r}: {error}")
            status, sentence = 500, "This could not be answered; the terminal of `cocite serve` says why."
    return _json({"error": sentence}, status, headers)


def _values(path: str, request: Request) -> dict[str, Any]:
    parameters = dict([*signature(ANSWERS[path]).parameters.items()][1:])
    query = request.scope["query_string"]
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=16)
    except ValueError:
        raise WrongRequestError("The parameters cannot be read: there are too many, or they are not UTF-8.") from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name not in parameters:
            takes = ", ".join(parameters) or "none"
            raise WrongRequestError(f"{path} has no parameter {name!r:.80}; those that it takes: {takes}.")
        if name in values:
            raise WrongRequestError(f"The parameter {name} is given twice.")
        values[name] = READERS[name](name, value)
    for name, parameter in parameters.items():
        if name not in values and parameter.default is Parameter.empty:
            raise WrongRequestError(f"{path} needs the parameter {name}.")
    return values


def _name(name: str, value: str, longest: int = LONGEST_NAME) -> str:
    if len(value) > longest:
        raise WrongRequestError(f"{name} has {len(value):,} characters, and may have {longest:,} at most.")
    return value


def _text(name: str, value: str) -> str:
    if not _name(name, value, LONGEST_TEXT).strip():
        raise WrongRequestError(f"There is nothing to search for: {name} is empty.")
    return value


def _paper(name: str, value: str) -> int:
    if not is_id(value):
        raise WrongRequestError(
            f"{name} must be a corpus id, a whole number from 0 to {LARGEST_ID:,}, and is {value!r:.80}."
        )
    return int(value)


def _papers(name: str, value: str) -> list[int]:
    papers = [_paper(name, each) for each in value.split(",", LARGEST_K)]
    if len(papers) > LARGEST_K:
        raise WrongRequestError(f"{name} may name {LARGEST_K} papers at most.")
    return papers


def _count(name: str, value: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= LARGEST_K:
        raise WrongRequestError(f"{name} must be a whole number from 1 to {LARGEST_K}, and is {value!r:.80}.")
    return int(value)


READERS: Mapping[str, Callable[[str, str], Any]] = {
    "words": _name,
    "name": _name,
    "model": _name,
    "known": _name,
    "text": _text,
    "paper": _paper,
    "others": _papers,
    "k": _count,
}
"""Parameter → the reader of its value, given its name and its text."""
