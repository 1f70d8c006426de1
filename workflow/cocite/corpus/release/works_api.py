"""OpenAlex's API: the works that match a query, page by page, for the user's key.

The API takes the key as a parameter of the URL. So no message has a URL with parameters, what the API says is quoted
without the key, and a redirect is followed only on the same host, and with our own parameters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from pydantic import BaseModel, NonNegativeInt, ValidationError

from cocite.core.errors import LONGEST_REASON, InputError
from cocite.corpus.release.client import first_fault, is_doubtful, is_json
from cocite.corpus.release.retry import LONGEST_WAIT, ask, host_of, seconds_asked
from cocite.corpus.sources.openalex import KEY

PER_PAGE = 100
"""The most works on a page, and the most values of a filter that are joined by `|`."""
FIRST = "*"
"""The cursor of the first page."""
REDIRECTS = 5
A_DAY = 24 * 3600
CHEAPEST = 0.0001
"""Price of a call that lists works, in dollars."""
USED_UP = re.compile(r"budget|allowance|credit|daily|\b(a|per) day\b", re.IGNORECASE)
"""What a message on the allowance of a day has, and one on the requests of a second has not."""
OF_PAGES = re.compile("cursor|paginat", re.IGNORECASE)

Parameters = Mapping[str, str]
Work = dict[str, Any]


class LapsedCursorError(InputError):
    """The API no longer takes the cursor of a page."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """Works that match a query, some of all."""

    works: list[Work]
    count: int
    """All works that match."""
    cursor: str | None
    """That of the next page; None after the last one."""


class _Meta(BaseModel):
    count: NonNegativeInt
    next_cursor: str | None = None


class _Answer(BaseModel):
    meta: _Meta
    results: list[Work]


class WorksApi:
    """The API at a base URL such as https://api.openalex.org."""

    def __init__(self, base_url: str) -> None:
        """Read the key. Raises `InputError` without one."""
        self._url = f"{base_url.rstrip('/')}/works"
        self._host = host_of(base_url)
        self._key = KEY.read()
        self._session = requests.Session()
        self.calls = 0
        """Answers so far that count against the allowance of a day."""

    def count(self, parameters: Parameters) -> int:
        """How many works match."""
        return self.page({**parameters, "select": "id", "per_page": "1"}).count

    def page(self, parameters: Parameters, cursor: str | None = None, received: int = 0) -> Page:
        """A page of the works that match, after so many that were received; without a cursor the only one.

        Raises `LapsedCursorError`, and `InputError` for a refused key or query, and if the day's allowance is used up.
        """
        sent = {"per_page": str(PER_PAGE), **parameters} | ({} if cursor is None else {"cursor": cursor})
        answer = self._ask(sent, received)
        self.calls += 1
        following = answer.meta.next_cursor if cursor is not None and answer.results else None
        return Page(works=answer.results, count=answer.meta.count, cursor=following)

    def _ask(self, sent: Parameters, received: int) -> _Answer:
        response = self._follow(sent, received)
        if not response.ok:
            raise self._refusal(response, sent.get("cursor", FIRST))
        if not is_json(response):
            raise InputError(f"{self._url} does not answer with JSON; is corpus.api the base URL of the API?")
        try:
            return _Answer.model_validate(response.json())
        except ValidationError as error:
            raise InputError(
                f"{self._host} answers with other JSON than expected ({first_fault(error)}); is corpus.api the base "
                "URL of the API?"
            ) from None

    def _follow(self, sent: Parameters, received: int) -> requests.Response:
        """The answer, after redirects on the same host."""
        url = self._url
        for _ in range(REDIRECTS):
            response = ask(
                self._session,
                url,
                is_doubtful=lambda response: is_doubtful(response) or _ends_early(response, received),
                is_final=_is_used_up,
                params={**sent, KEY.name: self._key},
                allow_redirects=False,
            )
            if not response.is_redirect:
                return response
            target = urlsplit(urljoin(url, response.headers["Location"]))._replace(query="", fragment="").geturl()
            if urlsplit(target)[:2] != urlsplit(url)[:2]:
                break
            url = target
        raise InputError(f"{self._url} redirects to {target}; set corpus.api to the base URL of the API.")

    def _refusal(self, response: requests.Response, cursor: str) -> InputError:
        """The error for an answer without works."""
        status, said = response.status_code, _message(response).replace(self._key, "…")[:LONGEST_REASON]
        quoted = f"status {status}: {said}" if said else f"status {status}"
        if _is_used_up(response):
            return InputError(
                f"The day's allowance of the key in {KEY.variable} is used up after {self.calls} calls of this run "
                f"({quoted}); run again after midnight UTC, and it resumes from there."
            )
        if status == 401:
            return InputError(
                f"{self._host} refuses the key in {KEY.variable} ({quoted}): check that it is complete and still "
                f"valid; keys are given at {KEY.page}."
            )
        if cursor != FIRST and (status in (400, 404, 410) or (status == 403 and OF_PAGES.search(said))):
            return LapsedCursorError(f"{self._host} no longer takes the cursor of a page ({quoted}).")
        if status in (400, 403):
            return InputError(
                f"{self._host} refuses the query ({quoted}); correct corpus.filter or corpus.search, or run again "
                "later if that is not the reason."
            )
        return InputError(f"{self._url} answers with {quoted}; is corpus.api the base URL of the API?")


def _message(response: requests.Response) -> str:
    """What the API says of an error, in one line."""
    content = response.json() if is_json(response) else None
    said = [content.get(key) for key in ("error", "message")] if isinstance(content, dict) else []
    return " ".join(": ".join(text for text in said if isinstance(text, str)).split())


def _ends_early(response: requests.Response, received: int) -> bool:
    """Whether a page is empty although more works match than were received: seldom, they have vanished since."""
    try:
        answer = _Answer.model_validate(response.json())
    except (requests.JSONDecodeError, ValidationError):
        return False
    return response.ok and not answer.results and received < answer.meta.count


def _is_used_up(response: requests.Response) -> bool:
    """Whether the allowance of the day is used up, rather than that of a second."""
    if response.status_code not in (402, 403, 429):
        return False
    left, price = (
        _number(response, f"X-RateLimit-{name}", default)
        for name, default in (("Remaining-USD", A_DAY), ("Cost-Required-USD", CHEAPEST))
    )
    return left < price or seconds_asked(response, A_DAY) > LONGEST_WAIT or bool(USED_UP.search(_message(response)))


def _number(response: requests.Response, header: str, default: float) -> float:
    try:
        return float(response.headers.get(header, default))
    except ValueError:
        return default
