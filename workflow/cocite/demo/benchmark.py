"""Writes a small benchmark about a release, generated or real, in the layout of SciRepEval and with all its formats.

    <folder>/metadata/<config>/evaluation.jsonl        the texts
    <folder>/metadata/reviewers/metadata.jsonl         reviewers and their papers
    <folder>/test/<config>/{train,test}.jsonl          labels and judgements
    <folder>/test/paper_reviewer_matching/test_{hard,soft}.jsonl

Each task has the name of the SciRepEval task whose format and metric it has; what it asks is generated. What the
records of a release do not hold is not asked: without authors there are neither reviewers nor same_author, without
fields of study neither biomimicry nor fos.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from cocite.demo.publications import Paper, Publications, Row, draw
from cocite.demo.ranking import ranking_files, reviewing_files
from cocite.tables.files import atomic_path, write_text

TRAIN, TEST = 300, 150
_VENUES = 6
_LIVING = {"Biology", "Medicine"}

Label: TypeAlias = int | float | list[int]


def generate_benchmark(release: Path, output: Path, *, seed: int) -> None:
    """Write the benchmark about the release in the folder `release`. Raises `InputError` where there is none."""
    publications = Publications(release)
    with atomic_path(output) as folder:
        files = _supervised_files(publications, seed) | ranking_files(publications, seed)
        if publications.of_author:
            files |= reviewing_files(publications, seed)
        for path, rows in files.items():
            write_text(folder / path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _supervised_files(publications: Publications, seed: int) -> dict[str, list[Row]]:
    """Classification and regression: 300 papers to train on and 150 to test; two to one where there are fewer."""
    files = {}
    for task, label in _label_functions(publications).items():
        labels = {corpusid: label(paper) for corpusid, paper in publications.papers.items()}
        known = [corpusid for corpusid, value in labels.items() if value is not None]
        chosen = draw(known, TRAIN + TEST, seed, "demo", "benchmark")
        split = round(len(chosen) * TRAIN / (TRAIN + TEST))
        if chosen[split:]:
            rows = [{"paper_id": str(corpusid), "label": labels[corpusid]} for corpusid in chosen]
            files[f"metadata/{task}/evaluation.jsonl"] = [
                {**paper.document, "venue": paper.venue, "fields": list(paper.fields)}
                for paper in map(publications.papers.__getitem__, chosen)
            ]
            files[f"test/{task}/train.jsonl"], files[f"test/{task}/test.jsonl"] = rows[:split], rows[split:]
    return files


def _label_functions(publications: Publications) -> dict[str, Callable[[Paper], Label | None]]:
    """What each task asks of a paper; None where the paper's record does not say."""
    papers = publications.papers.values()
    fields = sorted({field for paper in papers for field in paper.fields})
    counts = Counter(paper.venue for paper in papers if paper.venue)
    venues = sorted(sorted(counts), key=lambda name: -counts[name])[:_VENUES]
    return {
        "biomimicry": lambda paper: int(paper.fields[0] in _LIVING) if paper.fields else None,
        "drsm": lambda paper: venues.index(paper.venue) if paper.venue in venues else None,
        "fos": lambda paper: [int(field in paper.fields) for field in fields] if paper.fields else None,
        "cite_count": lambda paper: math.log1p(paper.citations),
        "pub_year": lambda paper: paper.year,
    }
