"""The finished graph embedding as tables: vectors by corpus id, and the scores of each epoch."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.biggraph.configuration import ENTITIES, ENTITY, TRAINING
from cocite.files import read_json, vector_column, write_table
from cocite.progress import report

VALUES_IN_MEMORY = 16_000_000


def write_vectors(path: Path, imported: Path, checkpoint: Path) -> int:
    """Write table `graph_embeddings`; return the number of papers left out because no training edge moved them.

    Papers whose edges are all held out stay where they were drawn, near the origin, and by L2 would be near to all.
    """
    names = np.array(read_json(imported / ENTITIES / f"entity_names_{ENTITY}_0.json")).astype(np.int64)
    trained = np.flatnonzero(_has_training_edge(imported, len(names)))
    rows = trained[np.argsort(names[trained])]
    write_table(path, "graph_embeddings", _batches(names, rows, _map_embeddings(checkpoint)))
    untrained = len(names) - len(rows)
    report(f"{len(rows):,} papers with a vector; {untrained:,} left out whose edges were all held out")
    return untrained


def write_scores(path: Path, scores: Sequence[dict[str, float]]) -> None:
    """Write table `graph_scores` from the scores of each epoch."""
    rows = [
        {"epoch": epoch, "metric": metric, "value": float(value), "edges": int(measured["edges"])}
        for epoch, measured in enumerate(scores, start=1)
        for metric, value in sorted(measured.items())
        if metric != "edges"
    ]
    write_table(path, "graph_scores", pa.Table.from_pylist(rows))


def _has_training_edge(imported: Path, papers: int) -> NDArray[np.bool_]:
    found = np.zeros(papers, dtype=bool)
    with h5py.File(imported / TRAINING / "edges_0_0.h5") as file:
        for side in ("lhs", "rhs"):
            for start in range(0, len(file[side]), VALUES_IN_MEMORY):
                found[file[side][start : start + VALUES_IN_MEMORY]] = True
    return found


def _map_embeddings(checkpoint: Path) -> NDArray[np.float32]:
    """The vectors without loading them: PyTorch-BigGraph stores them contiguously."""
    with h5py.File(checkpoint) as file:
        vectors = file["embeddings"]
        return np.memmap(checkpoint, np.float32, "r", offset=vectors.id.get_offset(), shape=vectors.shape)


def _batches(
    names: NDArray[np.int64], rows: NDArray[np.int64], vectors: NDArray[np.float32]
) -> Iterator[pa.RecordBatch]:
    size = max(1, VALUES_IN_MEMORY // vectors.shape[1])
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        yield pa.record_batch({"corpusid": pa.array(names[block]), "vector": vector_column(vectors[block])})
