"""What may be asked: the routes, and the parameters of each with the values that they can have.

A request names nothing but a route, numbers, and texts that are looked up among names. No part of it ever becomes a
path of a file.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cocite.core.errors import InputError
from cocite.core.written_ids import LARGEST_ID, is_id
from cocite.tools.serving.finished import Run, described, nearest, points, record, related, suggested

LARGEST_K = 100
LONGEST_TEXT = 8000
"""Characters of a text that is searched for: more than any abstract has, and no encoder reads more of it."""
LONGEST_NAME = 200
SUGGESTIONS = 8
USUAL_K = 10


class RefusedError(InputError):
    """A request that is not answered, with the status that says why."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def _bad(sentence: str) -> RefusedError:
    return RefusedError(HTTPStatus.BAD_REQUEST, sentence)


@dataclass(frozen=True)
class Route:
    """What is answered at a path."""

    answer: Callable[..., Any]
    """Takes the run and the parameters by name."""
    parameters: Mapping[str, Callable[[str, str], Any]]
    """Reads the value of each parameter, given its name and its text."""
    needed: Sequence[str]


def _text(name: str, value: str) -> str:
    if len(value) > LONGEST_TEXT:
        raise _bad(f"{name} has {len(value):,} characters, and may have {LONGEST_TEXT:,} at most.")
    if not value.strip():
        raise _bad(f"There is nothing to search for: {name} is empty.")
    return value


def _name(name: str, value: str) -> str:
    if len(value) > LONGEST_NAME:
        raise _bad(f"{name} has {len(value):,} characters, and may have {LONGEST_NAME} at most.")
    return value


def _paper(name: str, value: str) -> int:
    if not is_id(value):
        raise _bad(f"{name} must be a corpus id, a whole number from 0 to {LARGEST_ID:,}, and is {value!r:.80}.")
    return int(value)


def _papers(name: str, value: str) -> list[int]:
    papers = [_paper(name, each) for each in value.split(",", LARGEST_K)]
    if len(papers) > LARGEST_K:
        raise _bad(f"{name} may name {LARGEST_K} papers at most.")
    return papers


def _count(name: str, value: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= LARGEST_K:
        raise _bad(f"{name} must be a whole number from 1 to {LARGEST_K}, and is {value!r:.80}.")
    return int(value)


def _nearest(
    run: Run, *, model: str, paper: int | None = None, text: str | None = None, k: int = USUAL_K
) -> list[dict[str, Any]]:
    if (paper is None) == (text is None):
        raise _bad("A search is for a paper or for a text: give one of the two.")
    return nearest(run, model, k, paper=paper, text=text or "")


ROUTES = {
    "/api/run": Route(described, {}, ()),
    "/api/papers": Route(lambda run, words: suggested(run, words, SUGGESTIONS), {"words": _name}, ("words",)),
    "/api/paper": Route(record, {"paper": _paper}, ("paper",)),
    "/api/nearest": Route(_nearest, {"model": _name, "paper": _paper, "text": _text, "k": _count}, ("model",)),
    "/api/relations": Route(related, {"paper": _paper, "others": _papers}, ("paper", "others")),
    "/api/points": Route(points, {"name": _name, "model": _name}, ("name", "model")),
}


def path_in(target: str) -> str:
    """The path of what a request asks for, as it stands there. Raises `RefusedError` where there is none."""
    try:
        return urlsplit(target).path
    except ValueError:
        raise _bad("The request has no address that can be read.") from None


def answer(run: Run, target: str) -> Any:
    """The answer to what a request asks for, a path with its parameters, as plain values of JSON.

    Raises `RefusedError` where there is no such path, or a parameter is wrong, and `MissingError` where the run lacks
    what is named.
    """
    path = path_in(target)
    if path not in ROUTES:
        raise RefusedError(
            HTTPStatus.NOT_FOUND, f"There is nothing at this address; there are / and {', '.join(ROUTES)}."
        )
    route = ROUTES[path]
    return route.answer(run, **_values(path, route, _pairs(urlsplit(target).query)))


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=16)
    except ValueError:
        raise _bad("The parameters cannot be read: there are too many, or they are not UTF-8.") from None


def _values(path: str, route: Route, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name not in route.parameters:
            takes = ", ".join(route.parameters) or "none"
            raise _bad(f"{path} has no parameter {name!r:.80}; those that it takes: {takes}.")
        if name in values:
            raise _bad(f"The parameter {name} is given twice.")
        values[name] = route.parameters[name](name, value)
    for name in route.needed:
        if name not in values:
            raise _bad(f"{path} needs the parameter {name}.")
    return values
