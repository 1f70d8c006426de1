"""Datasets in BEIR's layout (Thakur et al., 2021, "BEIR").

    corpus.jsonl        documents: _id, title, text
    queries.jsonl       queries: _id, text, and a title where a query is a document itself
    qrels/test.tsv      judgements: query, document, relevance, behind a line of names

Queries are searched in the whole corpus of their dataset. Only queries with a judgement are kept. What stands in the
judgements and nowhere else is counted: no model can find it, and nDCG is over what can be found. A document with the id
of a query is never among its hits, as in BEIR's own evaluation (`ignore_identical_ids`), whatever it is judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cocite.config.benchmarks.beir import CORPUS, QRELS, QUERIES, BeirSettings, task_of
from cocite.config.tasks import Task
from cocite.evaluation.preparation.builder import Builder, Texts
from cocite.evaluation.preparation.files import present_tasks, read_delimited, relevance
from cocite.ground.errors import InputError
from cocite.ground.progress import progress
from cocite.ground.rows import Row, read_lines

LARGEST_UNKNOWN_SHARE = 0.5
"""Share of the ids in the judgements that may be unknown: an accident leaves some of them, another corpus most."""


def prepare_beir(settings: BeirSettings, names: Sequence[str], *, tables: Path, omissions: Path) -> None:
    """Write the tables of a benchmark: of the tasks of these names, or of all datasets where none are named.

    Raises `InputError` where there is no such dataset, a file is missing or a row is wrong, and where no document of a
    dataset has a text.
    """
    folders = {task_of(name): Path(folder) for name, folder in settings.datasets.items()}
    known = [task.name for task in folders]
    for name in names:
        if name not in known:
            raise InputError(f"--tasks: {name} is the task of no dataset; there are {', '.join(known) or 'none'}.")
    asked = {task: folder for task, folder in folders.items() if not names or task.name in names}
    builder = read_datasets(asked, settings, {})
    builder.check_texts({task.name: folder for task, folder in asked.items()})
    builder.write(tables=tables, omissions=omissions)


def read_beir(folder: Path, declared: Sequence[Task], names: Sequence[str]) -> Builder:
    """Read the tasks of these names, of a benchmark of another kind, or all that the folder holds.

    Raises `InputError` where a task is named whose dataset the folder does not hold, a file is missing or a row is
    wrong.
    """
    present, omitted = present_tasks(folder, declared, names, lambda task: task.labels_folder)
    return read_datasets({task: folder / task.labels_folder for task in present}, BeirSettings(), omitted)


def read_datasets(folders: Mapping[Task, Path], settings: BeirSettings, omitted: Mapping[str, int]) -> Builder:
    """Read the dataset of each task. Raises `InputError` where a file is missing or a row is wrong."""
    texts = Texts()
    corpora = {task.name: _read_texts(folder, task, settings, texts) for task, folder in folders.items()}
    builder = Builder(texts, omitted)
    for task, folder in progress(folders.items(), of="Tasks", unit="task"):
        queries, corpus = corpora[task.name]
        _read_judgements(folder / QRELS.format(split=settings.split), task, queries, builder)
        named = {str(texts.name(task.texts_folder, identifier)) for identifier in corpus}
        builder.benchmark.collections[task.name] = named
        builder.used |= named
    return builder


def _read_texts(folder: Path, task: Task, settings: BeirSettings, texts: Texts) -> tuple[set[str], set[str]]:
    """Take in the queries and the corpus of a dataset; return the ids of either."""
    queries, corpus = set(), set()
    for row in read_lines(folder / QUERIES):
        queries.add(row.identifier("_id"))
        _add_query(row, task, settings, texts)
    for row in progress(read_lines(folder / CORPUS), of=f"Corpus of {task.name}", unit="document"):
        corpus.add(row.identifier("_id"))
        texts.add(task.texts_folder, row.identifier("_id"), (row.text("title"), row.text("text"), ()))
    if not corpus:
        raise InputError(f"{folder / CORPUS}: has no rows.")
    return queries, corpus


def _add_query(row: Row, task: Task, settings: BeirSettings, texts: Texts) -> None:
    """Take in a query, a short one or a document."""
    title, text = row.text("title"), row.text("text")
    is_document = title is not None and text is not None if settings.queries == "auto" else settings.queries != "short"
    if is_document:
        texts.add(task.query_namespace, row.identifier("_id"), (title, text, ()))
    else:
        texts.add_query(task.query_namespace, row.identifier("_id"), text or title)


def _read_judgements(path: Path, task: Task, known: set[str], builder: Builder) -> None:
    """Take in the judgements of a dataset, and count what is odd about them."""
    judged = set[str]()
    own = 0
    with builder.documents_of(task, LARGEST_UNKNOWN_SHARE) as references:
        for place, query_id, document_id, grade in _rows(path):
            judged.add(query_id)
            query = references.find(place, task.query_namespace, query_id)
            document = references.find(place, task.texts_folder, document_id)
            builder.judge(task, query, document, grade)
            own += query_id == document_id and document is not None and grade > 0
    found = builder.benchmark.judgements.setdefault(task.name, {})
    counts = {
        "query without text, or without a judged document with text": len(judged) - len(found),
        "query without a judgement": len(known - judged),
        "query without a relevant document (scored 0)": sum(not any(grades.values()) for grades in found.values()),
        "relevant document with the id of its query (never found)": own,
    }
    builder.omitted.update({f"task {task.name}: {reason}": count for reason, count in counts.items()})
    if not found:
        raise InputError(f"{path}: judges no query of {QUERIES} on a document of {CORPUS}.")


def _rows(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """Place, query, document and grade of each judgement. Raises `InputError` where the line of names is missing."""
    for number, (place, (query, document, grade)) in enumerate(read_delimited(path, 3, "\t", header=False)):
        if number > 0:
            yield place, query, document, relevance(grade, place)
        elif _is_number(grade):
            raise InputError(f"{place}: is a judgement, where a line of names is expected: query-id, corpus-id, score.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
