"""OpenAlex's API: the works that match a query, page by page, for the user's key.

The API takes the key as a parameter of the URL. So no message has a URL with parameters, what the API says is quoted
without the key, and no redirect is followed.
"""

import json
import re
from functools import lru_cache
from typing import Any

import requests
from pydantic import BaseModel, NonNegativeInt, ValidationError

from cocite.config.source import OPENALEX_KEY
from cocite.core.errors import InputError
from cocite.corpus.release.client import first_fault
from cocite.corpus.release.query import FIRST, LapsedCursorError, Page, Parameters, Work
from cocite.corpus.release.retry import LONGEST_WAIT, ask, host_of, said_by, status_of

PER_PAGE = 100
"""The most works on a page, and the most values of a filter that are joined by `|`."""
USED_UP = re.compile(r"budget|allowance|credit|daily|\b(a|per) day\b", re.IGNORECASE)
"""What a message on the allowance of a day has, and one on the requests of a second has not."""
OF_PAGES = re.compile("cursor|paginat", re.IGNORECASE)


class _Meta(BaseModel):
    count: NonNegativeInt
    next_cursor: str | None = None


class _Answer(BaseModel):
    meta: _Meta
    results: list[Work]


class WorksApi:
    """The API at a base URL such as https://api.openalex.org."""

    def __init__(self, base_url: str, entity: str = "works") -> None:
        """Read the key. Raises `InputError` without one. `entity` may be other records, such as topics."""
        self._url, self._host = f"{base_url.rstrip('/')}/{entity}", host_of(base_url)
        self._key, self._session = OPENALEX_KEY.read(), requests.Session()
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
        response = ask(
            self._session,
            self._url,
            is_doubtful=lambda response: _is_doubtful(response, received),
            is_final=_is_used_up,
            params={**sent, OPENALEX_KEY.name: self._key},
            allow_redirects=False,
        )
        if response.status_code != 200:
            raise self._refusal(response, cursor)
        try:
            answer = _Answer.model_validate(_parsed(response.content))
        except ValidationError as error:
            raise InputError(
                f"{self._host} answers with something else than works ({first_fault(error)}); is corpus.api the base "
                "URL of the API?"
            ) from None
        self.calls += 1
        following = answer.meta.next_cursor if cursor is not None and answer.results else None
        return Page(works=answer.results, count=answer.meta.count, cursor=following)

    def _refusal(self, response: requests.Response, cursor: str | None) -> InputError:
        """The error for an answer without works."""
        status, said = response.status_code, status_of(response, self._key)
        if _is_used_up(response):
            return InputError(
                f"The day's allowance of the key in {OPENALEX_KEY.variable} is used up after {self.calls} calls of "
                f"this run ({said}); run again after midnight UTC, and it resumes from there."
            )
        if status == 401:
            return InputError(
                f"{self._host} refuses the key in {OPENALEX_KEY.variable} ({said}): check that it is complete and "
                f"still valid; keys are given at {OPENALEX_KEY.page}."
            )
        if cursor not in (None, FIRST) and (status in (400, 404, 410) or (status == 403 and OF_PAGES.search(said))):
            return LapsedCursorError(f"{self._host} no longer takes the cursor of a page ({said})")
        if status in (400, 403):
            return InputError(
                f"{self._host} refuses the query ({said}); correct corpus.filter, corpus.search or the ids in "
                "corpus.list, or run again later if that is not the reason."
            )
        return InputError(f"{self._url} answers with {said}; is corpus.api the base URL of the API?")


@lru_cache(maxsize=1)
def _parsed(body: bytes) -> Any:
    """A body as JSON; None if it is not JSON, and so not whole."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def _is_doubtful(response: requests.Response, received: int) -> bool:
    """Whether a retry may help: after 403, which also means too fast; half an answer; or a page that is empty although
    more works match than were received, which seldom is because they have vanished since."""
    if response.status_code != 200:
        return response.status_code == 403
    try:
        answer = _Answer.model_validate(_parsed(response.content))
    except ValidationError:
        return _parsed(response.content) is None
    return not answer.results and received < answer.meta.count


def _is_used_up(response: requests.Response) -> bool:
    """Whether the allowance of the day is used up, rather than that of a second."""
    if response.status_code not in (402, 403, 429):
        return False
    after, left = (response.headers.get(name, "") for name in ("Retry-After", "X-RateLimit-Remaining"))
    is_long = after.isdigit() and int(after) > LONGEST_WAIT
    return is_long or left == "0" or bool(USED_UP.search(said_by(response)))
