"""From a folder of BEIR datasets to the tables of a benchmark (Thakur et al., 2021, "BEIR").

    <dataset>/corpus.jsonl      documents: _id, title, text
    <dataset>/queries.jsonl     queries: _id, text
    <dataset>/qrels/test.tsv    judgements: query, document, relevance, behind a line of names

Queries are searched in the whole corpus of their dataset. Only queries with a judgement are kept.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cocite.config.benchmarks.beir import TASKS
from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, Prepared, write_benchmark
from cocite.evaluation.preparation.files import present_tasks, read_delimited, read_lines, relevance
from cocite.evaluation.preparation.texts import References, Texts, chosen_texts
from cocite.ground.progress import progress


def prepare_beir(folder: Path, *, tasks: Sequence[str] = (), files: Prepared, declared: Sequence[Task] = TASKS) -> None:
    """Write the tables of these tasks of the benchmark in `folder`; where none are named, of all that it holds.

    Raises `InputError` where a task is named whose dataset the folder does not hold, a file is missing or a row is
    wrong.
    """
    folders = {task: folder / task.labels_folder for task in declared if not tasks or task.name in tasks}
    present, omitted = present_tasks(folders, must_all=bool(tasks))
    texts = Texts()
    corpora = {task.name: _read_texts(folders[task], task, texts) for task in present}
    benchmark, used = Benchmark(), set[str]()
    for task in progress(present, of="Tasks", unit="task"):
        references = References(texts, f"the task {task.name}")
        _read_judgements(folders[task], task, references, benchmark, omitted)
        references.check()
        omitted[f"task {task.name}: document without text"] = references.unknown
        named = {str(texts.name(task.texts_folder, identifier)) for identifier in corpora[task.name]}
        benchmark.collections[task.name] = named
        used |= references.found | named
    write_benchmark(benchmark, chosen_texts(texts, used, omitted), dict(omitted), files)


def _read_texts(folder: Path, task: Task, texts: Texts) -> list[str]:
    """Take in the queries and the corpus of a dataset; return the ids of the corpus."""
    for row in read_lines(folder / "queries.jsonl"):
        texts.add(task.query_namespace, row.identifier("_id"), (row.text("text"), None, ()))
    identifiers = []
    for row in progress(read_lines(folder / "corpus.jsonl"), of=f"Corpus of {task.name}", unit="document"):
        identifiers.append(row.identifier("_id"))
        texts.add(task.texts_folder, identifiers[-1], (row.text("title"), row.text("text"), ()))
    return identifiers


def _read_judgements(
    folder: Path, task: Task, references: References, benchmark: Benchmark, omitted: Counter[str]
) -> None:
    judgements = benchmark.judgements.setdefault(task.name, {})
    asked = set()
    for place, (query_id, document_id, score) in read_delimited(folder / "qrels" / "test.tsv", 3, "\t", header=True):
        asked.add(query_id)
        query = references.find(place, task.query_namespace, query_id)
        document = references.find(place, task.texts_folder, document_id)
        if query is not None and document is not None:
            found = judgements.setdefault(query, {})
            omitted[f"task {task.name}: repeated row (the first counts)"] += document in found
            found.setdefault(document, relevance(score, place))
    omitted[f"task {task.name}: query without text, or without a judged document with text"] = len(asked) - len(
        judgements
    )
