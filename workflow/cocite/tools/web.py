"""The page and its answers over HTTP, for this machine only unless --host names another address; nothing is written.

A page of a stranger, open in the same browser, cannot read the answers: none allows another origin, and a request under
a name that is not this machine's own is refused (DNS rebinding). No part of a request ever becomes a path of a file.
"""

import errno
import hashlib
import ipaddress
import os
import re
import socket
from asyncio import Semaphore
from base64 import b64encode
from functools import partial
from pathlib import Path
from string import Template

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
from cocite.tools.finished_run import MissingError, Run, WrongRequestError
from cocite.tools.http_api import ANSWERS, MEDIA_TYPES, document, values_of

TEMPLATES = Path(__file__).parents[2] / "report"
"""The templates of pages; this one looks like the report."""
AT_ONCE = 4
"""Requests that are processed at once; the others wait."""
CONNECTIONS = 64
"""Connections that are open at once, so that most of the files that a process may open are left to the tables."""
LONGEST_HEAD = 1 << 17
"""Bytes of an address with its parameters: the longest text has 72,000 if each character is written as nine bytes."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NOTHING = {"Content-Security-Policy": "default-src 'none'"}
"""The header of an answer that is no page."""


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
    turns, map_turns = Semaphore(AT_ONCE), Semaphore(AT_ONCE)  # Searches do not wait for a map that is made.

    async def page(request: Request) -> Response:
        return HTMLResponse(content, headers={"Content-Security-Policy": policy})

    async def answer(path: str, request: Request) -> Response:
        values = values_of(path, request.scope["query_string"])
        async with map_turns if path == "/api/map" else turns:
            content = await run_in_threadpool(ANSWERS[path], run, **values)
        if not isinstance(content, str):
            return JSONResponse(content, headers=NOTHING)
        name = f"attachment; filename=papers.{'bib' if values['form'] == 'bibtex' else values['form']}"
        headers = {"Content-Disposition": name, **NOTHING}
        return Response(content, media_type=MEDIA_TYPES[values["form"]], headers=headers)

    async def api(request: Request) -> Response:
        return JSONResponse(document(), headers=NOTHING)

    app = Starlette(
        routes=[Route("/", page), Route("/api", api), *(Route(path, partial(answer, path)) for path in ANSWERS)],
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
        said = os.strerror(error.errno or 0)
        reasons = {
            errno.EADDRINUSE: f"Port {port} of {host} is taken by another program; name another with --port.",
            errno.EACCES: f"Port {port} of {host} is not this user's to open; name one from 1024 on with --port.",
        }
        other = f"Nothing can be served at --host {host} ({said}); name an address of this machine."
        raise InputError(reasons.get(error.errno or 0, other)) from None
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
    scripts = ["scripts/map-view.js", "search/map.js", "search/graph.js", "search/search.js"]
    template, style, script = (
        "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)
        for names in (["search/page.html"], ["style.css", "search/style.css"], scripts)
    )
    style_hash, script_hash = (
        f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (style, script)
    )
    policy = (
        f"default-src 'none'; style-src {style_hash}; script-src {script_hash}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Template(template).substitute(style=style, script=script), policy


def _refused(request: Request, error: Exception) -> Response:
    """An error as a status and a sentence; one that is not the request's fault is reported on the terminal."""
    headers = error.headers if isinstance(error, HTTPException) else None
    match error:
        case HTTPException(status_code=405):
            status, sentence = 405, f"{request.method} is not answered; only GET is."
        case HTTPException():
            status, sentence = 404, "There is nothing at this address; there are / and /api, which lists the others."
        case WrongRequestError() | MissingError():
            status, sentence = 400 if isinstance(error, WrongRequestError) else 404, str(error)
        case _:
            report(f"{type(error).__name__} at {request.scope['path'][:200]!r}: {error}")
            status, sentence = 500, "This could not be answered; the terminal of `cocite serve` says why."
    return JSONResponse({"error": sentence}, status, {**NOTHING, **(headers or {})})
