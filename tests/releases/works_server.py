"""OpenAlex's API on this machine: works by filter, search and cursor, for those with the key; and its refusals."""

import json
import secrets
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.releases.faults import Fault, Faults, Mishaps
from tests.releases.local_server import Catalogue
from tests.releases.server import Arrival, Handler, Site, serving

Work = dict[str, Any]
ID = "https://openalex.org/"
PER_PAGE = 100
FIELDS = {
    "publication_year": lambda work: work["publication_year"],
    "language": lambda work: work["language"],
    "primary_topic.id": lambda work: (work["primary_topic"] or {}).get("id", "").removeprefix(ID),
    "ids.openalex": lambda work: work["id"].removeprefix(ID),
    "doi": lambda work: (work["doi"] or "").removeprefix("https://doi.org/").lower(),
    "ids.pmid": lambda work: (work["ids"]["pmid"] or "").rpartition("/")[2],
    "cites": lambda work: [each.removeprefix(ID) for each in work["referenced_works"]],
}
"""Filter → what it compares with its values, or any of them."""


class RefusedError(Exception):
    def __init__(self, status: int, error: str, message: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.content, self.headers = HTTPStatus(status), {"error": error, "message": message}, headers
        super().__init__(message)


class WorksCatalogue(Catalogue):
    storages = ()

    def __init__(self, works: Sequence[Work]) -> None:
        self.works = {work["id"].removeprefix(ID): work for work in works}
        self.topics: dict[str, str] = {}

    def matching(self, sent: dict[str, str]) -> list[Work]:
        asked = [each.partition(":") for each in filter(None, sent.get("filter", "").split(","))]
        for name, _, values in asked:
            if name not in FIELDS:
                raise RefusedError(400, "Invalid query parameters error.", f"{name} is not a valid field.")
            if values.count("|") >= PER_PAGE:
                raise RefusedError(400, "Invalid query parameters error.", "Maximum number of values exceeded.")
        words = sent.get("search", "").lower().split()
        ids = next((values.split("|") for name, _, values in asked if name == "ids.openalex"), self.works)
        found = [work for work in map(self.works.get, ids) if work]
        found = [work for work in found if all(_holds(work, name, values) for name, _, values in asked)]
        texts = [f"{work['title']} {' '.join(work['abstract_inverted_index'] or {})}".lower() for work in found]
        with_words = [work for work, text in zip(found, texts, strict=True) if all(word in text for word in words)]
        return sorted(with_words, key=_rank)

    def page(self, sent: dict[str, str], lapsed: Collection[str]) -> dict[str, Any]:
        size = int(sent.get("per_page", "25"))
        if not 1 <= size <= PER_PAGE:
            raise RefusedError(400, "Pagination error.", "per-page parameter must be between 1 and 100.")
        if (cursor := sent.get("cursor")) in lapsed:
            raise RefusedError(400, "Pagination error.", "Cursor value is invalid.")
        found = self.matching(sent)
        left = (
            found
            if cursor in (None, "*")
            else found[bisect_right(found, json.loads(b64decode(cursor))[:2], key=_rank) :]
        )
        chosen, names = left[:size], sent["select"].split(",")
        meta: dict[str, Any] = {"count": len(found), "db_response_time_ms": 9, "page": None, "per_page": size}
        if cursor is not None:
            place = json.dumps([*_rank(chosen[-1]), secrets.token_hex(4)] if chosen else []).encode()
            meta["next_cursor"] = b64encode(place).decode() if chosen else None
        return {"meta": meta, "results": [{name: work[name] for name in names} for work in chosen], "group_by": []}


def _rank(work: Work) -> list[Any]:
    return [-(work["cited_by_count"] or 0), work["id"]]


def _holds(work: Work, name: str, values: str) -> bool:
    held = FIELDS[name](work)
    if name == "publication_year" and "-" in values:
        first, last = map(int, values.split("-"))
        return held is not None and first <= held <= last
    if name == "publication_year" and values[0] in "<>":
        return held is not None and (held > int(values[1:]) if values[0] == ">" else held < int(values[1:]))
    return bool({*values.split("|")} & {*(held if isinstance(held, list) else [str(held)])})


class WorksSite(Site):
    catalogue: WorksCatalogue

    def __init__(self, catalogue: WorksCatalogue, key: str, allowance: int) -> None:
        super().__init__(catalogue, key)
        self.allowance = allowance
        self.given: set[str] = set()
        self.lapsed: set[str] = set()
        """Cursors that were given, and those of them that lapsed."""


class WorksHandler(Handler):
    site: WorksSite
    used_up = 429, "Rate limit exceeded", "Insufficient budget. You only have $0 remaining.", {"Retry-After": "40000"}
    """Status, error, message and headers once the allowance of the day is used up."""

    def answer_api(self, parts: list[str]) -> None:
        try:
            self.send_json(HTTPStatus.OK, self._answer(), {"X-RateLimit-Remaining-USD": f"{self.site.allowance / 1e4}"})
        except RefusedError as refusal:
            self.send_json(refusal.status, refusal.content, refusal.headers)

    def _answer(self) -> dict[str, Any]:
        url = urlsplit(self.path)
        sent = {name: values[0] for name, values in parse_qs(url.query).items()}
        if sent.get("api_key") != self.site.key:
            raise RefusedError(401, "Unauthorized", f"The API key {sent.get('api_key')} is not valid.")
        if url.path.startswith("/moved"):
            raise RefusedError(301, "Moved", "elsewhere", {"Location": f"/works?{url.query}"})
        if url.path == "/topics":
            words = sent["search"].lower().split()
            found = {key: name for key, name in self.site.catalogue.topics.items() if words[0] in name.lower()}
            rows = [{"id": f"{ID}{key}", "display_name": name, "works_count": 1200} for key, name in found.items()]
            return {"meta": {"count": len(rows)}, "results": rows[: int(sent["per_page"])], "group_by": []}
        if url.path != "/works":
            raise RefusedError(404, "Not found", "There is nothing here.")
        if self.arrival.fault == Fault.ALL_LAPSED:
            self.site.lapsed |= self.site.given
        if not self.site.allowance:
            raise RefusedError(*self.used_up)
        page = self.site.catalogue.page(sent, self.site.lapsed)
        self.site.allowance -= 1
        if page["meta"].get("next_cursor"):
            self.site.given.add(page["meta"]["next_cursor"])
        return page


WorksSite.handler = WorksHandler


@contextmanager
def serve_works(
    catalogue: WorksCatalogue,
    *,
    key: str,
    allowance: int = 10**9,
    mishaps: Mishaps | None = None,
    requests: list[Arrival] | None = None,
) -> Iterator[str]:
    """Serve the works of a catalogue for a number of calls; yield the base URL."""
    with serving(WorksSite(catalogue, key, allowance), mishaps or Mishaps(Faults()), requests) as origin:
        yield origin
