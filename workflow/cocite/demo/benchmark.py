"""Writes a small benchmark about a release, generated or real, in the layout of SciRepEval and with all its formats.

    <folder>/metadata/<config>/evaluation.jsonl        the texts
    <folder>/metadata/reviewers/metadata.jsonl         reviewers and their papers
    <folder>/test/<config>/{train,test}.jsonl          labels and judgements
    <folder>/test/paper_reviewer_matching/test_{hard,soft}.jsonl

The tasks have the names of SciRepEval's, since these stand for a format and a metric; what they ask is generated. What
the records of a real release do not hold, such as authors, is not asked.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cocite.demo.publications import Publications
from cocite.demo.ranking import (
    choose_reviewers,
    document_rows,
    judge_rankings,
    judge_reviewers,
    judgement_rows,
    pair_rows,
    search_rows,
)
from cocite.demo.supervised import supervised_tasks
from cocite.tables.files import atomic_path, write_text

Row = dict[str, Any]


def generate_benchmark(release: Path, output: Path, *, seed: int) -> None:
    """Write the benchmark about the release in the folder `release`. Raises `InputError` where there is none."""
    publications = Publications(release)
    with atomic_path(output) as folder:
        _write_supervised(folder, publications, seed)
        _write_rankings(folder, publications, seed)
        if publications.have_authors:
            _write_reviewing(folder, publications, seed)


def _write_supervised(folder: Path, publications: Publications, seed: int) -> None:
    for name, task in supervised_tasks(publications, seed).items():
        _write_rows(folder / "metadata" / name / "evaluation.jsonl", task.texts)
        _write_rows(folder / "test" / name / "train.jsonl", task.train)
        _write_rows(folder / "test" / name / "test.jsonl", task.test)


def _write_rankings(folder: Path, publications: Publications, seed: int) -> None:
    judged = judge_rankings(publications, seed)
    query_ids = {query: f"q{place}" for place, query in enumerate(judged["search"])}
    texts = {
        **({"same_author": pair_rows(publications, judged["same_author"])} if "same_author" in judged else {}),
        "relish": document_rows(publications, judged["relish"]),
        "scidocs_view_cite_read": document_rows(publications, judged["scidocs_cite"], judged["scidocs_cocite"]),
        "search": search_rows(publications, judged["search"], query_ids),
    }
    for name, rows in texts.items():
        _write_rows(folder / "metadata" / name / "evaluation.jsonl", rows)
    for name, scores in judged.items():
        rows = judgement_rows(scores, query_ids if name == "search" else {})
        _write_rows(folder / "test" / name / "test.jsonl", rows)


def _write_reviewing(folder: Path, publications: Publications, seed: int) -> None:
    reviewers = choose_reviewers(publications, seed)
    judgements = judge_reviewers(publications, reviewers, seed)
    papers = {paper.corpusid for written in reviewers.values() for paper in written} | {
        query for query, _ in judgements
    }
    documents = [publications.papers[paper].document for paper in sorted(papers)]
    _write_rows(folder / "metadata" / "paper_reviewer_matching" / "evaluation.jsonl", documents)
    known = [{"r_id": name, "papers": [str(paper.corpusid) for paper in papers]} for name, papers in reviewers.items()]
    _write_rows(folder / "metadata" / "reviewers" / "metadata.jsonl", known)
    for place, split in enumerate(("test_hard", "test_soft")):
        rows = [
            {"query_id": str(query), "cand_id": name, "score": scores[place]}
            for (query, name), scores in judgements.items()
        ]
        _write_rows(folder / "test" / "paper_reviewer_matching" / f"{split}.jsonl", rows)


def _write_rows(path: Path, rows: Iterable[Row]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
