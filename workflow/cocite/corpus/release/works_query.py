"""A corpus from a query of OpenAlex's API: works that match, those that they cite, and those that cite them.

They become one file of works in the layout of a copy, gzipped JSON Lines, so that all that follows is what a copy has.
Each answer of the API is kept in a file of the state folder, with the cursor of the next page, under a name that
follows from the query and the number of the page. So a later run asks for nothing that an earlier one has received.
"""

import json
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO

import numpy as np
from isal import igzip
from numpy.typing import NDArray

from cocite.config.release_folder import WORKS
from cocite.config.source import LATEST, Expansion
from cocite.core.atomic import atomic_path, sync
from cocite.core.errors import InputError
from cocite.core.progress import about, progress, report
from cocite.corpus.release.copies import columns_downloaded
from cocite.corpus.release.manifest import CopiedShard, Dataset, Manifest
from cocite.corpus.release.works_api import (
    CHEAPEST,
    FIRST,
    PER_PAGE,
    LapsedCursorError,
    Page,
    Parameters,
    Work,
    WorksApi,
)
from cocite.corpus.release.works_manifest import README

SHARD = "works.gz"
PACKED_OF_WORK = 2000
"""Bytes of a packed work with abstract and references, about."""
CITED_BY_WORK = 20
"""Works that one adds to those that are cited, at most, about."""
SEARCH_FACTOR = 10
"""How much more a call costs that searches."""
FREE_A_DAY = 1.0
"""Dollars that a free key has for a day."""
RESTARTS = 3
"""Most times that a query starts again because a cursor lapsed."""
ID = re.compile(r"https://openalex\.org/W(\d{1,18})", re.ASCII)

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Query:
    """What is requested, and from where."""

    api: str
    parameters: Parameters
    """Those of the API that select works: filter, search, or both."""
    limit: int
    expand: Expansion | None
    authors: bool
    """Whether the authors of works are requested."""

    @property
    def select(self) -> str:
        """The parts of a work that a corpus may need, as for a copy."""
        return ",".join(sorted({column.partition(".")[0] for column in columns_downloaded(authors=self.authors)}))

    @property
    def price(self) -> float:
        """Dollars for a call that lists its works."""
        searches = "search" in self.parameters or ".search" in self.parameters.get("filter", "")
        return CHEAPEST * (SEARCH_FACTOR if searches else 1)

    def __str__(self) -> str:
        """The parameters as a configuration has them."""
        return " with ".join(f"{name}: {value}" for name, value in self.parameters.items())


def list_query(query: Query, release: str) -> Manifest:
    """The manifest of what a query gives; `latest` is pinned to this day.

    Raises `InputError` if no work matches, or more than the limit.
    """
    api = WorksApi(query.api)
    count = api.count(query.parameters)
    if not count:
        raise InputError(f"No work of OpenAlex matches {query}{_alone(api, query)}; correct corpus.filter.")
    if count > query.limit:
        raise InputError(
            f"{count:,} works of OpenAlex match {query}, more than corpus.limit ({query.limit:,}): "
            f"{_cost(_pages(count), query.price)}; narrow the filter, or set limit: {_round_up(count)}."
        )
    works = count + sum(_most_added(query, count).values())
    size = works * PACKED_OF_WORK
    shard = CopiedShard(name=SHARD, path=SHARD, bytes=size, needed=size, records=count, estimated=True)
    day = f"{datetime.now(UTC):%Y-%m-%d}" if release == LATEST else release
    return Manifest(release=day, datasets={WORKS: Dataset(shards=(shard,), readme=README)})


def cost_in_words(query: Query, manifest: Manifest) -> str:
    """The calls, dollars and time for the works that match by a manifest, and for those that are added."""
    count = sum(shard.records for shard in manifest.datasets[WORKS].shards if isinstance(shard, CopiedShard))
    parts = [f"{count:,} works match: {_cost(_pages(count), query.price)}."]
    for name, added in _most_added(query, count).items():
        parts.append(f"expand.{name} adds perhaps {added:,} works: {_cost(_pages(added), CHEAPEST)}.")
    return " ".join([*parts, f"A free key has ${FREE_A_DAY:.2f} a day; if it is used up, the next day's run resumes."])


