"""A corpus from a query of OpenAlex's API or a list of papers: works, those that they cite, and those that cite them.

They become one file of works in the layout of a copy, gzipped JSON Lines, so that all that follows is what a copy has.
The API takes the key as a parameter of the URL. So no message has a URL with parameters, what the API says is quoted
without the key, and no redirect is followed.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from isal import igzip
from pydantic import BaseModel, NonNegativeInt, ValidationError

from cocite.config.release_folder import WORKS
from cocite.config.source import OPENALEX_KEY
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.progress import about, progress, report
from cocite.corpus.release import query
from cocite.corpus.release.client import first_fault
from cocite.corpus.release.copies import README, columns_downloaded
from cocite.corpus.release.manifest import Manifest
from cocite.corpus.release.paper_list import Found, Id, Register, gather_listed, read_papers
from cocite.corpus.release.query import ADDED_BY_WORK, FIRST, Gathered, Page, Pages, Parameters, Work, batches
from cocite.corpus.release.retry import LONGEST_WAIT, ask, host_of, said_by, status_of

if TYPE_CHECKING:
    from cocite.corpus.sources.openalex import OpenAlex

PER_PAGE = 100
"""The most works on a page, and the most values of a filter that are joined by `|`."""
USED_UP = re.compile(r"budget|allowance|credit|daily|\b(a|per) day\b", re.IGNORECASE)
"""What a message on the allowance of a day has, and one on the requests of a second has not."""
OF_PAGES = re.compile("cursor|paginat", re.IGNORECASE)
PACKED_OF_WORK = 2000
"""Bytes of a packed work with abstract and references, about."""
PRICE, SEARCH_FACTOR = 0.0001, 10
"""Dollars for a call that lists works, and how much more one costs that searches."""
PER_CALL = 50
"""Ids of a list in a call. The API takes 100, but DOIs are long, and the works of a DOI may be several."""
SEPARATORS = frozenset(',|"')
"""Characters that values of a filter cannot have."""
NOT_IN_FILTERS = "a DOI with a comma, | or a quotation mark, which the API's filter cannot have"
ID = re.compile(r"https://openalex\.org/W(\d{1,18})", re.ASCII)


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
        """A page of the works that match, after so many that were received; without a cursor the only one. Raises
        `LapsedCursorError`, and `InputError` for a refused key or query, and if the day's allowance is used up."""
        sent = {"per_page": str(PER_PAGE), **parameters} | ({} if cursor is None else {"cursor": cursor})
        options: Any = {"params": {**sent, OPENALEX_KEY.name: self._key}, "allow_redirects": False}
        is_doubtful = partial(_is_doubtful, received=received)
        response = ask(self._session, self._url, is_doubtful=is_doubtful, is_final=_is_used_up, **options)
        if response.status_code != 200:
            raise self._refusal(response, cursor)
        try:
            answer = _Answer.model_validate(_parsed(response.content))
        except ValidationError as error:
            said = f"something else than works ({first_fault(error)}); is corpus.api the base URL of the API?"
            raise InputError(f"{self._host} answers with {said}") from None
        self.calls += 1
        following = answer.meta.next_cursor if cursor is not None and answer.results else None
        return Page(works=answer.results, count=answer.meta.count, cursor=following)

    def _refusal(self, response: requests.Response, cursor: str | None) -> InputError:
        status, said = response.status_code, status_of(response, self._key)
        if _is_used_up(response):
            used = f"is used up after {self.calls} calls of this run ({said})"
            remedy = "run again after midnight UTC, and it resumes from there"
            return InputError(f"The day's allowance of the key in {OPENALEX_KEY.variable} {used}; {remedy}.")
        if status == 401:
            remedy = f"check that it is complete and still valid; keys are given at {OPENALEX_KEY.page}."
            return InputError(f"{self._host} refuses the key in {OPENALEX_KEY.variable} ({said}): {remedy}")
        if cursor not in (None, FIRST) and (status in (400, 404, 410) or (status == 403 and OF_PAGES.search(said))):
            return query.LapsedCursorError(f"{self._host} no longer takes the cursor of a page ({said})")
        if status in (400, 403):
            keys = "corpus.filter, corpus.search or the ids in corpus.list"
            remedy = f"correct {keys}, or run again later if that is not the reason"
            return InputError(f"{self._host} refuses the query ({said}); {remedy}.")
        return InputError(f"{self._url} answers with {said}; is corpus.api the base URL of the API?")


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


def list_query(source: "OpenAlex", release: str) -> Manifest:
    """The manifest of what a query gives; `latest` is pinned to this day. Raises `InputError` if no work matches, or
    more than the limit, or if a list has no ids."""
    if source.list is not None:
        count = sum(bool(paper.ids) for paper in read_papers(Path(source.list)))
    else:
        api = WorksApi(source.location)
        count = api.count(source.query)
        cost, of = _cost(count, _price(source)), ("work", "OpenAlex")
        query.check_count(count, source.limit, source.query, of=of, cost=cost, alone=lambda: _alone(api, source))
    size = PACKED_OF_WORK * (count + sum(_most_added(source, count).values()))
    return query.manifest_of_query(release, count, {WORKS: size}, README)


