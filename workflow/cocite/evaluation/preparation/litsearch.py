"""A folder of LitSearch, as it lies on the Hugging Face hub (Ajith et al., 2024, "LitSearch").

    query/full-*.parquet            questions: query, specificity, and corpusids of the papers that answer each
    corpus_clean/full-*.parquet     papers: corpusid, title, abstract

Each question is searched in the whole corpus. It is named by its row, counted from 0. The broad ones (specificity 0)
are one task, and the specific ones (1) the other, since the depths that are published differ. Full texts, which
`corpus_clean` holds beside the abstracts, are not read, and neither is `corpus_s2orc`.

The layout is that of the dataset's card, and of the code at github.com/princeton-nlp/LitSearch.
"""

from collections.abc import Sequence
from pathlib import Path

from cocite.config.benchmarks.litsearch import CORPUS, QUERIES, SPECIFICITIES, SPLIT
from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.rows import Row
from cocite.evaluation.preparation.builder import Builder, References, Texts
from cocite.evaluation.preparation.splits import read_split

READ = {CORPUS: ("corpusid", "title", "abstract"), QUERIES: ("query", "specificity", "corpusids")}
"""The columns that are read."""


def read_litsearch(
    folder: Path, declared: Sequence[Task], names: Sequence[str], *, keeps_fields: bool = False
) -> Builder:
    """Read the tasks of these names, or both. The papers have no further fields that could be kept.

    Raises `InputError` where a file is missing or a row is wrong, a task has no question, or too many of the papers
    that answer its questions are not in the corpus.
    """
    texts = Texts(keeps_fields=keeps_fields)
    papers = set()
    for row in progress(read_split(folder / CORPUS, SPLIT, READ[CORPUS]), of="Corpus", unit="paper"):
        papers.add(row.identifier("corpusid"))
        texts.add_paper("litsearch", row.identifier("corpusid"), row)
    questions: dict[str, list[tuple[str, Row]]] = {name: [] for name in SPECIFICITIES.values()}
    for number, row in enumerate(read_split(folder / QUERIES, SPLIT, READ[QUERIES])):
        questions[_specificity(row)].append((f"query-{number}", row))
    asked = [task for task in declared if not names or task.name in names]
    for task in asked:
        for name, row in questions[task.labels_folder]:
            row.require("query")
            texts.add_query(task.query_namespace, name, row.text("query"))
    builder = Builder(texts, {})
    for task in asked:
        if not questions[task.labels_folder]:
            raise InputError(f"{folder / QUERIES}: has no question for the task {task.name}.")
        with builder.documents_of(task) as references:
            _read_answers(questions[task.labels_folder], task, references, builder)
        collection = {str(texts.name(task.texts_folder, paper)) for paper in papers}
        builder.benchmark.collections[task.name] = collection
        builder.used |= collection
    return builder


def _specificity(row: Row) -> str:
    """Whether a question is broad or specific."""
    value = row.require("specificity")
    if value not in SPECIFICITIES:
        raise InputError(f"{row.place}: specificity must be 0 (broad) or 1 (specific), not {value!r}.")
    return SPECIFICITIES[value]


def _read_answers(questions: Sequence[tuple[str, Row]], task: Task, references: References, builder: Builder) -> None:
    """Add the papers that answer each question of a task."""
    for name, row in questions:
        query = references.find(row.place, task.query_namespace, name)
        for identifier in row.identifiers("corpusids"):
            builder.judge(task, query, references.judged(row.place, task.texts_folder, identifier), 1)
    unanswered = sum(
        not any(_is_there(builder, task, each) for each in row.identifiers("corpusids")) for _, row in questions
    )
    builder.omitted[f"task {task.name}: question without an answer in the corpus"] = unanswered


def _is_there(builder: Builder, task: Task, identifier: str) -> bool:
    return builder.texts.of(task.texts_folder, identifier) is not None
