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
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import version
from inspect import Parameter, signature
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from pydantic import TypeAdapter
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
from cocite.tools import run_answers
from cocite.tools.finished_run import MissingError, Run, WrongRequestError

ANSWERS: Mapping[str, Callable[..., Any]] = {
    "/api/run": run_answers.described,
    "/api/papers": run_answers.suggested,
    "/api/paper": run_answers.record,
    "/api/nearest": run_answers.nearest,
    "/api/relations": run_answers.related,
    "/api/links": run_answers.linked,
    "/api/citing": run_answers.citing,
    "/api/cited": run_answers.cited,
    "/api/map": run_answers.mapped,
    "/api/export": run_answers.exported,
}
"""Path → the function that answers there, given the run; its other parameters are those of the request."""
MEDIA_TYPES = {"bibtex": "application/x-bibtex", "ris": "application/x-research-info-systems", "csv": "text/csv"}
FAULTS = {400: "A request that cannot be answered as it is.", 404: "Something that the run does not have."}
TEMPLATES = Path(__file__).parents[2] / "report"
"""The templates of pages; this one looks like the report."""
AT_ONCE = 4
"""Requests that are processed at once; the others wait."""
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
HEADERS |= {"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store"}
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
        h11_max_incomplete_event_size=1 << 17,  # The longest text has 72,000 bytes, nine for each character.
        limit_concurrency=64,  # Most of the files that a process may open are left to the tables.
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def _page() -> tuple[str, str]:
    """The page from its templates, and its Content-Security-Policy: only its style and script, and only this server."""
    scripts = ["scripts/map-view.js", "search/map.js", "search/graph.js", "search/search.js"]
    parts = (["search/page.html"], ["style.css", "search/style.css"], scripts)
    template, style, script = ("".join((TEMPLATES / of).read_text(encoding="utf-8") for of in part) for part in parts)
    style_hash, script_hash = (b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (style, script))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; connect-src 'self'; "
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
        case WrongRequestError():
            status, sentence = 400, str(error)
        case MissingError():
            status, sentence = 404, str(error)
        case _:
            report(f"{type(error).__name__} at {request.scope['path'][:200]!r}: {error}")
            status, sentence = 500, "This could not be answered; the terminal of `cocite serve` says why."
    return JSONResponse({"error": sentence}, status, {**NOTHING, **(headers or {})})


@cache
def parameters_of(path: str) -> dict[str, Parameter]:
    """The parameters of the request to a path, by name."""
    return dict([*signature(ANSWERS[path]).parameters.items()][1:])


@cache
def _schemas(path: str) -> dict[str, dict[str, Any]]:
    """The JSON schema of each parameter, without null."""
    schemas = {name: TypeAdapter(each.annotation).json_schema() for name, each in parameters_of(path).items()}
    return {name: schema["anyOf"][0] if "anyOf" in schema else schema for name, schema in schemas.items()}


def values_of(path: str, query: bytes) -> dict[str, Any]:
    """The values of a request's parameters. Raises `WrongRequestError` if they are not as declared."""
    parameters = parameters_of(path)
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
        values[name] = _read(name, value, _schemas(path)[name])
    for name, parameter in parameters.items():
        if name not in values and parameter.default is Parameter.empty:
            raise WrongRequestError(f"{path} needs the parameter {name}.")
    return values


def _read(name: str, value: str, schema: Mapping[str, Any]) -> Any:
    if schema["type"] == "array":
        parts = value.split(",", schema["maxItems"])
        if len(parts) > schema["maxItems"]:
            raise WrongRequestError(f"{name} may name {schema['maxItems']} papers at most.")
        return [_read(name, part, schema["items"]) for part in parts]
    if schema["type"] == "integer":
        least, most = schema["minimum"], schema["maximum"]
        if not re.fullmatch("[0-9]{1,19}", value) or not least <= int(value) <= most:
            kind = f"{schema['title']}, " if "title" in schema else ""
            number = f"{kind}a whole number from {least:,} to {most:,}"
            raise WrongRequestError(f"{name} must be {number}, and is {value!r:.80}.")
        return int(value)
    if value not in schema.get("enum", [value]):
        raise WrongRequestError(f"{name} is {value!r:.80}; it can be {', '.join(schema['enum'])}.")
    if len(value) > schema.get("maxLength", len(value)):
        raise WrongRequestError(f"{name} has {len(value):,} characters, and may have {schema['maxLength']:,} at most.")
    if schema.get("minLength") and not value.strip():
        raise WrongRequestError(f"There is nothing to search for: {name} is empty.")
    if not re.fullmatch(schema.get("pattern", "(?s:.*)"), value):
        raise WrongRequestError(f"{name} is {value!r:.80}; it can be {schema['description'].removeprefix('such as ')}.")
    return value


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document of the answers."""
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    schemas: dict[str, Any] = {"Error": error}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CoCite",
            "version": version("cocite"),
            "description": "Searches of a finished run. Corpus ids are texts in answers: they have up to 63 bits.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {path: {"get": _operation(path, schemas)} for path in ANSWERS},
        "components": {"schemas": schemas},
    }


def _operation(path: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """The description of a path; the types of its answer are added to the schemas."""
    function = ANSWERS[path]
    summary, _, more = run_answers.explained(function).partition("\n\n")
    parameters = [
        {
            "name": name,
            "in": "query",
            "required": parameters_of(path)[name].default is Parameter.empty,
            "schema": schema,
            **({"style": "form", "explode": False} if schema["type"] == "array" else {}),
        }
        for name, schema in _schemas(path).items()
    ]
    answer = TypeAdapter(signature(function).return_annotation).json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(answer.pop("$defs", {}))
    types = MEDIA_TYPES.values() if path == "/api/export" else ["application/json"]
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "operationId": function.__name__,
        "summary": summary,
        "description": more,
        "parameters": parameters,
        "responses": {
            "200": {"description": "The answer.", "content": {each: {"schema": answer} for each in types}},
            **{str(status): {"description": text, "content": error} for status, text in FAULTS.items()},
        },
    }
