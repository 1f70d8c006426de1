"""The finished graph embedding as tables: vectors by corpus id, and the scores of each epoch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.files import vector_column, write_table
from cocite.embeddings.collapse import check_distinct, sample_of
from cocite.embeddings.edges import TRAINING, Papers, Rows
from cocite.embeddings.imported import ImportedFolder

VALUES_IN_MEMORY = 16_000_000
"""Numbers of vectors that are read, made or written at a time."""


class Part(Protocol):
    """The vectors of a partition, papers × dimension: an array, or what looks like one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of papers, and dimension."""

    def __len__(self) -> int:
        """Number of papers."""

    def __getitem__(self, rows: Rows, /) -> NDArray[np.float32]:
        """The vectors of some rows."""


class Vectors:
    """The vectors of all papers by row, partition behind partition, of which only those asked for are loaded."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.starts = np.cumsum([0, *map(len, parts)])

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.parts[0].shape[1])

    def of(self, rows: Rows) -> NDArray[np.float32]:
        """A copy of the vectors of some rows, rows × dimension."""
        found = np.empty((len(rows), self.dimension), dtype=np.float32)
        for part, start, stop in zip(self.parts, self.starts, self.starts[1:], strict=False):
            chosen = (start <= rows) & (rows < stop)
            found[chosen] = part[rows[chosen] - start]
        return found


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training leaves."""

    vectors: Vectors
    """The vectors at the end, by row of the imported graph."""
    scores: list[dict[str, Any]]
    """What `link_prediction.measure` gave after each epoch."""


def write_vectors(path: Path, graph: ImportedFolder, vectors: Vectors, remedy: str) -> int:
    """Write table `graph_embeddings`; return the number of papers left out because no training edge moved them.

    Papers whose edges are all held out stay where they were drawn, near the origin, and by L2 would be near to all.
    Raises `InputError` if vectors are not finite, or collapsed; the message ends with `remedy`.
    """
    papers = graph.papers()
    trained = np.flatnonzero(_has_training_edge(graph, len(papers)))
    rows = trained[np.argsort(papers[trained])]
    sample = sample_of(trained, vectors.dimension)
    check_distinct(graph, sample, _finite(vectors.of(sample), remedy), remedy)
    write_table(path, "graph_embeddings", _batches(papers, rows, vectors, remedy))
    untrained = len(papers) - len(rows)
    report(f"{len(rows):,} papers with a vector; {untrained:,} left out whose edges were all held out")
    return untrained


def write_scores(path: Path, scores: Sequence[Mapping[str, Any]]) -> None:
    """Write table `graph_scores` from the scores of each epoch (see `link_prediction.measure`)."""
    rows = [
        {"epoch": epoch, "metric": metric, "filtered": kind == "filtered", "value": value, "edges": measured["edges"]}
        for epoch, measured in enumerate(scores, start=1)
        for metric in sorted(measured["raw"])
        for kind, value in (("raw", measured["raw"][metric]), ("filtered", measured["filtered"][metric]))
    ]
    write_table(path, "graph_scores", pa.Table.from_pylist(rows))


def _has_training_edge(graph: ImportedFolder, papers: int) -> NDArray[np.bool_]:
    found = np.zeros(papers, dtype=bool)
    for lhs, rhs in graph.edges(TRAINING):
        found[lhs] = True
        found[rhs] = True
    return found


def _batches(papers: Papers, rows: Rows, vectors: Vectors, remedy: str) -> Iterator[pa.RecordBatch]:
    size = max(1, VALUES_IN_MEMORY // vectors.dimension)
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        of_block = _finite(vectors.of(block), remedy)
        yield pa.record_batch({"corpusid": pa.array(papers[block]), "vector": vector_column(of_block)})


def _finite(vectors: NDArray[np.float32], remedy: str) -> NDArray[np.float32]:
    if not np.isfinite(vectors).all():
        raise InputError(f"The graph embedding has vectors that are not finite; {remedy}.")
    return vectors
