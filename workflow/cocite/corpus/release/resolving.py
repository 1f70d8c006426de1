"""The works that the papers of a list are, by their ids, and the entries without one.

Ids of a kind are requested together. An entry is looked up by its first id, and by the next one only if OpenAlex has no
work with it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from cocite.config.release_folder import WORKS
from cocite.core.progress import report
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_omissions, write_table
from cocite.core.tables.places import path_of
from cocite.corpus.release.paper_list import Id, ListedPaper
from cocite.corpus.release.works_api import Page, Parameters, Work

PER_CALL = 50
"""Ids in a call. The API takes 100, but DOIs are long, and the works of a DOI may be several."""
KINDS = {"ids.openalex": "OpenAlex id", "doi": "DOI", "ids.pmid": "PubMed id"}
SEPARATORS = frozenset(',|"')
"""Characters that values of a filter cannot have."""
NOT_IN_FILTERS = "a DOI with a comma, | or a quotation mark, which the API's filter cannot have"
SAME_WORK = "the work of an earlier entry"

Works = dict[Id, str]
"""Id → the work that has it."""


def resolve(papers: Sequence[ListedPaper], ask: Callable[[Parameters], Page], works: Works) -> Iterator[list[Work]]:
    """Yield the works that papers are, call by call; `works` then has their ids."""
    for rank in range(max(len(paper.ids) for paper in papers)):
        left = (paper.ids[rank] for paper in papers if len(paper.ids) > rank and _work_of(paper, works) is None)
        askable = sorted({each for each in left if not SEPARATORS & {*each[1]}})
        for name, group in groupby(askable, key=lambda each: each[0]):
            ids = list(group)
            for first in range(0, len(ids), PER_CALL):
                batch = ids[first : first + PER_CALL]
                yield list(_take(ask({"filter": f"{name}:{'|'.join(value for _, value in batch)}"}), {*batch}, works))


def _take(page: Page, batch: set[Id], works: Works) -> Iterator[Work]:
    """The first work of each id."""
    for work in page.works:
        ids = _ids_of(work)
        if any(each in batch and each not in works for each in ids):
            for each in ids:
                works.setdefault(each, work["id"])
            yield work


def _ids_of(work: Work) -> list[Id]:
    ids = work.get("ids") or {}
    urls = {"ids.openalex": work.get("id"), "doi": work.get("doi"), "ids.pmid": ids.get("pmid")}
    ends = {name: url.removeprefix("https://doi.org/") for name, url in urls.items() if isinstance(url, str)}
    return [(name, end.lower() if name == "doi" else end.rpartition("/")[2]) for name, end in ends.items()]


def _work_of(paper: ListedPaper, works: Works) -> str | None:
    return next((works[each] for each in paper.ids if each in works), None)


def write_unresolved(papers: Sequence[ListedPaper], works: Works, results: Path) -> None:
    """Write the tables of entries without a work of their own, and report how many there are."""
    rows: list[dict[str, Any]] = []
    firsts: dict[str, str] = {}
    for number, paper in enumerate(papers, start=1):
        work = _work_of(paper, works)
        if work is None or work in firsts:
            reason = _reason(paper) if work is None else SAME_WORK
            ids = [f"{name}:{value}" for name, value in paper.ids]
            earlier = firsts.get(work or "")
            rows.append({"entry": number, "place": paper.place, "ids": ids, "reason": reason, "earlier": earlier})
        else:
            firsts[work] = paper.place
    path = path_of(results, "unresolved", dataset=WORKS, part=0)
    write_table(path, "unresolved", pa.Table.from_pylist(rows, empty_schema(TABLES["unresolved"])))
    counts = Counter(row["reason"] for row in rows)
    write_omissions(path_of(results, "omissions", stage="corpus", step=f"download-{WORKS}-0"), counts)
    resolved = f"{len(papers) - len(rows):,} of {len(papers):,}"
    report(f"{resolved} entries gave a work; the table unresolved lists the others: {path}")
    for reason, count in counts.items():
        report(f"{count:,}: {reason}")


def _reason(paper: ListedPaper) -> str:
    """Why an entry has no work."""
    if not paper.ids:
        return paper.fault
    if any(SEPARATORS & {*value} for _, value in paper.ids):
        return NOT_IN_FILTERS
    return f"OpenAlex has no work with this {' or '.join(dict.fromkeys(KINDS[name] for name, _ in paper.ids))}"
