"""A folder of BEIR datasets (Thakur et al., 2021, "BEIR").

    <dataset>/corpus.jsonl      documents: _id, title, text
    <dataset>/queries.jsonl     queries: _id, text
    <dataset>/qrels/test.tsv    judgements: query, document, relevance, behind a line of names

Queries are searched in the whole corpus of their dataset. Only queries with a judgement are kept.
"""

from collections.abc import Sequence
from pathlib import Path

from cocite.config.tasks import Task
from cocite.evaluation.preparation.builder import Builder, Texts
from cocite.evaluation.preparation.files import present_tasks, read_delimited, read_lines, relevance
from cocite.ground.progress import progress


def read_beir(folder: Path, declared: Sequence[Task], names: Sequence[str]) -> Builder:
    """Read the tasks of these names from the benchmark in `folder`, or all that it holds where none are named.

    Raises `InputError` where a task is named whose dataset the folder does not hold, a file is missing or a row is
    wrong.
    """
    present, omitted = present_tasks(folder, declared, names, lambda task: task.labels_folder)
    texts = Texts()
    corpora = {task.name: _read_texts(folder / task.labels_folder, task, texts) for task in present}
    builder = Builder(texts, omitted)
    for task in progress(present, of="Tasks", unit="task"):
        with builder.documents_of(task) as references:
            queries = set()
            path = folder / task.labels_folder / "qrels/test.tsv"
            for place, (query_id, document_id, score) in read_delimited(path, 3, "\t", header=True):
                queries.add(query_id)
                query = references.find(place, task.query_namespace, query_id)
                document = references.find(place, task.texts_folder, document_id)
                builder.judge(task, query, document, relevance(score, place))
        without = f"task {task.name}: query without text, or without a judged document with text"
        builder.omitted[without] = len(queries) - len(builder.benchmark.judgements[task.name])
        named = {str(texts.name(task.texts_folder, identifier)) for identifier in corpora[task.name]}
        builder.benchmark.collections[task.name] = named
        builder.used |= named
    return builder


def _read_texts(folder: Path, task: Task, texts: Texts) -> list[str]:
    """Take in the queries and the corpus of a dataset; return the ids of the corpus."""
    for row in read_lines(folder / "queries.jsonl"):
        texts.add(task.query_namespace, row.identifier("_id"), (row.text("text"), None, ()))
    identifiers = []
    for row in progress(read_lines(folder / "corpus.jsonl"), of=f"Corpus of {task.name}", unit="document"):
        identifiers.append(row.identifier("_id"))
        texts.add(task.texts_folder, identifiers[-1], (row.text("title"), row.text("text"), ()))
    return identifiers
