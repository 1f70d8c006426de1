"""Benchmarks that search a whole collection: datasets in BEIR's layout (Thakur et al., 2021, "BEIR"), and LitSearch.

    corpus.jsonl        documents: _id, title, text; id and abstract are also read, as are gzip and Parquet
    queries.jsonl       queries: _id, text, and a title if a query is a document itself
    qrels/test.tsv      judgements, or qrels.tsv: query, document and grade (see `read_judgements`)

Judged documents that the corpus lacks count as not found, as in trec_eval and mteb.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from cocite.config.benchmarks import names
from cocite.config.benchmarks.beir import CORPUS, QUERIES, SPECIFICITIES, BeirSettings, LitSearch, files_of, task_of
from cocite.config.settings import GivenAsJson
from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.options import Omissions
from cocite.core.progress import progress
from cocite.core.rows import Row, is_json_lines, read_rows, read_text
from cocite.evaluation.benchmark import Tables, TaskNames
from cocite.evaluation.preparation.builder import Builder, References, Text, Texts, as_number, grade, read_split

LARGEST_UNKNOWN_SHARE = 0.5
"""Share of the ids in the judgements that may be unknown: an accident leaves some of them, another corpus most."""
SAME_WORDS = 0.8
"""Share of the words of a query that a document must have to be the query itself, if it has its id as well."""
MISSING = {True: "counts as not found", False: "left out"}
COLUMNS = ("_id", "id", "title", "text", "abstract")
WORD = re.compile(r"\w+")
NAMES = (
    ("query-id", "query_id", "qid", "query"),
    ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "document"),
    ("score", "relevance", "rel", "grade"),
)
"""What the columns of query, document and grade are called in judgements."""
BEIR, TREC = 3, 4
"""Fields of a line of judgements."""
OF_TREC: Sequence[int] = (0, 2, 3)
"""Those of query, document and grade."""

Judgement = tuple[str, str, str, int]
"""Place in the file, query, document and grade, which may be below 0."""


def prepare_beir(
    *, settings: GivenAsJson[BeirSettings], tasks: TaskNames = "", tables: Tables, omissions: Omissions
) -> None:
    """Read datasets in BEIR's layout, each from a folder: those of these tasks, or all if none are named.

    Raises `InputError` if there is no such dataset, a file is missing or a row has an error, or no document of a
    dataset has a text.
    """
    folders = {task_of(name): Path(folder) for name, folder in settings.datasets.items()}
    known, named = [task.name for task in folders], names(tasks)
    if unknown := [name for name in named if name not in known]:
        raise InputError(f"--tasks: {unknown[0]} is the task of no dataset; there are {', '.join(known) or 'none'}.")
    asked = {task: folder for task, folder in folders.items() if not named or task.name in named}
    builder = Builder(Texts())
    _read_datasets(asked, settings, builder)
    builder.write({task.name: folder for task, folder in asked.items()}, tables=tables, omissions=omissions)


def read_beir(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """Read the tasks of these names, of a benchmark of another kind, or all in the folder."""
    present = builder.present_tasks(folder, declared, names, lambda task: task.labels_folder)
    _read_datasets({task: folder / task.labels_folder for task in present}, BeirSettings(), builder)


def _read_datasets(folders: Mapping[Task, Path], settings: BeirSettings, builder: Builder) -> None:
    texts = builder.texts
    files = {task: files_of(folder, settings.split) for task, folder in folders.items()}
    ids = {task: _read_texts(corpus, queries, task, settings, texts) for task, (corpus, queries, _) in files.items()}
    for task, (queries, corpus) in progress(ids.items(), of="Tasks", unit="task"):
        builder.search_in(task, corpus)
        shared, are_ignored = sorted(queries & corpus), settings.ignore_identical_ids
        asking, searched = task.query_namespace, task.texts_folder
        if are_ignored == "auto":
            alike = sum(_is_same(texts.of(asking, each), texts.of(searched, each)) for each in shared)
            are_ignored = 2 * alike > len(shared)
        # A document that is the query itself is never among its hits (BEIR's `ignore_identical_ids`).
        which = ", which it is (never found)" if are_ignored else " that it is not (may be found)"
        builder.omitted[f"task {task.name}: query with the id of a document{which}"] += len(shared)
        builder.benchmark.own[task.name] = {
            str(texts.name(asking, each)): str(texts.name(searched, each)) for each in (shared if are_ignored else ())
        }
        _read_judgements(files[task][2], task, queries, settings, builder)


def _read_texts(
    corpus_file: Path, queries_file: Path, task: Task, settings: BeirSettings, texts: Texts
) -> tuple[set[str], set[str]]:
    """Take in the queries and the corpus of a dataset; return the ids of either."""
    queries, corpus = set(), set()
    for row in read_rows(queries_file, COLUMNS):
        identifier, (title, text) = row.identifier("_id", "id"), _title_and_text(row)
        queries.add(identifier)
        has_both = title is not None and text is not None
        if has_both if settings.queries == "auto" else settings.queries == "documents":
            texts.add(task.query_namespace, identifier, (title, text, ()))
        else:
            texts.add_query(task.query_namespace, identifier, text or title)
    for row in progress(read_rows(corpus_file, COLUMNS), of=f"Corpus of {task.name}", unit="document"):
        corpus.add(row.identifier("_id", "id"))
        texts.add(task.texts_folder, row.identifier("_id", "id"), (*_title_and_text(row), ()))
    if not corpus:
        raise InputError(f"{corpus_file}: has no rows.")
    return queries, corpus


def _title_and_text(row: Row) -> tuple[str | None, str | None]:
    return row.text("title"), row.text("text") or row.text("abstract")


def _is_same(query: Text | None, document: Text | None) -> bool:
    """Whether a document has most of the words of a query, which has some."""
    asked, there = (
        set(WORD.findall(" ".join(part for part in (text or ())[:2] if part).casefold())) for text in (query, document)
    )
    return bool(asked) and len(asked & there) >= SAME_WORDS * len(asked)


def _read_judgements(path: Path, task: Task, known: set[str], settings: BeirSettings, builder: Builder) -> None:
    texts, references, counts = builder.texts, References(builder.texts), Counter[str]()
    own, judged = builder.benchmark.own[task.name], set[str]()
    is_kept = settings.missing_documents == "keep"
    for place, query_id, document_id, relevance in read_judgements(path):
        query = references.find(place, task.query_namespace, query_id)
        document = references.judged(place, task.texts_folder, document_id)
        is_there = texts.of(task.texts_folder, document_id) is not None
        judged.add(query_id)
        counts["found"] += query is not None and is_there
        counts["missing"] += query is not None and not is_there
        counts["below"] += relevance < 0
        counts["own"] += query is not None and own.get(query) == document and relevance > 0
        if is_there or is_kept:
            builder.judge(task, query, document, max(relevance, 0))
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


def read_judgements(path: Path) -> Iterator[Judgement]:
    """The judgements in a file, which has rows. BEIR: text with three fields between tabs or commas, behind a line of
    names. TREC: text with four fields between spaces, tabs or commas, query, iteration, document and grade. Parquet or
    JSON Lines with query-id, corpus-id, score."""
    is_empty, is_table = True, path.suffix == ".parquet" or is_json_lines(path)
    for place, query, document, relevance in _of_columns(path) if is_table else _of_lines(path):
        if not query.strip() or not document.strip():
            raise InputError(f"{place}: the id of the query or of the document is empty.")
        is_empty = False
        yield place, query, document, relevance
    if is_empty:
        raise InputError(f"{path}: has no rows.")


def _of_columns(path: Path) -> Iterator[Judgement]:
    for row in read_rows(path, list(chain.from_iterable(NAMES))):
        query, document = (row.identifier(*keys) for keys in NAMES[:2])
        yield row.place, query, document, grade(row.require(*NAMES[2]), row.place)


def _of_lines(path: Path) -> Iterator[Judgement]:
    lines = ((f"{path}, line {number}", line) for number, line in read_text(path) if line.strip())
    head = next(lines, None)
    if head is None:
        return
    place, line = head
    spaced = line.split()
    is_trec = len(spaced) == TREC and as_number(spaced[-1]) is not None
    delimiter = "\t" if "\t" in line else "," if "," in line and not is_trec else ""  # the last is any white space
    first = _fields(line, delimiter, place)
    is_header = all(as_number(field) is None for field in first)
    if len(first) not in (BEIR, TREC):
        forms = f"{BEIR} are expected (query-id, corpus-id, score) or {TREC} (query, iteration, document, grade)"
        raise InputError(f"{place}: has {len(first)} fields, where {forms}.")
    if len(first) == BEIR and not is_header:
        raise InputError(f"{place}: is a judgement in place of the header line: query-id, corpus-id, score.")
    # By their names where all are known, or else by their places.
    called = [name.lower() for name in first]
    known = [[called.index(name) for name in names if name in called] for names in NAMES]
    chosen = [columns[0] for columns in known] if all(known) else OF_TREC if len(first) == TREC else range(BEIR)
    for place, line in lines if is_header else chain([head], lines):
        fields = _fields(line, delimiter, place)
        if len(fields) != len(first):
            raise InputError(f"{place}: has {len(fields)} fields, where {len(first)} are expected.")
        query, document, written = (fields[column] for column in chosen)
        yield place, query, document, grade(written, place)


def _fields(line: str, delimiter: str, place: str) -> list[str]:
    if not delimiter:
        return line.split()
    try:
        [fields] = csv.reader([line], delimiter=delimiter, skipinitialspace=True)
    except csv.Error as error:
        raise InputError(f"{place}: cannot be split at its commas ({error}).") from None
    return [field.strip() for field in fields]


def read_litsearch(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """LitSearch (Ajith et al., 2024, "LitSearch"), as on the Hugging Face hub: the tasks of these names, or both.

    Broad questions (specificity 0) and specific ones (1) are separate tasks, since their scores are published at
    different depths.

        query/full-*.parquet            questions: query, specificity, and corpusids of the papers that answer each
        corpus_clean/full-*.parquet     papers: corpusid, title, abstract
    """
    texts, papers = builder.texts, set()
    searched, at = (folder / name for name in LitSearch.reads)
    rows = read_split(searched, LitSearch.split, ("corpusid", "title", "abstract"))
    for row in progress(rows, of="Corpus", unit="paper"):
        papers.add(row.identifier("corpusid"))
        texts.add_paper("litsearch", row.identifier("corpusid"), row)
    questions: dict[str, list[tuple[str, Row]]] = {name: [] for name in SPECIFICITIES.values()}
    for number, row in enumerate(read_split(at, LitSearch.split, ("query", "specificity", "corpusids"))):
        value = row.require("specificity")
        if value not in SPECIFICITIES:
            raise InputError(f"{row.place}: specificity must be 0 (broad) or 1 (specific), not {value!r}.")
        questions[SPECIFICITIES[value]].append((f"query-{number}", row))
    asked = {task: questions[task.labels_folder] for task in declared if not names or task.name in names}
    for task, rows_of_task in asked.items():
        for name, row in rows_of_task:
            row.require("query")
            texts.add_query(task.query_namespace, name, row.text("query"))
    for task, rows_of_task in asked.items():
        if not rows_of_task:
            raise InputError(f"{at}: has no question for the task {task.name}.")
        with builder.documents_of(task) as references:
            for name, row in rows_of_task:
                query, answers = references.find(row.place, task.query_namespace, name), row.identifiers("corpusids")
                for each in answers:
                    builder.judge(task, query, references.judged(row.place, task.texts_folder, each), 1)
                unanswered = f"task {task.name}: question without an answer in the corpus"
                builder.omitted[unanswered] += papers.isdisjoint(answers)
        builder.search_in(task, papers)
