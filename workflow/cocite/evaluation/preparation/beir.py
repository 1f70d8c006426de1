"""Datasets in BEIR's layout (Thakur et al., 2021, "BEIR").

    corpus.jsonl        documents: _id, title, text
    queries.jsonl       queries: _id, text, and a title where a query is a document itself
    qrels/test.tsv      judgements: query, document, relevance, behind a line of names; or qrels.tsv

The same in gzip or Parquet, keys named id and abstract, and qrels as TREC has them are read as well. Queries are
searched in the whole corpus of their dataset. Only queries with a judgement are kept. Judged documents that the corpus
lacks are kept and counted: no model can find them, and each metric knows that they are there, as in trec_eval and mteb.
A document that is the query itself is never among its hits, as in BEIR's own evaluation (`ignore_identical_ids`),
whatever it is judged; one that only has the same number is.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cocite.config.benchmarks import names
from cocite.config.benchmarks.beir import CORPUS, QUERIES, BeirSettings, files_of, task_of
from cocite.config.settings import GivenAsJson
from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.options import Omissions
from cocite.core.progress import progress
from cocite.core.rows import Row, read_rows
from cocite.evaluation.asked import Tables, TaskNames
from cocite.evaluation.preparation.builder import Builder, References, Text, Texts
from cocite.evaluation.preparation.files import present_tasks
from cocite.evaluation.preparation.qrels import read_judgements

LARGEST_UNKNOWN_SHARE = 0.5
"""Share of the ids in the judgements that may be unknown: an accident leaves some of them, another corpus most."""
SAME_WORDS = 0.8
"""Share of the words of a query that a document must have to be the query itself, if it has its id as well."""
MISSING = {True: "counts as not found", False: "left out"}
"""What becomes of it."""
COLUMNS = ("_id", "id", "title", "text", "abstract")
WORD = re.compile(r"\w+")


def prepare_beir(
    *, settings: GivenAsJson[BeirSettings], tasks: TaskNames = "", tables: Tables, omissions: Omissions
) -> None:
    """Read datasets in BEIR's layout, each from a folder: those of these tasks, or all where none are named.

    Raises `InputError` where there is no such dataset, a file is missing or a row is wrong, and where no document of a
    dataset has a text.
    """
    folders = {task_of(name): Path(folder) for name, folder in settings.datasets.items()}
    known, named = [task.name for task in folders], names(tasks)
    for name in named:
        if name not in known:
            raise InputError(f"--tasks: {name} is the task of no dataset; there are {', '.join(known) or 'none'}.")
    asked = {task: folder for task, folder in folders.items() if not named or task.name in named}
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
    files = {task: files_of(folder, settings.split) for task, folder in folders.items()}
    ids = {task: _read_texts(corpus, queries, task, settings, texts) for task, (corpus, queries, _) in files.items()}
    builder = Builder(texts, omitted)
    for task, (queries, corpus) in progress(ids.items(), of="Tasks", unit="task"):
        named = {identifier: str(texts.name(task.texts_folder, identifier)) for identifier in corpus}
        builder.benchmark.collections[task.name] = set(named.values())
        builder.used |= set(named.values())
        own = _own(task, sorted(queries & corpus), settings, builder)
        builder.benchmark.own[task.name] = {str(texts.name(task.query_namespace, each)): named[each] for each in own}
        _read_judgements(files[task][2], task, queries, settings, builder)
    return builder


def _read_texts(
    corpus_file: Path, queries_file: Path, task: Task, settings: BeirSettings, texts: Texts
) -> tuple[set[str], set[str]]:
    """Take in the queries and the corpus of a dataset; return the ids of either."""
    queries, corpus = set(), set()
    for row in read_rows(queries_file, COLUMNS):
        queries.add(row.identifier("_id", "id"))
        _add_query(row, task, settings, texts)
    for row in progress(read_rows(corpus_file, COLUMNS), of=f"Corpus of {task.name}", unit="document"):
        corpus.add(row.identifier("_id", "id"))
        texts.add(task.texts_folder, row.identifier("_id", "id"), (row.text("title"), _text(row), ()))
    if not corpus:
        raise InputError(f"{corpus_file}: has no rows.")
    return queries, corpus


def _text(row: Row) -> str | None:
    return row.text("text") or row.text("abstract")


def _add_query(row: Row, task: Task, settings: BeirSettings, texts: Texts) -> None:
    """Take in a query, a short one or a document."""
    title, text = row.text("title"), _text(row)
    is_document = title is not None and text is not None if settings.queries == "auto" else settings.queries != "short"
    if is_document:
        texts.add(task.query_namespace, row.identifier("_id", "id"), (title, text, ()))
    else:
        texts.add_query(task.query_namespace, row.identifier("_id", "id"), text or title)


def _own(task: Task, shared: Sequence[str], settings: BeirSettings, builder: Builder) -> Sequence[str]:
    """The ids of queries that are the document with their id, among the ids that queries and documents share."""
    are_ignored = settings.ignore_identical_ids
    if are_ignored == "auto":
        alike = sum(_is_same(*(builder.texts.of(of, each) for of in _namespaces(task))) for each in shared)
        are_ignored = 2 * alike > len(shared)
    count = "query with the id of a document, which it is (never found)"
    other = "query with the id of a document that it is not (may be found)"
    builder.omitted[f"task {task.name}: {count if are_ignored else other}"] += len(shared)
    return shared if are_ignored else []


def _namespaces(task: Task) -> tuple[str, str]:
    return task.query_namespace, task.texts_folder


def _is_same(query: Text | None, document: Text | None) -> bool:
    """Whether a document has most of the words of a query, which has some."""
    asked, there = (
        set(WORD.findall(" ".join(part for part in (text or ())[:2] if part).casefold())) for text in (query, document)
    )
    return bool(asked) and len(asked & there) >= SAME_WORDS * len(asked)


def _read_judgements(path: Path, task: Task, known: set[str], settings: BeirSettings, builder: Builder) -> None:
    """Take in the judgements of a dataset, and count what is odd about them."""
    texts, references, counts = builder.texts, References(builder.texts), Counter[str]()
    own, judged = builder.benchmark.own[task.name], set[str]()
    is_kept = settings.missing_documents == "keep"
    for place, query_id, document_id, grade in read_judgements(path):
        query_id, document_id = (
            _as_named(texts, *of) for of in zip(_namespaces(task), (query_id, document_id), strict=True)
        )
        query = references.find(place, task.query_namespace, query_id)
        document = references.judged(place, task.texts_folder, document_id)
        is_there = texts.of(task.texts_folder, document_id) is not None
        judged.add(query_id)
        counts["found"] += query is not None and is_there
        counts["missing"] += query is not None and not is_there
        counts["below"] += grade < 0
        counts["own"] += query is not None and own.get(query) == document and grade > 0
        if is_there or is_kept:
            builder.judge(task, query, document, max(grade, 0))
    references.check(f"the task {task.name}", LARGEST_UNKNOWN_SHARE)
    if not counts["found"]:
        raise InputError(f"{path}: judges no query of {QUERIES} on a document of {CORPUS}.")
    found = builder.benchmark.judgements[task.name]
    omitted = {
        f"judgement of a document that is not in the corpus ({MISSING[is_kept]})": counts["missing"],
        "judgement below 0 (counts as 0)": counts["below"],
        "query without text, or without a judged document that counts": len(judged) - len(found),
        "query without a judgement": len(known - judged),
        "query without a relevant document (scored 0)": sum(not any(grades.values()) for grades in found.values()),
        "relevant document that is its query (never found)": counts["own"],
    }
    builder.omitted.update({f"task {task.name}: {reason}": count for reason, count in omitted.items()})
    builder.used |= references.found


def _as_named(texts: Texts, namespace: str, identifier: str) -> str:
    """An id as it is written, or without the quotation marks around it where that is the one which has a text."""
    bare = identifier[1:-1].replace('""', '"')
    is_quoted = len(identifier) > 1 and identifier[0] == identifier[-1] == '"'
    is_only_bare = texts.of(namespace, identifier) is None and texts.of(namespace, bare) is not None
    return bare if is_quoted and is_only_bare else identifier