def _most_added(query: Query, count: int) -> dict[str, int]:
    """Key of `expand` → the works that it adds at most, about."""
    if query.expand is None:
        return {}
    asked = {"references": query.expand.references, "citing": query.expand.citing}
    return {name: min(query.expand.limit, CITED_BY_WORK * count) for name, is_asked in asked.items() if is_asked}


def _pages(count: int) -> int:
    return -(-count // PER_PAGE) + 1


def _cost(calls: int, price: float) -> str:
    """The calls that take so much, each about a second."""
    return f"about {calls:,} calls of the API, ${calls * price:.2f} by its price list, {about(calls)}"


def _round_up(count: int) -> int:
    """A limit that leaves room for works that come in the meantime."""
    return -(-count // 1000) * 1000 + 1000


def _alone(api: WorksApi, query: Query) -> str:
    """How many works each condition of a filter matches without the others, if there are some."""
    conditions = query.parameters.get("filter", "").split(",")
    if len(conditions) < 2 or any('"' in condition for condition in conditions):
        return ""
    counts = {condition: api.count({"filter": condition}) for condition in conditions}
    return f" (alone, {', '.join(f'{condition} matches {count:,}' for condition, count in counts.items())})"


def fetch_query(query: Query, *, state: Path, output: Path) -> None:
    """Make a folder with the works; `state` keeps what has come. Raises `InputError` if the API refuses."""
    pages = Pages(api=WorksApi(query.api), folder=state / "pages", select=query.select)
    with atomic_path(output) as folder:
        folder.mkdir()
        with igzip.open(folder / SHARD, "wb") as lines:
            gathered = Gathered(lines=lines)
            _gather(query, pages, gathered)
        _report(query, pages, gathered)
    shutil.rmtree(state)


def _gather(query: Query, pages: "Pages", gathered: "Gathered") -> None:
    count = 0
    for page in pages.all(query.parameters, of="request works"):
        count = count or page.count
        gathered.add(page.works)
    queried, references = list(gathered.ids), gathered.references()
    if len(queried) < count:
        report(f"{count - len(queried):,} of {count:,} works vanished from the answers while they were paged.")
    if query.expand is None:
        return
    if query.expand.references:
        cited = most_cited(references, queried, query.expand.limit)
        for ids in progress(_batches(cited), of="request cited works", unit="calls"):
            gathered.add(pages.one(_any_of("ids.openalex", ids)).works)
        lacking = len(set(cited) - gathered.ids.keys())
        report(f"{len(cited):,} works that are cited were requested; {lacking:,} are not there (merged or deleted).")
    if query.expand.citing:
        room = query.expand.limit
        for ids in progress(_batches(queried), of="request citing works", unit="batches"):
            for page in pages.all(_any_of("cites", ids)):
                room -= gathered.add(page.works, room)
                if not room:
                    report(f"The limit of {query.expand.limit:,} works that cite is reached; others are left out.")
                    return


def _batches(ids: Sequence[int]) -> list[Sequence[int]]:
    return [ids[first : first + PER_PAGE] for first in range(0, len(ids), PER_PAGE)]


def _any_of(name: str, ids: Iterable[int]) -> Parameters:
    return {"filter": f"{name}:{'|'.join(f'W{each}' for each in ids)}"}


def most_cited(references: Ids, known: Collection[int], limit: int) -> list[int]:
    """The ids among references that are not known, up to a limit: the most frequent first, then the smallest."""
    cited, times = np.unique(references, return_counts=True)
    unknown = ~np.isin(cited, np.fromiter(known, dtype=np.int64, count=len(known)))
    cited, times = cited[unknown], times[unknown]
    ids: list[int] = cited[np.lexsort((cited, -times))][:limit].tolist()
    return ids


def _report(query: Query, pages: "Pages", gathered: "Gathered") -> None:
    ids = np.fromiter(gathered.ids, dtype=np.int64, count=len(gathered.ids))
    within = int(np.count_nonzero(np.isin(gathered.references(), ids)))
    report(
        f"{len(ids):,} works, with {within:,} citations among them; {pages.api.calls:,} calls of this run, and "
        f"{pages.kept:,} pages of earlier ones."
    )
    if within < len(ids) and (query.expand is None or not query.expand.references):
        report("That is less than one citation per work; corpus.expand: {references: 1} adds the works they cite.")


@dataclass(kw_only=True)
class Gathered:
    """The works so far, each once, as they came."""

    lines: IO[bytes]
    ids: dict[int, None] = field(default_factory=dict)
    """Their ids, in the order in which they came."""
    cited: list[Ids] = field(default_factory=lambda: [np.empty(0, dtype=np.int64)])
    """The ids that they cite, page by page."""

    def add(self, works: Sequence[Work], room: int | None = None) -> int:
        """Write those that are new, and no more than there is room; return their number."""
        new: dict[int, Work] = {}
        for work in works:
            number = _number(work.get("id"))
            if number is None:
                raise InputError(f"OpenAlex's API sent a work with the id {work.get('id')!r}; is corpus.api its URL?")
            if number not in self.ids and len(new) != room:
                new.setdefault(number, work)
        self.lines.write("".join(f"{json.dumps(work)}\n" for work in new.values()).encode())
        self.ids |= dict.fromkeys(new)
        listed = (map(_number, work.get("referenced_works") or ()) for work in new.values())
        self.cited.append(np.array([cited for each in listed for cited in each if cited is not None], dtype=np.int64))
        return len(new)

    def references(self) -> Ids:
        """The ids that the works so far cite, as often as they do."""
        return np.concatenate(self.cited)


def _number(url: object) -> int | None:
    """The number in the id of a work."""
    found = ID.fullmatch(url) if isinstance(url, str) else None
    return int(found[1]) if found else None


@dataclass(kw_only=True)
class Pages:
    """The pages of queries, from the files that have them, or else from the API."""

    api: WorksApi
    folder: Path
    select: str
    kept: int = 0
    """Pages so far that were there already."""

    def all(self, parameters: Parameters, of: str = "") -> Iterator[Page]:
        """All works that match, each page once. A cursor that lapses starts the query again, as its next page."""
        cursor: str | None = FIRST
        number = received = restarts = 0
        while cursor is not None:
            try:
                page = self._page(parameters, number, cursor, received)
            except LapsedCursorError as error:
                if restarts == RESTARTS:
                    raise InputError(f"{error} It has happened {restarts + 1} times; run again later.") from None
                report(f"{error} Starting again from the first page.")
                restarts, cursor, received = restarts + 1, FIRST, 0
                continue
            received += len(page.works)
            if of and number % 50 == 0:
                report(f"{of}: {received:,} of {page.count:,}")
            yield page
            number, cursor = number + 1, page.cursor

    def one(self, parameters: Parameters) -> Page:
        """The works that match if these fit on a page."""
        return self._page(parameters, 0, None, 0)

    def _page(self, parameters: Parameters, number: int, cursor: str | None, received: int) -> Page:
        sent = {**parameters, "select": self.select}
        name = sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()[:16]
        path = self.folder / f"{name}-{number:06}.json.gz"
        if path.is_file():
            self.kept += 1
            return Page(**json.loads(igzip.decompress(path.read_bytes())))
        page = self.api.page(sent, cursor, received)
        with atomic_path(path) as temporary:
            temporary.write_bytes(igzip.compress(json.dumps(vars(page)).encode()))
            sync(temporary)
        return page
