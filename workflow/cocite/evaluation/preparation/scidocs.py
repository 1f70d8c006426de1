"""A folder in SciDocs' own layout (Cohan et al., 2020, "SPECTER").

paper_metadata_{mag_mesh,view_cite_read,recomm}.json    texts: an object with a member for each paper
{mag,mesh}/{train,test}.csv                             labels: paper, class
{cite,cocite,coview,coread}/test.qrel                   judgements: query, 0, candidate, relevance
recomm/{train,test}.csv, recomm/propensity_scores.json  clicks: query, clicked paper, papers in the order shown
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.rows import Row, read_delimited, read_members, read_objects
from cocite.core.written_ids import distinct
from cocite.evaluation.benchmark import Click
from cocite.evaluation.preparation.builder import Builder, References, grade

RECOMMENDATION = "recomm"
FOLDERS = {"scidocs_cite": "cite", "scidocs_cocite": "cocite", "scidocs_view": "coview", "scidocs_read": "coread"}
"""The folder of each task whose folder has not its name."""
METADATA = {"mag": "mag_mesh", "mesh": "mag_mesh", RECOMMENDATION: "recomm"}
"""The file with the texts of a task; the other tasks share view_cite_read."""
NOW, SPAN = 2020, 20
"""The age of a paper is counted in spans of 20 years before 2020, as released."""
TOKENS = re.compile(r"\w+|[^\w\s]")

Ids = NDArray[np.uint64]


class Paper(NamedTuple):
    """What the ranker knows of a paper: digests of the ids that its metadata list, the words of its title, its year."""

    digest: np.uint64
    authors: Ids
    references: Ids
    cited_by: Ids
    title: frozenset[str]
    year: float | None


def read_scidocs(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """Read the tasks of these names from the benchmark in `folder`, or all of them if none are named."""
    present = builder.present_tasks(folder, declared, names, _folder)
    papers: dict[str, Paper] = {}
    for name in progress(sorted({_metadata(task) for task in present}), of="Texts", unit="file"):
        for identifier, row in read_objects(folder / f"paper_metadata_{name}.json"):
            builder.texts.add_paper(name, identifier, row)
            if name == RECOMMENDATION:
                papers[identifier] = paper_of(identifier, row)
    for task in progress(present, of="Tasks", unit="task"):
        at = folder / _folder(task)
        with builder.documents_of(task) as references:
            if task.name == RECOMMENDATION:
                _read_clicks(at, task, papers, references, builder)
            elif task.is_supervised:
                for split in task.splits:
                    for place, (identifier, label) in _rows_of(at / f"{split}.csv", 2, ",", header=True):
                        builder.label(task, split, references.find(place, _metadata(task), identifier), [label])
            else:
                for place, (one, _, other, score) in _rows_of(at / "test.qrel", 4, " ", header=False):
                    query, candidate = (references.find(place, _metadata(task), each) for each in (one, other))
                    builder.judge(task, query, candidate, max(grade(score, place), 0))


def _rows_of(path: Path, columns: int, delimiter: str, *, header: bool) -> Iterator[tuple[str, list[str]]]:
    """Place and fields of each row of a file of text. Raises `InputError` for a row with another number of fields."""
    rows, place = read_delimited(path, delimiter), ""
    if header:
        next(rows, None)
    for number, row in rows:
        place = f"{path}, line {number}"
        if len(row) != columns:
            raise InputError(f"{place}: has {len(row)} fields, where {columns} are expected.")
        yield place, row
    if not place:
        raise InputError(f"{path}: has no rows.")


def _folder(task: Task) -> str:
    return FOLDERS.get(task.name, task.name)


def _metadata(task: Task) -> str:
    return METADATA.get(task.name, "view_cite_read")


def _read_clicks(folder: Path, task: Task, papers: dict[str, Paper], references: References, builder: Builder) -> None:
    """Add the clicks to train and to evaluate a ranker on; each is evaluated separately, by its inverse propensity."""
    of = builder.benchmark
    judgements, weights = of.judgements.setdefault(task.name, {}), of.weights.setdefault(task.name, {})
    clicks = of.clicks.setdefault(task.name, [])
    path = folder / "propensity_scores.json"
    propensities: Any = dict(read_members(path)).get("scores")
    is_list = isinstance(propensities, list) and len(propensities) > 0
    if not is_list or not all(isinstance(each, int | float) and each > 0 for each in propensities):
        raise InputError(f"{path}: must contain a list of positive numbers under the key scores.")
    for split in ("train", "test"):
        number = Counter[str]()
        for place, (query_id, clicked_id, listed) in _rows_of(folder / f"{split}.csv", 3, ",", header=True):
            shown = [identifier.strip() for identifier in listed.split(",")]
            if clicked_id not in shown[: len(propensities)]:
                raise InputError(
                    f"{place}: {clicked_id!r}, which was clicked, is not among the papers that were shown, or at a "
                    f"place beyond the {len(propensities)} of propensity_scores.json."
                )
            query = references.find(place, task.name, query_id)
            found = {identifier: references.find(place, task.name, identifier) for identifier in shown}
            if query is None or found[clicked_id] is None:
                builder.omitted[f"task {task.name}: click whose query or clicked paper has no text"] += 1
                continue
            number[query] += 1
            name = query if number[query] == 1 else f"again{number[query]}:{query}"
            there = {each: document for each, document in found.items() if document is not None}
            for each, candidate in there.items():
                known, at = features(papers[query_id], papers[each]), shown.index(each) + 1
                clicks.append(Click(split, name, at, query, candidate, each == clicked_id, known))
            if split == "test":
                if number[query] > 1:
                    builder.further_names[name] = query
                judgements[name] = {candidate: int(each == clicked_id) for each, candidate in there.items()}
                weights[name] = 1 / propensities[shown.index(clicked_id)]


def paper_of(identifier: str, row: Row) -> Paper:
    """The contents of a row of paper_metadata_recomm.json; missing lists are empty, a missing year is unknown."""
    year, title = row.values.get("year"), frozenset(TOKENS.findall(row.text("title") or ""))
    lists = {name: _digests(row.values.get(name)) for name in ("authors", "references", "cited_by")}
    known = float(year) if isinstance(year, int | float) else None
    return Paper(_digests([identifier])[0], **lists, title=title, year=known)


def _digests(values: Any) -> Ids:
    listed = values if isinstance(values, list) else []
    digests = [int.from_bytes(blake2b(str(value).encode(), digest_size=8).digest()) for value in listed]
    return distinct(np.array(digests, dtype=np.uint64))


def features(query: Paper, candidate: Paper) -> list[float]:
    """The nine features of a candidate that need no embedding, as the released code of SciDocs defines them: Jaccard
    similarities, who cites whom, the candidate's age and the difference to the query's, log(1 + citations) / 10."""
    age = None if candidate.year is None else (NOW - candidate.year) / SPAN
    newer = None if query.year is None or candidate.year is None else (query.year - candidate.year) / SPAN
    return [
        _jaccard(query.authors, candidate.authors),
        len(query.title & candidate.title) / max(1, len(query.title | candidate.title)),
        _jaccard(query.cited_by, candidate.cited_by),
        _jaccard(query.references, candidate.references),
        _cites(candidate, query),
        _cites(query, candidate),
        *(0.0 if years is None else max(-1.0, min(1.0, years)) for years in (age, newer)),
        math.log(len(candidate.cited_by) + 1) / 10,
    ]


def _jaccard(one: Ids, other: Ids) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(1, len(one) + len(other) - shared)


def _cites(one: Paper, other: Paper) -> float:
    return float(other.digest in one.references or one.digest in other.cited_by)
