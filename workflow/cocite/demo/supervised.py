"""The generated classification and regression tasks: a paper's texts, and what its record says about it.

Each has the name of the SciRepEval task whose format it has, whatever it asks. What the records of a release do not
hold is not asked: without fields of study there is neither biomimicry nor fos.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from cocite.demo.publications import Paper, Publications, draw

TRAIN, TEST = 300, 150
_VENUES = 6
_LIVING = {"Biology", "Medicine"}

Label: TypeAlias = int | float | list[int]


@dataclass(frozen=True, kw_only=True)
class SupervisedTask:
    """The text rows and the label rows of a task."""

    texts: list[dict[str, Any]]
    train: list[dict[str, Any]]
    test: list[dict[str, Any]]


def supervised_tasks(publications: Publications, seed: int) -> dict[str, SupervisedTask]:
    """Each task by its name: 300 papers to train on and 150 to test; two to one where there are fewer."""
    papers = list(publications.papers.values())
    fields = sorted({field for paper in papers for field in paper.fields})
    counts = Counter(paper.venue for paper in papers if paper.venue)
    venues = sorted(sorted(counts), key=lambda name: -counts[name])[:_VENUES]
    tasks = {name: _task(papers, label, seed) for name, label in _label_functions(fields, venues).items()}
    return {name: task for name, task in tasks.items() if task.test}


def _label_functions(fields: list[str], venues: list[str]) -> dict[str, Callable[[Paper], Label | None]]:
    """What each task asks of a paper; None where the paper's record does not say."""
    return {
        "biomimicry": lambda paper: int(paper.fields[0] in _LIVING) if paper.fields else None,
        "drsm": lambda paper: venues.index(paper.venue) if paper.venue in venues else None,
        "fos": lambda paper: [int(field in paper.fields) for field in fields] if paper.fields else None,
        "cite_count": lambda paper: math.log1p(paper.citations),
        "pub_year": lambda paper: paper.year,
    }


def _task(papers: list[Paper], label: Callable[[Paper], Label | None], seed: int) -> SupervisedTask:
    labelled = {paper.corpusid: (paper, label(paper)) for paper in papers if label(paper) is not None}
    chosen = draw(labelled, TRAIN + TEST, seed, "demo", "benchmark")
    rows = [{"paper_id": str(corpusid), "label": labelled[corpusid][1]} for corpusid in chosen]
    split = round(len(rows) * TRAIN / (TRAIN + TEST))
    texts = [_text(labelled[corpusid][0]) for corpusid in chosen]
    return SupervisedTask(texts=texts, train=rows[:split], test=rows[split:])


def _text(paper: Paper) -> dict[str, Any]:
    return {**paper.document, "venue": paper.venue, "fields": list(paper.fields)}
