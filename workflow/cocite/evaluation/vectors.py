"""The vectors that a task is scored on: those of a model or of a baseline, for the documents of the task alone."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.config.tasks import Task
from cocite.core.tables.files import open_table, vectors_of
from cocite.evaluation.scored import UnscorableError

ROWS_AT_ONCE = 8192


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
    documents = [document for block in found for document in block.rows]
    matrix = np.concatenate([block.matrix for block in found]) if found else np.empty((0, 0), np.float32)
    return Vectors({document: row for row, document in enumerate(documents)}, matrix)


def read_blocks(path: Path, task: Task, queries: Collection[str], documents: Collection[str]) -> Iterator[Vectors]:
    """Some thousand embeddings at a time, of some documents of a task, those that have one.

    They are those by the adapters of the task's format, among those that the file has; `queries` says which of the
    documents are queries that are no papers.

    Raises `UnscorableError` where a vector holds a number that is not finite.
    """
    wanted, asking = (pa.array(sorted(names), pa.string()) for names in (documents, queries))
    of_queries, of_others = task.adapters_among(_adapters_in(path))
    # Batch by batch: a filtered scan of the whole file takes more memory than the file's own size.
    with open_table(path, "document_embeddings") as file:
        for batch in file.iter_batches(ROWS_AT_ONCE):
            is_query = pc.is_in(batch["document"], asking)
            by_its_own = pc.equal(batch["adapter"], pc.if_else(is_query, of_queries, of_others))
            chosen = pc.and_(by_its_own, pc.is_in(batch["document"], wanted))
            table = pa.Table.from_batches([batch.filter(chosen)])
            matrix, found = vectors_of(table), table.column("document").to_pylist()
            broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
            if len(broken):
                raise UnscorableError(
                    f"{path}: the vector of the document {found[broken[0]]!r} holds values that are not finite, and so "
                    "may others; the model's training has probably diverged."
                )
            yield Vectors({document: row for row, document in enumerate(found)}, matrix)


def _adapters_in(path: Path) -> set[str]:
    """The adapters by which a file of embeddings has vectors; an empty name stands for none."""
    with open_table(path, "document_embeddings") as file:
        return set(file.read(["adapter"]).column("adapter").unique().to_pylist())
