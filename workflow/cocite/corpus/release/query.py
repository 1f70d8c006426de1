"""What queries of an API have in common: pages that are kept until the corpus is complete, and the works on them.

Each answer of the API is kept in a file of the state folder, with the cursor of the next page, under a name that
follows from the query and the number of the page. So a later run asks for nothing that an earlier one has received.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from isal import igzip
from numpy.typing import NDArray

from cocite.config.source import LATEST
from cocite.core.atomic import atomic_path, sync
from cocite.core.errors import InputError
from cocite.core.progress import progress, report
from cocite.corpus.release.manifest import CopiedShard, Dataset, Manifest

if TYPE_CHECKING:
    from cocite.corpus.release.graph_query import GraphApi
    from cocite.corpus.release.works_query import WorksApi

FIRST = "*"
"""The cursor of the first page."""
RESTARTS = 3
"""Most times that a query starts again because a cursor lapsed."""
USUAL_LIMIT = 100_000
"""Most works of a query unless the configuration has another limit."""
TEACHING = 300
"""Citations among papers from which a trained encoder finds more than BM25 (docs/how-to/own-tables.md)."""
ADDED_BY_WORK = 20
"""Works that each of those of a query adds, about."""

Parameters = Mapping[str, Any]
Work = dict[str, Any]
"""A work or a paper, as the API has it."""


class LapsedCursorError(InputError):
    """The API no longer takes the cursor of a page."""


class NothingMatchesError(InputError):
    """No work matches a query."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some of the works that match a query."""

    works: list[Work]
    count: int
    """All works that match."""
    cursor: str | None
    """That of the next page; None after the last one."""


@dataclass(kw_only=True)
class Pages:
    """The pages of queries, from the files that have them, or else from the API."""

    api: "GraphApi | WorksApi"
    folder: Path
    fixed: Parameters
    """Parameters of all requests."""
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
        sent = {**parameters, **self.fixed}
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


@dataclass(kw_only=True)
class Gathered:
    """The works so far, each once, as they came."""

    write: Callable[[Iterable[Work]], object]
    """Takes those that are new."""
    number_of: Callable[[Work], int | None]
    """The id of a work."""
    cited_by: Callable[[Work], Iterable[int | None]]
    """The ids that it cites."""
    ids: dict[int, None] = field(default_factory=dict)
    """Their ids, in the order in which they came."""
    cited: list[NDArray[np.int64]] = field(default_factory=lambda: [np.empty(0, dtype=np.int64)])
    """The ids that they cite, page by page."""

    def add(self, works: Sequence[Work], room: int | None = None) -> int:
        """Write those that are new, and no more than there is room; return their number."""
        new: dict[int, Work] = {}
        for work in works:
            number = self.number_of(work)
            if number is None:
                raise InputError(f"The API sent a work with the id {work.get('id')!r}; is corpus.api its base URL?")
            if number not in self.ids and len(new) != room:
                new.setdefault(number, work)
        self.write(new.values())
        self.ids |= dict.fromkeys(new)
        listed = map(self.cited_by, new.values())
        self.cited.append(np.array([cited for each in listed for cited in each if cited is not None], dtype=np.int64))
        return len(new)

    def add_cited(self, limit: int, per_call: int, request: Callable[[Sequence[int]], Sequence[Work]]) -> None:
        """Request the works that they cite and that are not among them, up to a limit: the most cited, then those of
        the smallest ids."""
        references, times = np.unique(np.concatenate(self.cited), return_counts=True)
        unknown = np.flatnonzero(~np.isin(references, self._numbers()))
        cited: list[int] = references[unknown[np.argsort(-times[unknown], kind="stable")][:limit]].tolist()
        for ids in progress(batches(cited, per_call), of="request cited works", unit="calls"):
            self.add(request(ids))
        lacking = len(set(cited) - self.ids.keys())
        report(f"{len(cited):,} works that are cited were requested; {lacking:,} are not there (merged or deleted).")

    def summary(self, pages: Pages, *, is_expanded: bool) -> None:
        """Report how many works and citations there are, and what they took."""
        within = int(np.count_nonzero(np.isin(np.concatenate(self.cited), self._numbers())))
        calls = f"{pages.api.calls:,} calls of this run, and {pages.kept:,} pages of earlier ones"
        report(f"{len(self.ids):,} works, with {within:,} citations among them; {calls}.")
        if within < TEACHING:
            advice = "widen the query" if is_expanded else "corpus.expand: {} adds the works that they cite"
            report(f"These teach little: from {TEACHING} on, an encoder finds more than BM25; {advice}.")

    def _numbers(self) -> NDArray[np.int64]:
        return np.fromiter(self.ids, dtype=np.int64, count=len(self.ids))


def batches(ids: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Slices of at most this size."""
    return [ids[first : first + size] for first in range(0, len(ids), size)]


def matching(manifest: Manifest) -> int:
    """The works that match, or the entries of a list that have an id, when the manifest was made."""
    (shard, *_), *_ = (dataset.shards for dataset in manifest.datasets.values())
    return shard.records if isinstance(shard, CopiedShard) else 0


def check_count(
    count: int, limit: int | None, query: Parameters, *, of: tuple[str, str], cost: str, alone: Callable[[], str] = str
) -> None:
    """Raise `NothingMatchesError` if no work matches a query, `InputError` if more than the limit. `of` has what they
    are called, and whose they are; `alone` tells how many match each part of the query."""
    (kind, owner), most = of, limit or USUAL_LIMIT
    words = " with ".join(f"{name}: {value}" for name, value in query.items())
    if not count:
        raise NothingMatchesError(f"No {kind} of {owner} matches {words}{alone()}; correct the query.")
    if count > most:
        remedy = f"{cost}; narrow the query, or set corpus.limit to {(count // 1000 + 1) * 1000}."
        raise InputError(f"{count:,} {kind}s of {owner} match {words}, more than corpus.limit ({most:,}): {remedy}")


def manifest_of_query(release: str, count: int, sizes: Mapping[str, int], readme: str) -> Manifest:
    """The manifest of what a query or a list gives, a shard a dataset, whose sizes are estimates; `latest` is this day.
    `count` is that of the works that match, or of the entries of a list that have an id."""
    datasets = {}
    for dataset, size in sizes.items():
        name = f"{dataset}.gz"
        shard = CopiedShard(name=name, path=name, bytes=size, needed=size, records=count, estimated=True)
        datasets[dataset] = Dataset(shards=(shard,), readme=readme)
    return Manifest(release=f"{datetime.now(UTC):%Y-%m-%d}" if release == LATEST else release, datasets=datasets)
