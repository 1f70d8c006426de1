"""A corpus from a query of OpenAlex's API or a list of papers: works, those that they cite, and those that cite them.

They become one file of works in the layout of a copy, gzipped JSON Lines, so that all that follows is what a copy has.
Each answer of the API is kept in a file of the state folder, with the cursor of the next page, under a name that
follows from the query and the number of the page. So a later run asks for nothing that an earlier one has received.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from isal import igzip
from numpy.typing import NDArray

from cocite.config.release_folder import WORKS
from cocite.config.source import LATEST
from cocite.core.atomic import atomic_path, sync
from cocite.core.errors import InputError
from cocite.core.progress import about, progress, report
from cocite.corpus.release.copies import columns_downloaded
from cocite.corpus.release.manifest import CopiedShard, Dataset, Manifest
from cocite.corpus.release.paper_list import Id, read_papers
from cocite.corpus.release.resolving import PER_CALL, resolve, write_unresolved
from cocite.corpus.release.works_api import FIRST, PER_PAGE, LapsedCursorError, Page, Parameters, Work, WorksApi
from cocite.corpus.release.works_manifest import README

if TYPE_CHECKING:
    from cocite.corpus.sources.openalex import OpenAlex

SHARD = "works.gz"
USUAL_LIMIT = 100_000
"""Most works of a query unless the configuration has another limit."""
PACKED_OF_WORK = 2000
"""Bytes of a packed work with abstract and references, about."""
ADDED_BY_WORK = 20
"""Works that each of those of a query adds, about."""
PRICE, SEARCH_FACTOR = 0.0001, 10
"""Dollars for a call that lists works, and how much more one costs that searches."""
RESTARTS = 3
"""Most times that a query starts again because a cursor lapsed."""
ID = re.compile(r"https://openalex\.org/W(\d{1,18})", re.ASCII)

Ids = NDArray[np.int64]


def list_query(source: "OpenAlex", release: str) -> Manifest:
    """The manifest of what a query gives; `latest` is pinned to this day.

    Raises `InputError` if no work matches, or more than the limit, or if a list has no ids.
    """
    if source.list is not None:
        return _manifest(source, release, sum(bool(paper.ids) for paper in read_papers(Path(source.list))))
    api = WorksApi(source.location)
    count, limit = api.count(source.query), source.limit or USUAL_LIMIT
    words = " with ".join(f"{name}: {value}" for name, value in source.query.items())
    if not count:
        raise InputError(f"No work of OpenAlex matches {words}{_alone(api, source)}; correct the query.")
    if count > limit:
        raise InputError(
            f"{count:,} works of OpenAlex match {words}, more than corpus.limit ({limit:,}): "
            f"{_cost(count, _price(source))}; narrow the query, or set corpus.limit to {(count // 1000 + 1) * 1000}."
        )
    return _manifest(source, release, count)


def _manifest(source: "OpenAlex", release: str, count: int) -> Manifest:
    size = PACKED_OF_WORK * (count + sum(_most_added(source, count).values()))
    shard = CopiedShard(name=SHARD, path=SHARD, bytes=size, needed=size, records=count, estimated=True)
    day = f"{datetime.now(UTC):%Y-%m-%d}" if release == LATEST else release
    return Manifest(release=day, datasets={WORKS: Dataset(shards=(shard,), readme=README)})


def cost_of_query(source: "OpenAlex", manifest: Manifest) -> str:
    """The calls, dollars and time for the works that match by a manifest, and for those that are added, in words."""
    count = _matching(manifest)
    calls = None if source.list is None else -(-count // PER_CALL)
    what = "works match" if source.list is None else f"entries of {source.list} have an id"
    parts = [f"{count:,} {what}: {_cost(count, _price(source), calls)}."]
    for name, added in _most_added(source, count).items():
        parts.append(f"expand.{name} adds perhaps {added:,} works: {_cost(added, PRICE)}.")
    return " ".join([*parts, "A free key has $1 a day; if it is used up, run again on the next day to resume."])


def _matching(manifest: Manifest) -> int:
    return sum(shard.records for shard in manifest.datasets[WORKS].shards if isinstance(shard, CopiedShard))


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
    return f"about {calls:,} calls of the API, ${calls * price:.2f} by its price list, {about(calls)}"


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
    select = ",".join(sorted({column.partition(".")[0] for column in columns}))
    pages = Pages(api=WorksApi(source.location), folder=state / "pages", select=select, release=manifest.release)
    with atomic_path(output) as folder:
        folder.mkdir()
        with igzip.open(folder / SHARD, "wb") as lines:
            gathered = Gathered(lines=lines)
            if source.list is not None:
                _gather_listed(Path(source.list), results, pages, gathered)
            else:
                _gather_matching(source, _matching(manifest), pages, gathered)
            _expand(source, pages, gathered)
    within = int(np.count_nonzero(np.isin(gathered.references(), gathered.numbers())))
    report(
        f"{len(gathered.ids):,} works, with {within:,} citations among them; {pages.api.calls:,} calls of this run, "
        f"and {pages.kept:,} pages of earlier ones."
    )
    if within < len(gathered.ids) and source.expand is None:
        report("That is less than one citation per work; corpus.expand: {} adds the works that they cite.")
    shutil.rmtree(state)


def _gather_listed(path: Path, results: Path, pages: "Pages", gathered: "Gathered") -> None:
    papers, works = read_papers(path), dict[Id, str]()
    for batch in progress(resolve(papers, pages.one, works), of="request listed works", unit="calls"):
        gathered.add(batch)
    if not works:
        raise InputError(f"OpenAlex has no work with any id in {path}; check the ids.")
    write_unresolved(papers, works, results)


def _gather_matching(source: "OpenAlex", count: int, pages: "Pages", gathered: "Gathered") -> None:
    for page in progress(pages.all(source.query), of="request works", unit="calls", total=_calls(count)):
        gathered.add(page.works)
    if len(gathered.ids) < count:
        report(f"{count - len(gathered.ids):,} of the {count:,} works that matched at first did not come.")


def _expand(source: "OpenAlex", pages: "Pages", gathered: "Gathered") -> None:
    queried, expand = list(gathered.ids), source.expand
    if expand and expand.references:
        cited = gathered.most_cited(expand.limit)
        for ids in progress(_batches(cited), of="request cited works", unit="calls"):
            gathered.add(pages.one(_any_of("ids.openalex", ids)).works)
        lacking = len(set(cited) - gathered.ids.keys())
        report(f"{len(cited):,} works that are cited were requested; {lacking:,} are not there (merged or deleted).")
    if expand and expand.citing:
        room = expand.limit
        for ids in progress(_batches(queried), of="request citing works", unit="batches"):
            for page in pages.all(_any_of("cites", ids)):
                room -= gathered.add(page.works, room)
                if not room:
                    report(f"The limit of {expand.limit:,} works that cite is reached; others are left out.")
                    return


def _batches(ids: Sequence[int]) -> list[Sequence[int]]:
    return [ids[first : first + PER_PAGE] for first in range(0, len(ids), PER_PAGE)]


def _any_of(name: str, ids: Iterable[int]) -> Parameters:
    return {"filter": f"{name}:{'|'.join(f'W{each}' for each in ids)}"}


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
                raise InputError(f"The API sent a work with the id {work.get('id')!r}; is corpus.api its base URL?")
            if number not in self.ids and len(new) != room:
                new.setdefault(number, work)
        self.lines.write("".join(f"{json.dumps(work)}\n" for work in new.values()).encode())
        self.ids |= dict.fromkeys(new)
        listed = (map(_number, work.get("referenced_works") or ()) for work in new.values())
        self.cited.append(np.array([cited for each in listed for cited in each if cited is not None], dtype=np.int64))
        return len(new)

    def numbers(self) -> Ids:
        """The ids as an array."""
        return np.fromiter(self.ids, dtype=np.int64, count=len(self.ids))

    def references(self) -> Ids:
        """The ids that the works so far cite, as often as they do."""
        return np.concatenate(self.cited)

    def most_cited(self, limit: int) -> list[int]:
        """The ids that they cite and that are not among them, up to a limit: the most cited first, then the
        smallest."""
        cited, times = np.unique(self.references(), return_counts=True)
        unknown = np.flatnonzero(~np.isin(cited, self.numbers()))
        ids: list[int] = cited[unknown[np.argsort(-times[unknown], kind="stable")][:limit]].tolist()
        return ids


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
    release: str
    """That of the manifest: pages of an earlier one are not used."""
    kept: int = 0
    """Pages so far that were there already."""

    def all(self, parameters: Parameters) -> Iterator[Page]:
        """All works that match, each page once. A cursor that lapses starts the query again, as its next page."""
        cursor: str | None = FIRST
        number = received = restarts = 0
        while cursor is not None:
            try:
                page = self._page(parameters, number, cursor, received)
            except LapsedCursorError as error:
                if restarts == RESTARTS:
                    raise InputError(f"{error}, even after {RESTARTS} starts; run again later.") from None
                report(f"{error}; starting again from the first page.")
                restarts, cursor, received = restarts + 1, FIRST, 0
                continue
            received += len(page.works)
            yield page
            number, cursor = number + 1, page.cursor

    def one(self, parameters: Parameters) -> Page:
        """The works that match if these fit on a page."""
        return self._page(parameters, 0, None, 0)

    def _page(self, parameters: Parameters, number: int, cursor: str | None, received: int) -> Page:
        sent = {**parameters, "select": self.select}
        name = sha256(json.dumps([self.release, sent], sort_keys=True).encode()).hexdigest()[:16]
        path = self.folder / f"{name}-{number:06}.json.gz"
        if path.is_file():
            self.kept += 1
            return Page(**json.loads(igzip.decompress(path.read_bytes())))
        page = self.api.page(sent, cursor, received)
        with atomic_path(path) as temporary:
            temporary.write_bytes(igzip.compress(json.dumps(vars(page)).encode()))
            sync(temporary)
        return page
