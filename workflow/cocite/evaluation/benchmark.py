"""A benchmark as its tables: documents, judgements, labels, and the papers of reviewers.

Every kind of benchmark is prepared into these tables, and every scorer reads them one task at a time. Only scorers that
compare words read the texts; the other tables list the documents of a task.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.benchmarks import declared, names
from cocite.config.entries import Entry
from cocite.config.settings import GivenAsJson
from cocite.config.tasks import Task
from cocite.core.atomic import write_json
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import open_table, read_table, write_omissions, write_table

Tables = Annotated[Path, typer.Option(help="Folder of a benchmark's tables, named like the benchmark.")]
TaskNames = Annotated[
    str, typer.Option(help="Comma-separated names of tasks, each of which must exist; empty for all.")
]
ScoredTasks = Annotated[str, typer.Option(help="Comma-separated names of the tasks to score.")]
KindName = Annotated[str, typer.Option(help="Kind of the benchmark, as the configuration names it.")]
Metrics = Annotated[
    str, typer.Option(help="Comma-separated metrics that replace those of the tasks; empty for the declared ones.")
]


class ScoredSuite(Entry):
    """A suite of a benchmark, and who is scored on it."""

    tasks: tuple[str, ...]
    runs: tuple[str, ...]
    """Models and baselines with a seed, such as cocite-1."""


Suites = Annotated[
    GivenAsJson[Mapping[str, ScoredSuite]],
    typer.Option(help='JSON object: the tasks and runs of each suite: {"small": {"tasks": ["fos"], "runs": ["m-1"]}}.'),
]

Document = tuple[str | None, str | None, tuple[str, ...], str | None]
"""Title, abstract, further parts of the text, and field of study."""
Signature = tuple[str, str, str, str]
"""Document, block, author and split of a name on a paper."""


class Click(NamedTuple):
    """A paper that was shown with a query, at a place from 1, in a click to train a ranker on or to measure it on."""

    split: str
    name: str
    """The click's name; of a click to measure on, that of its query in the judgements."""
    place: int
    query: str
    candidate: str
    is_clicked: bool
    features: Sequence[float]
    """What is known of query and candidate besides their vectors."""


Judgements = dict[str, dict[str, int]]
"""The relevance of each candidate, by query."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """What the tasks of a benchmark ask."""

    judgements: dict[str, Judgements] = field(default_factory=dict)
    """What is relevant to which query, by task."""
    labels: dict[tuple[str, str], dict[str, list[str]]] = field(default_factory=dict)
    """The labels of each document, by task and split."""
    reviewers: dict[str, set[str]] = field(default_factory=dict)
    """The papers of each reviewer; reviewers are the candidates in the judgements."""
    weights: dict[str, dict[str, float]] = field(default_factory=dict)
    """The inverse propensity of each query's click, by task, for tasks with metrics that are adjusted for it."""
    clicks: dict[str, list[Click]] = field(default_factory=dict)
    """The papers of each click, contiguous, by task, for tasks with a ranker that is trained on clicks."""
    folds: dict[str, dict[str, int]] = field(default_factory=dict)
    """The test fold of each query, by task, if a benchmark has folds."""
    collections: dict[str, set[str]] = field(default_factory=dict)
    """The documents to search, by task, for tasks without given candidates; no others can be found."""
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    """The document that each query is, and does not find, by task and query; others are not among the keys."""
    copies: dict[str, dict[str, str]] = field(default_factory=dict)
    """The documents of a collection with the text of another one, and the first of these, by task."""
    references: dict[str, list[int]] = field(default_factory=dict)
    """What the papers of reviews cite, by their names."""
    signatures: dict[str, dict[str, Signature]] = field(default_factory=dict)
    """The names on papers whose authors are to be found, by task and id."""

    @property
    def tasks(self) -> set[str]:
        """The names of the tasks that there is anything of."""
        return {*self.judgements, *self.signatures, *(name for name, _ in self.labels)}

    def queries_alone(self, task: Task) -> set[str]:
        """The queries of a search that are not among the documents which are searched."""
        if task.format != "search":
            return set()
        return set(self.judgements[task.name]) - self._ranked(task)

    def documents_of(self, task: Task) -> set[str]:
        """The distinct documents that a task needs vectors of; instead of reviewers, their papers."""
        if task.is_supervised:
            return {document for split in ("train", "test") for document in self.labels.get((task.name, split), ())}
        if task.kind == "disambiguation":
            return {document for document, *_ in self.signatures[task.name].values()}
        return self._ranked(task) | set(self.judgements[task.name] if task.kind != "screening" else ())

    def _ranked(self, task: Task) -> set[str]:
        """The documents that queries rank: a collection, or the candidates; of reviewers, their papers."""
        if task.kind == "retrieval":
            return self.collections[task.name]
        candidates = {candidate for relevance in self.judgements[task.name].values() for candidate in relevance}
        if task.kind == "reviewers":
            return {paper for reviewer in candidates for paper in self.reviewers[reviewer]}
        return candidates | {name for row in self.clicks.get(task.name, ()) for name in (row.query, row.candidate)}


def with_metrics(tasks: Iterable[Task], metrics: str) -> list[Task]:
    """Tasks with these metrics, which commas separate, instead of the declared ones, if there are any."""
    return [replace(task, metrics=tuple(names(metrics)) or task.metrics) for task in tasks]


def files_of_runs(folder: Path, suites: Mapping[str, ScoredSuite]) -> list[Path]:
    """The table of each run on each suite that it is scored on."""
    return [folder / suite / f"{run}.parquet" for suite, of in suites.items() for run in of.runs]


