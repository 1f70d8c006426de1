"""A folder with the file of DORIS-MAE (Wang et al., 2023, "DORIS-MAE").

DORIS-MAE_dataset_v1.json has, among others, three lists:

    Query           query_text, aspects (aspect → its sub-aspects), candidate_pool (abstracts)
    Annotation      aspect_id, abstract_id, score: 0, 1 or 2
    Corpus          abstract_id, title, original_abstract

A query is named by its place in the list, counted from 0. The grade of a candidate is the sum of its scores over the
aspects and sub-aspects of the query; it is relevant where their mean is 1 or more. A query without a relevant candidate
is left out of the task doris_mae, as in the released evaluation. The file is read in three passes, an object at a time:
most of its 360,000 abstracts are in no pool. The queries for parts of a description that can be derived from it are not
made here.

The layout is that of the code at github.com/Real-Doris-Mae/Doris-Mae-Dataset; the file is record 8299749 of Zenodo.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.rows import Row, read_items
from cocite.evaluation.preparation.builder import Builder, Texts

FILE = "DORIS-MAE_dataset_v1.json"
NAMESPACE, OF_QUERIES = "doris_mae", "doris_mae-query"
SCORES = (0, 1, 2)
"""How far an abstract meets an aspect: not, in part, in full."""


class Query(NamedTuple):
    """A query, the aspects that its candidates are scored on, and the candidates."""

    name: str
    row: Row
    aspects: frozenset[str]
    pool: list[str]


Scores = Mapping[tuple[str, str], int]
"""The score of each aspect and abstract."""


def read_doris_mae(
    folder: Path, declared: Sequence[Task], names: Sequence[str], *, keeps_fields: bool = False
) -> Builder:
    """Read the tasks of these names, or both. The abstracts have no further fields that could be kept.

    Raises `InputError` where the file is missing or something in it is wrong, and where too many candidates are not in
    its corpus.
    """
    path = folder / FILE
    queries = [_query(row, number) for number, row in enumerate(read_items(path, "Query"))]
    if not queries:
        raise InputError(f"{path}: the list Query is missing or empty.")
    texts = _read_texts(path, queries, Texts(_asked(queries), keeps_fields=keeps_fields))
    builder = Builder(texts, {})
    scores = _read_scores(path, queries, builder)
    for task in declared:
        if not names or task.name in names:
            _judge(task, queries, scores, builder)
    return builder


def _query(row: Row, number: int) -> Query:
    row.require("query_text")
    aspects = row.nested("aspects")
    if not aspects.values:
        raise InputError(f"{row.place}: aspects is empty, so that no candidate can be graded.")
    below = [aspect for name in aspects.values for aspect in aspects.identifiers(name)]
    return Query(f"query-{number}", row, frozenset([*aspects.values, *below]), row.identifiers("candidate_pool"))


def _asked(queries: Sequence[Query]) -> set[tuple[str, str]]:
    """The texts that are kept: those of the queries and of their candidates."""
    pools = {(NAMESPACE, identifier) for query in queries for identifier in query.pool}
    return pools | {(OF_QUERIES, query.name) for query in queries}


def _read_texts(path: Path, queries: Sequence[Query], texts: Texts) -> Texts:
    for query in queries:
        texts.add_query(OF_QUERIES, query.name, query.row.text("query_text"))
    for row in progress(read_items(path, "Corpus"), of="Corpus", unit="abstract"):
        texts.add(NAMESPACE, row.identifier("abstract_id"), (row.text("title"), _abstract(row), ()))
    return texts


def _abstract(row: Row) -> str | None:
    """An abstract, whose lines are broken as they were on the page, as one line."""
    text = row.text("original_abstract")
    return " ".join(text.split()) if text else None


def _read_scores(path: Path, queries: Sequence[Query], builder: Builder) -> Scores:
    """The score of each candidate for each aspect of its query; of repeated ones, the first counts."""
    asked = {(aspect, identifier) for query in queries for aspect in query.aspects for identifier in query.pool}
    scores: dict[tuple[str, str], int] = {}
    for row in progress(read_items(path, "Annotation"), of="Annotations", unit="score"):
        pair = row.identifier("aspect_id"), row.identifier("abstract_id")
        score = row.require("score")
        if isinstance(score, bool) or score not in SCORES:
            raise InputError(f"{row.place}: score must be 0, 1 or 2, not {score!r}.")
        if pair in asked:
            builder.omitted["score that is repeated (the first counts)"] += pair in scores
            scores.setdefault(pair, int(score))
    builder.omitted["aspect of a candidate without a score (counts 0)"] = len(asked) - len(scores)
    return scores


def _judge(task: Task, queries: Sequence[Query], scores: Scores, builder: Builder) -> None:
    """Add the judgements of a task: the sums, or which of them are relevant."""
    knows_grades = task.name.endswith("_graded")
    without = f"task {task.name}: query without a relevant candidate (left out)"
    with builder.documents_of(task) as references:
        for query in queries:
            place, name = query.row.place, references.find(query.row.place, OF_QUERIES, query.name)
            found = {each: references.find(place, NAMESPACE, each) for each in query.pool}
            grades = {each: sum(scores.get((aspect, each), 0) for aspect in query.aspects) for each in query.pool}
            if not knows_grades:
                grades = {each: int(grade >= len(query.aspects)) for each, grade in grades.items()}
                builder.omitted[without] += not any(grades.values())
            if knows_grades or any(grades.values()):
                for each, grade in grades.items():
                    builder.judge(task, name, found[each], grade)
