"""The works that the papers of a list are, by their ids, and the entries without one.

An entry is looked up by its first id, and by the next one only if the API has no work with it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cocite.core.progress import report
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_omissions, write_table
from cocite.core.tables.places import path_of
from cocite.corpus.release.paper_list import Id, ListedPaper
from cocite.corpus.release.query import Work

KINDS = {"ids.openalex": "OpenAlex id", "doi": "DOI", "ids.pmid": "PubMed id", "s2": "id of Semantic Scholar"}
SAME_WORK = "the work of an earlier entry"

Works = dict[Id, str]
"""Id → the work that has it."""
Found = tuple[Work, str, Sequence[Id]]
"""A work, its own id, and all ids that name it."""


@dataclass(frozen=True)
class Register:
    """An API that papers are looked up in."""

    name: str
    refusal: Callable[[Id], str | None]
    """Why an id cannot be looked up there, if it cannot."""
    look_up: Callable[[Sequence[Id]], Iterator[Sequence[Found]]]
    """The works that have the ids, call by call."""


def resolve(papers: Sequence[ListedPaper], register: Register, works: Works) -> Iterator[list[Work]]:
    """Yield the works that papers are, call by call; `works` then has their ids."""
    known = [[each for each in paper.ids if register.refusal(each) is None] for paper in papers]
    for rank in range(max(map(len, known))):
        left = {ids[rank] for ids in known if len(ids) > rank and _work_of(ids, works) is None}
        for found in register.look_up(sorted(left)):
            yield list(_take(found, left, works))


def _take(found: Sequence[Found], left: set[Id], works: Works) -> Iterator[Work]:
    """The first work of each id."""
    for work, own, ids in found:
        if any(each in left and each not in works for each in ids):
            for each in ids:
                works.setdefault(each, own)
            yield work


def _work_of(ids: Sequence[Id], works: Works) -> str | None:
    return next((works[each] for each in ids if each in works), None)


def write_unresolved(
    papers: Sequence[ListedPaper], register: Register, works: Works, results: Path, *, dataset: str
) -> None:
    """Write the tables of entries without a work of their own, and report how many there are."""
    rows: list[dict[str, Any]] = []
    firsts: dict[str, str] = {}
    for number, paper in enumerate(papers, start=1):
        work = _work_of(paper.ids, works)
        if work is None or work in firsts:
            reason = _reason(paper, register) if work is None else SAME_WORK
            ids = [f"{name}:{value}" for name, value in paper.ids]
            earlier = firsts.get(work or "")
            rows.append({"entry": number, "place": paper.place, "ids": ids, "reason": reason, "earlier": earlier})
        else:
            firsts[work] = paper.place
    path = path_of(results, "unresolved", dataset=dataset, part=0)
    write_table(path, "unresolved", pa.Table.from_pylist(rows, empty_schema(TABLES["unresolved"])))
    counts = Counter(row["reason"] for row in rows)
    write_omissions(path_of(results, "omissions", stage="corpus", step=f"download-{dataset}-0"), counts)
    resolved = f"{len(papers) - len(rows):,} of {len(papers):,}"
    report(f"{resolved} entries gave a work; the table unresolved lists the others: {path}")
    for reason, count in counts.items():
        report(f"{count:,}: {reason}")


def _reason(paper: ListedPaper, register: Register) -> str:
    """Why an entry has no work."""
    if not paper.ids:
        return paper.fault
    refused = [register.refusal(each) for each in paper.ids]
    if all(refused):
        return str(refused[0])
    kinds = dict.fromkeys(KINDS[name] for (name, _), reason in zip(paper.ids, refused, strict=True) if not reason)
    return f"{register.name} has no work with this {' or '.join(kinds)}"