def read_task(task: Task, tables: Path) -> Benchmark:
    """Read what one task asks, and nothing of the others, from the folder of a benchmark's tables."""
    benchmark = Benchmark()
    for row in _rows_of(task, tables, "labels"):
        benchmark.labels.setdefault((task.name, row["split"]), {})[row["document"]] = row["labels"]
    for row in _rows_of(task, tables, "signatures"):
        of_name = row["document"], row["block"], row["author"], row["split"]
        benchmark.signatures.setdefault(task.name, {})[row["signature"]] = of_name
    for row in _rows_of(task, tables, "judgements"):
        candidates = benchmark.judgements.setdefault(task.name, {}).setdefault(row["query"], {})
        candidates[row["candidate"]] = row["relevance"]
        if row["propensity"] is not None:
            benchmark.weights.setdefault(task.name, {})[row["query"]] = 1 / row["propensity"]
        if row["fold"] is not None:
            benchmark.folds.setdefault(task.name, {})[row["query"]] = row["fold"]
    for row in _rows_of(task, tables, "clicks"):
        benchmark.clicks.setdefault(task.name, []).append(Click(**{name: row[name] for name in Click._fields}))
    for row in _rows_of(task, tables, "collections"):
        benchmark.collections.setdefault(task.name, set()).add(row["document"])
        if row["query"] is not None:
            benchmark.own.setdefault(task.name, {})[row["query"]] = row["document"]
        if row["copy_of"] is not None:
            benchmark.copies.setdefault(task.name, {})[row["document"]] = row["copy_of"]
    if task.kind == "reviewers":
        for row in read_table(tables / "reviewers.parquet", "reviewers").to_pylist():
            benchmark.reviewers.setdefault(row["reviewer"], set()).add(row["document"])
    if task.kind == "screening":
        for row in read_table(tables / "reference_lists.parquet", "reference_lists").to_pylist():
            benchmark.references[str(row["citing"])] = row["cited"]
    return benchmark


def _rows_of(task: Task, tables: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of one task in a table that is sorted by task, of which one row group at a time is in memory."""
    with open_table(tables / f"{name}.parquet", name) as file:
        for number in range(file.num_row_groups):
            span = file.metadata.row_group(number).column(0).statistics
            if span is None or not span.has_min_max or span.min <= task.name <= span.max:
                group = file.read_row_group(number)
                yield from group.filter(pc.equal(group["task"], task.name)).to_pylist()


def write_benchmark(
    benchmark: Benchmark,
    documents: Mapping[str, Document],
    omitted: dict[str, int],
    *,
    short_queries: Collection[str] = (),
    tables: Path,
    omissions: Path,
) -> None:
    """Write a benchmark into the folder `tables`: its documents, of which `short_queries` are queries of some words,
    its tasks, and `sizes.json`, the number of documents in all and per task."""
    write_documents(tables, documents, short_queries)
    write_tables(benchmark, tables)
    sizes = {name: len(benchmark.documents_of(declared(name))) for name in sorted(benchmark.tasks)}
    write_json(tables / "sizes.json", {"documents": len(documents), "tasks": sizes})
    write_omissions(omissions, omitted)


def write_documents(tables: Path, documents: Mapping[str, Document], short_queries: Collection[str] = ()) -> None:
    """Write the texts of the documents, and which of them are short queries where any is."""
    rows = ((name, *text, *([name in short_queries] if short_queries else [])) for name, text in documents.items())
    write_rows(tables / "documents.parquet", "documents", rows)


def write_tables(benchmark: Benchmark, tables: Path) -> None:
    """Write what the tasks of a benchmark ask; tables that it has nothing for are empty."""
    searched: list[tuple[object, ...]] = []
    for task, documents in benchmark.collections.items():
        queries = {document: query for query, document in benchmark.own.get(task, {}).items()}
        copies = benchmark.copies.get(task, {})
        searched += [(task, document, queries.get(document), copies.get(document)) for document in documents]
    rows: dict[str, Iterable[tuple[object, ...]]] = {
        "judgements": judged(benchmark),
        "labels": ((*key, document, of) for key, labels in benchmark.labels.items() for document, of in labels.items()),
        "reviewers": ((reviewer, paper) for reviewer, papers in benchmark.reviewers.items() for paper in papers),
        "clicks": ((task, *click) for task, clicks in benchmark.clicks.items() for click in clicks),
        "collections": searched,
        "signatures": ((task, name, *each) for task, of in benchmark.signatures.items() for name, each in of.items()),
    }
    for table, of_table in rows.items():
        write_rows(tables / f"{table}.parquet", table, of_table)


def judged(benchmark: Benchmark) -> Iterator[tuple[object, ...]]:
    """The rows of the table judgements."""
    for task, queries in benchmark.judgements.items():
        for query, candidates in queries.items():
            weight = benchmark.weights.get(task, {}).get(query)
            fold = benchmark.folds.get(task, {}).get(query)
            for candidate, relevance in candidates.items():
                propensity = 1 / weight if relevance and weight is not None else None
                yield task, query, candidate, relevance, propensity, fold


def write_rows(path: Path, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Write rows in the order of the declared columns, sorted by the key; optional last columns may be left out."""
    width = len(TABLES[table].key)
    ordered = sorted(rows, key=lambda row: row[:width])
    columns = list(zip(*ordered, strict=True)) or [()] * len(TABLES[table].columns)
    schema = pa.schema(list(empty_schema(TABLES[table]))[: len(columns)])
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    write_table(path, table, pa.table(arrays, schema=schema))