def cost_of_query(source: "OpenAlex", manifest: Manifest) -> str:
    """The calls, dollars and time for the works that match by a manifest, and for those that are added, in words."""
    count = query.matching(manifest)
    calls = None if source.list is None else -(-count // PER_CALL)
    what = "works match" if source.list is None else f"entries of {source.list} have an id"
    parts = [f"{count:,} {what}: {_cost(count, _price(source), calls)}."]
    for name, added in _most_added(source, count).items():
        parts.append(f"expand.{name} adds perhaps {added:,} works: {_cost(added, PRICE)}.")
    return " ".join([*parts, "A free key has $1 a day; if it is used up, run again on the next day to resume."])


def _most_added(source: "OpenAlex", count: int) -> dict[str, int]:
    """Key of `expand` → the works that it adds, about or at most."""
    if source.expand is None:
        return {}
    asked = {"references": source.expand.references, "citing": source.expand.citing}
    return {name: min(source.expand.limit, ADDED_BY_WORK * count) for name, is_asked in asked.items() if is_asked}


def _price(source: "OpenAlex") -> float:
    """Dollars for a call of the query."""
    searches = "search" in source.query or ".search" in source.query.get("filter", "")
    return PRICE * (SEARCH_FACTOR if searches else 1)


def _calls(count: int) -> int:
    """Those for so many works; the last one finds none."""
    return -(-count // PER_PAGE) + 1


def _cost(count: int, price: float, calls: int | None = None) -> str:
    """What so many works cost, at about a second for a call."""
    calls = calls or _calls(count)
    dollars = f"${calls * price:.2f} by its price list"
    return f"about {calls:,} call{'s' * (calls != 1)} of the API, {dollars}, {about(calls)}"


def _alone(api: WorksApi, source: "OpenAlex") -> str:
    """How many works each condition of a filter matches without the others, if there are some."""
    conditions = source.query.get("filter", "").split(",")
    if len(conditions) == 1 or '"' in "".join(conditions):
        return ""
    counts = {condition: api.count({"filter": condition}) for condition in conditions}
    return f" (alone, {', '.join(f'{condition} matches {count:,}' for condition, count in counts.items())})"


def fetch_query(source: "OpenAlex", manifest: Manifest, *, results: Path, state: Path, output: Path) -> None:
    """Make a folder with the works; `state` keeps what has come. Raises `InputError` if the API refuses."""
    columns = columns_downloaded(authors=source.authors)
    fixed = {"select": ",".join(sorted({column.partition(".")[0] for column in columns}))}
    pages = Pages(api=WorksApi(source.location), folder=state / "pages", fixed=fixed, release=manifest.release)
    with atomic_path(output) as folder:
        folder.mkdir()
        with igzip.open(folder / f"{WORKS}.gz", "wb") as lines:
            gathered = Gathered(
                write=lambda works: lines.write("".join(f"{json.dumps(work)}\n" for work in works).encode()),
                number_of=lambda work: _number(work.get("id")),
                cited_by=lambda work: map(_number, work.get("referenced_works") or ()),
            )
            if source.list is not None:
                register = Register("OpenAlex", _refusal, lambda ids: _look_up(ids, pages))
                gather_listed(Path(source.list), register, gathered, results, dataset=WORKS)
            else:
                count = query.matching(manifest)
                for page in progress(pages.all(source.query), of="request works", unit="calls", total=_calls(count)):
                    gathered.add(page.works)
                if len(gathered.ids) < count:
                    report(f"{count - len(gathered.ids):,} of the {count:,} works that matched at first did not come.")
            _expand(source, pages, gathered)
    gathered.summary(pages, is_expanded=source.expand is not None)
    shutil.rmtree(state)


def _refusal(listed: Id) -> str | None:
    name, value = listed
    if name == "s2":
        return "Semantic Scholar's id, which OpenAlex does not have"
    return NOT_IN_FILTERS if SEPARATORS & {*value} else None


def _look_up(ids: Sequence[Id], pages: Pages) -> Iterator[list[Found]]:
    for name, group in groupby(sorted(ids), key=lambda each: each[0]):
        for batch in batches(list(group), PER_CALL):
            works = pages.one({"filter": f"{name}:{'|'.join(value for _, value in batch)}"}).works
            yield [(work, work["id"], _ids_of(work)) for work in works]


def _ids_of(work: Work) -> list[Id]:
    urls = {"ids.openalex": work.get("id"), "doi": work.get("doi"), "ids.pmid": (work.get("ids") or {}).get("pmid")}
    ends = {name: url.removeprefix("https://doi.org/") for name, url in urls.items() if isinstance(url, str)}
    return [(name, end.lower() if name == "doi" else end.rpartition("/")[2]) for name, end in ends.items()]


def _expand(source: "OpenAlex", pages: Pages, gathered: Gathered) -> None:
    queried, expand = list(gathered.ids), source.expand
    if expand and expand.references:
        gathered.add_cited(expand.limit, PER_PAGE, lambda ids: pages.one(_any_of("ids.openalex", ids)).works)
    if expand and expand.citing:
        room = expand.limit
        for ids in progress(batches(queried, PER_PAGE), of="request citing works", unit="batches"):
            for page in pages.all(_any_of("cites", ids)):
                room -= gathered.add(page.works, room)
                if not room:
                    report(f"The limit of {expand.limit:,} works that cite is reached; others are left out.")
                    return


def _any_of(name: str, ids: Iterable[int]) -> Parameters:
    return {"filter": f"{name}:{'|'.join(f'W{each}' for each in ids)}"}


def _number(url: object) -> int | None:
    found = ID.fullmatch(url) if isinstance(url, str) else None
    return int(found[1]) if found else None
