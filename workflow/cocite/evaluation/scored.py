"""Who is scored, on which vectors, and the result: rows of the tables scores and outcomes, or why there are none.

What the data make impossible is a result: the task has no score, and the table failures says why. What the machine
makes impossible (memory, disk, a broken file) is not a result: it stops the job, which is run again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.config.tasks import BOTH, LARGEST_MISSING_SHARE, WITH_FEW_SHOT, Task
from cocite.core.errors import InputError
from cocite.core.tables.files import open_table, vectors_of
from cocite.evaluation.benchmark import Benchmark

ROWS_AT_ONCE = 8192
Row = tuple[object, ...]
"""A row of a table, in the order of its columns."""
Item = tuple[str, float | None, float, Sequence[str], Sequence[str]]
"""A query, signature or test document: its name, value and weight, and the labels predicted and expected."""


class UnscorableError(InputError):
    """A task that cannot be scored on the data as they are, in one sentence that says why."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Who is scored, on what, and how."""

    model: str
    training_seed: int
    benchmark: str
    modes: Sequence[str]
    """compat, correct, both of them, or sklearn."""
    evaluation_seeds: Sequence[int]
    largest_missing: float = LARGEST_MISSING_SHARE
    """Share of a task's documents that may be without a vector."""
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores of a run on a task: rows of the table scores, and of the table outcomes."""

    run: Run
    task: Task
    documents: int
    missing: int
    """How many of them have no vector."""
    search: tuple[int | None, int | None, int | None] = (None, None, None)
    """Of a search: documents of the collection, those of them that repeat a text, and relevant judgements of others."""
    scores: list[Row] = field(default_factory=list)
    outcomes: list[Row] = field(default_factory=list)

    def add(
        self, metric: str, value: float, items: Sequence[Item], asked: int, *, seed: int | None = None, mode: str = BOTH
    ) -> None:
        """Add the value of a metric and the contribution of each item; without a seed, under the first of the run."""
        run, seed = self.run, self.run.evaluation_seeds[0] if seed is None else seed
        of_task = (run.model, run.training_seed, run.benchmark, self.task.name)
        counts = (self.documents, self.missing, len(items), asked - len(items))
        self.scores.append((*of_task, metric, seed, mode, self.task.format, value, *counts, *self.search))
        metric = metric.removesuffix(WITH_FEW_SHOT)  # Outcomes are those of the training on everything.
        self.outcomes.extend((*of_task, metric, seed, mode, *item) for item in items)


def count_missing(task: Task, benchmark: Benchmark, known: Collection[str], run: Run) -> Scored:
    """What a task is to be scored on: count its documents, and those without a vector because they are not `known`.
    Raises `UnscorableError` if these are a larger share than the run allows."""
    documents = benchmark.documents_of(task)
    missing = sorted(documents.difference(known))
    if len(missing) > len(documents) * run.largest_missing:
        raise UnscorableError(
            f"The task {task.name} of {run.benchmark}: {len(missing)} of {len(documents)} documents have no vector "
            f"of {run.model}, among them {missing[0]!r}; embed the benchmark's documents again."
        )
    scored = Scored(run=run, task=task, documents=len(documents), missing=len(missing))
    if task.kind != "retrieval":
        return scored
    collection, copies = benchmark.collections[task.name], benchmark.copies.get(task.name, ())
    grades = chain.from_iterable(of.items() for of in benchmark.judgements[task.name].values())
    unfindable = sum(grade >= task.relevant_from and each not in collection for each, grade in grades)
    return replace(scored, search=(len(collection), len(copies), unfindable))


@dataclass(frozen=True)
class Vectors:
    """The vector of each document that has one: its row in the matrix (documents × dimension)."""

    rows: Mapping[str, int]
    matrix: NDArray[np.float32]

    def as_stored(self, documents: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of some documents, in their order."""
        return self.matrix[[self.rows[document] for document in documents]]

    def of(self, documents: Sequence[str]) -> NDArray[np.float64]:
        """The vectors of some documents, in their order, in double precision."""
        return self.as_stored(documents).astype(np.float64)


def joined(blocks: Iterable[Vectors]) -> Vectors:
    """All of some blocks of vectors."""
    found = list(blocks)
    rows = {document: row for row, document in enumerate(chain.from_iterable(block.rows for block in found))}
    return Vectors(rows, np.concatenate([block.matrix for block in found]) if found else np.empty((0, 0), np.float32))


def read_blocks(path: Path, task: Task, queries: Collection[str], documents: Collection[str]) -> Iterator[Vectors]:
    """Some thousand embeddings at a time, of those documents of a task that have one, by the adapters of its format if
    the file has them; `queries` are not papers. Raises `UnscorableError` if a vector is not finite."""
    wanted, asking = (pa.array(sorted(names), pa.string()) for names in (documents, queries))
    # Batch by batch: a filtered scan of the whole file takes more memory than the file's own size.
    with open_table(path, "document_embeddings") as file:
        present = set(file.read(["adapter"]).column("adapter").unique().to_pylist())
        of_queries, of_others = task.adapters_among(present)
        for batch in file.iter_batches(ROWS_AT_ONCE):
            is_query = pc.is_in(batch["document"], asking)
            by_its_own = pc.equal(batch["adapter"], pc.if_else(is_query, of_queries, of_others))
            chosen = pc.and_(by_its_own, pc.is_in(batch["document"], wanted))
            table = pa.Table.from_batches([batch.filter(chosen)])
            matrix, found = vectors_of(table), table.column("document").to_pylist()
            if len(broken := np.flatnonzero(~np.isfinite(matrix).all(axis=1))):
                holds = f"the vector of the document {found[broken[0]]!r} contains values that are not finite"
                raise UnscorableError(f"{path}: {holds}; the model's training has probably diverged.")
            yield Vectors({document: row for row, document in enumerate(found)}, matrix)
