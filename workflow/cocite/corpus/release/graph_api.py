"""Semantic Scholar's Graph API: the papers that match a query, page by page, or that have some ids, with references."""

from pathlib import Path

from pydantic import BaseModel, NonNegativeInt

from cocite.config.source import S2_KEY
from cocite.core.errors import InputError
from cocite.corpus.release.client import SemanticScholarApi
from cocite.corpus.release.query import FIRST, LapsedCursorError, Page, Parameters, Work
from cocite.corpus.release.retry import said_by, status_of

SEARCH, BATCH = "paper/search/bulk", "paper/batch"
PER_PAGE = 1000
"""Papers on a page of a search, at most."""
PER_BATCH = 500
"""The most ids in a call."""
ASKED_BY = "askedBy"
"""Key of a paper for the id that it was requested by, which may be that of a paper that was merged into it."""


class _Found(BaseModel):
    total: NonNegativeInt
    token: str | None = None
    data: list[Work]


class GraphApi(SemanticScholarApi):
    """The API at a base URL such as https://api.semanticscholar.org/graph/v1, which needs no key."""

    def __init__(self, base_url: str, turns: Path) -> None:
        """Read the key, if there is one. `turns` is the file through which all jobs keep the rate limit."""
        super().__init__(base_url, turns, S2_KEY.read() if S2_KEY.is_set else None)
        self.calls = 0
        """Answers so far."""

    def count(self, parameters: Parameters) -> int:
        """How many papers match, about."""
        return self._search({**parameters, "fields": "corpusId"}, FIRST).count

    def page(self, parameters: Parameters, cursor: str | None = None, received: int = 0) -> Page:
        """A page of the papers that match, or the papers that have the `ids` among the parameters.

        Raises `LapsedCursorError`, and `InputError` for a refused key or query.
        """
        if "ids" not in parameters:
            return self._search(parameters, cursor)
        papers = self._batch(list(parameters["ids"]), parameters["fields"])
        return Page(works=papers, count=len(papers), cursor=None)

    def _search(self, parameters: Parameters, cursor: str | None) -> Page:
        token = {} if cursor in (None, FIRST) else {"token": cursor}
        response = self._respond(SEARCH, params={**parameters, **token})
        if token and response.status_code in (400, 404, 410):
            raise LapsedCursorError(f"{self._host} no longer takes the token of a page ({status_of(response)})")
        if response.status_code == 400:
            raise InputError(f"{self._host} refuses the query ({status_of(response)}); correct corpus.query.")
        found: _Found = self._content(SEARCH, response, _Found)
        self.calls += 1
        return Page(works=found.data, count=found.total, cursor=found.token if found.data else None)

    def _batch(self, ids: list[str], fields: str) -> list[Work]:
        """The papers that have the ids; of half of them at a time if all are too much for an answer."""
        response = self._respond(BATCH, params={"fields": fields}, json={"ids": ids})
        said = said_by(response).lower()
        if response.status_code == 400 and "no valid paper ids" in said:
            self.calls += 1
            return []
        is_too_long = response.status_code == 413 or (response.status_code == 400 and "maximum" in said)
        if is_too_long and len(ids) > 1:
            half = (len(ids) + 1) // 2
            return [*self._batch(ids[:half], fields), *self._batch(ids[half:], fields)]
        if is_too_long or response.status_code == 400:
            raise InputError(f"{self._host} refuses ids of papers ({status_of(response)}); run again later.")
        papers: list[Work | None] = self._content(BATCH, response, list[Work | None])
        if len(papers) != len(ids):
            raise InputError(f"{self._host} answers with {len(papers)} papers for {len(ids)} ids; run again later.")
        self.calls += 1
        return [{**paper, ASKED_BY: of} for of, paper in zip(ids, papers, strict=True) if paper is not None]
