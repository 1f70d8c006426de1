"""The answers over HTTP as the signatures of their functions declare them: readers of requests, and OpenAPI."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from inspect import Parameter, getdoc, signature
from typing import Any
from urllib.parse import parse_qsl

from pydantic import TypeAdapter

from cocite.tools import run_answers
from cocite.tools.finished_run import WrongRequestError

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


def explained(function: Callable[..., Any]) -> str:
    """What a function answers, in paragraphs of one line."""
    paragraphs = str(getdoc(function)).partition("Raises")[0].split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs).strip()


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document of the answers."""
    schemas: dict[str, Any] = {
        "Error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    }
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
    summary, _, more = explained(function).partition("\n\n")
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
