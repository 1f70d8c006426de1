"""A benchmark as its tables hold it: documents, judgements, labels, and the papers of reviewers.

Both kinds of benchmark are prepared into these tables and every scorer reads them. Texts are read only by those who
look at words; the judgements, labels and reviewers tell which documents a task is about.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from cocite.errors import InputError
from cocite.evaluation.tasks import TASKS, Task
from cocite.files import read_table, write_table
from cocite.tables import TABLES, empty_schema

Document = tuple[str | None, str | None, tuple[str, ...], str | None]
"""Title, abstract, what the text holds after them, and field of study."""
Judgements = dict[str, dict[str, int]]
"""The relevance of each candidate, by query."""
Labels = dict[str, list[str]]
"""The labels of each document."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """What the tasks of a benchmark ask."""

    judgements: dict[str, Judgements] = field(default_factory=dict)
    """What is relevant to which query, by task."""
    labels: dict[tuple[str, str], Labels] = field(default_factory=dict)
    """Labels by task and split."""
    reviewers: dict[str, set[str]] = field(default_factory=dict)
    """The papers of each reviewer, who stands as a candidate in the judgements."""
    weights: dict[str, dict[str, float]] = field(default_factory=dict)
    """The inverse propensity of each query's click, by task, where a task has metrics that are adjusted for it."""

    def tasks(self) -> list[Task]:
        """The tasks that there are judgements or labels of, by name. Raises `InputError` for one not declared."""
        names = {*self.judgements, *(task for task, _ in self.labels)}
        unknown = sorted(names - set(TASKS))
        if unknown:
            raise InputError(f"The task {unknown[0]!r} is not declared; declared are {', '.join(TASKS)}.")
        return [TASKS[name] for name in sorted(names)]

    def documents(self) -> set[str]:
        """The distinct documents that any task needs vectors of."""
        return {document for task in self.tasks() for document in self.documents_of(task)}

    def documents_of(self, task: Task) -> set[str]:
        """The distinct documents that a task needs vectors of; instead of reviewers, their papers."""
        if task.is_supervised:
            return {document for split in ("train", "test") for document in self.labels.get((task.name, split), ())}
        judgements = self.judgements[task.name]
        candidates = {candidate for relevance in judgements.values() for candidate in relevance}
        if task.kind == "reviewers":
            candidates = {paper for reviewer in candidates for paper in self.reviewers[reviewer]}
        return candidates | set(judgements)


@dataclass(frozen=True, kw_only=True)
class BenchmarkFiles:
    """Where the tables of a benchmark lie, without its documents."""

    judgements: Path
    labels: Path
    reviewers: Path


def read_benchmark(files: BenchmarkFiles) -> Benchmark:
    """Read judgements, labels and reviewers."""
    benchmark = Benchmark()
    for row in read_table(files.judgements, "judgements").to_pylist():
        candidates = benchmark.judgements.setdefault(row["task"], {}).setdefault(row["query"], {})
        candidates[row["candidate"]] = row["relevance"]
    for row in read_table(files.labels, "labels").to_pylist():
        benchmark.labels.setdefault((row["task"], row["split"]), {})[row["document"]] = row["labels"]
    for row in read_table(files.reviewers, "reviewers").to_pylist():
        benchmark.reviewers.setdefault(row["reviewer"], set()).add(row["document"])
    return benchmark


def write_benchmark(benchmark: Benchmark, files: BenchmarkFiles) -> None:
    """Write judgements, labels and reviewers; tables that a benchmark has nothing for are empty."""
    judgements = (
        (task, query, candidate, relevance)
        for task, queries in benchmark.judgements.items()
        for query, candidates in queries.items()
        for candidate, relevance in candidates.items()
    )
    labels = (
        (task, split, document, names)
        for (task, split), documents in benchmark.labels.items()
        for document, names in documents.items()
    )
    reviewers = ((reviewer, paper) for reviewer, papers in benchmark.reviewers.items() for paper in papers)
    write_rows(files.judgements, "judgements", judgements)
    write_rows(files.labels, "labels", labels)
    write_rows(files.reviewers, "reviewers", reviewers)


def write_documents(path: Path, documents: dict[str, Document]) -> None:
    """Write the texts of the documents."""
    write_rows(path, "documents", ((name, *document) for name, document in documents.items()))


def write_rows(path: Path, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Write rows, each a tuple in the order of the declared columns, sorted by the table's key."""
    declared = TABLES[table]
    width = len(declared.key)
    ordered = sorted(rows, key=lambda row: row[:width])
    columns = list(zip(*ordered, strict=True)) or [()] * len(declared.columns)
    schema = empty_schema(declared)
    write_table(
        path,
        table,
        pa.table([pa.array(column, type_.type) for column, type_ in zip(columns, schema, strict=True)], schema=schema),
    )
