"""A corpus from a query of OpenAlex's API or a list of papers: works, those that they cite, and those that cite them.

They become one file of works in the layout of a copy, gzipped JSON Lines, so that all that follows is what a copy has.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from isal import igzip

from cocite.config.release_folder import WORKS
from cocite.core.atomic import atomic_path
from cocite.core.progress import about, progress, report
from cocite.corpus.release.copies import columns_downloaded
from cocite.corpus.release.manifest import CopiedShard, Dataset, Manifest
from cocite.corpus.release.paper_list import Found, Id, Register, gather_listed, read_papers
from cocite.corpus.release.query import (
    ADDED_BY_WORK,
    Gathered,
    Pages,
    Parameters,
    Work,
    batches,
    check_count,
    matching,
    pinned,
)
from cocite.corpus.release.works_api import PER_PAGE, WorksApi
from cocite.corpus.release.works_manifest import README

if TYPE_CHECKING:
    from cocite.corpus.sources.openalex import OpenAlex

SHARD = "works.gz"
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


def list_query(source: "OpenAlex", release: str) -> Manifest:
    """The manifest of what a query gives; `latest` is pinned to this day.

    Raises `InputError` if no work matches, or more than the limit, or if a list has no ids.
    """
    if source.list is not None:
        return _manifest(source, release, sum(bool(paper.ids) for paper in read_papers(Path(source.list))))
    api = WorksApi(source.location)
    count = api.count(source.query)
    cost, of = _cost(count, _price(source)), ("work", "OpenAlex")
    check_count(count, source.limit, source.query, of=of, cost=cost, alone=lambda: _alone(api, source))
    return _manifest(source, release, count)


def _manifest(source: "OpenAlex", release: str, count: int) -> Manifest:
    size = PACKED_OF_WORK * (count + sum(_most_added(source, count).values()))
    shard = CopiedShard(name=SHARD, path=SHARD, bytes=size, needed=size, records=count, estimated=True)
    return Manifest(release=pinned(release), datasets={WORKS: Dataset(shards=(shard,), readme=README)})


def cost_of_query(source: "OpenAlex", manifest: Manifest) -> str:
    """The calls, dollars and time for the works that match by a manifest, and for those that are added, in words."""
    count = matching(manifest)
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
    return (
        f"about {calls:,} call{'s' * (calls != 1)} of the API, ${calls * price:.2f} by its price list, {about(calls)}"
    )


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
        with igzip.open(folder / SHARD, "wb") as lines:
            gathered = Gathered(
                write=lambda works: lines.write("".join(f"{json.dumps(work)}\n" for work in works).encode()),
                number_of=lambda work: _number(work.get("id")),
                cited_by=lambda work: map(_number, work.get("referenced_works") or ()),
            )
            if source.list is not None:
                register = Register("OpenAlex", _refusal, lambda ids: _look_up(ids, pages))
                gather_listed(Path(source.list), register, gathered, results, dataset=WORKS)
            else:
                _gather_matching(source, matching(manifest), pages, gathered)
            _expand(source, pages, gathered)
    gathered.summary(pages, is_expanded=source.expand is not None)
    shutil.rmtree(state)


def _refusal(listed: Id) -> str | None:
    """Why an id cannot be looked up, if it cannot."""
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
    ids = work.get("ids") or {}
    urls = {"ids.openalex": work.get("id"), "doi": work.get("doi"), "ids.pmid": ids.get("pmid")}
    ends = {name: url.removeprefix("https://doi.org/") for name, url in urls.items() if isinstance(url, str)}
    return [(name, end.lower() if name == "doi" else end.rpartition("/")[2]) for name, end in ends.items()]


def _gather_matching(source: "OpenAlex", count: int, pages: "Pages", gathered: "Gathered") -> None:
    for page in progress(pages.all(source.query), of="request works", unit="calls", total=_calls(count)):
        gathered.add(page.works)
    if len(gathered.ids) < count:
        report(f"{count - len(gathered.ids):,} of the {count:,} works that matched at first did not come.")


def _expand(source: "OpenAlex", pages: "Pages", gathered: "Gathered") -> None:
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
    """The number in the id of a work."""
    found = ID.fullmatch(url) if isinstance(url, str) else None
    return int(found[1]) if found else None
