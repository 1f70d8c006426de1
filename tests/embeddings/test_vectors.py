"""Vectors come out under the right papers."""

from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from cocite.embeddings.engines.biggraph.checkpoints import map_vectors
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.vectors import Vectors, write_vectors
from cocite.tables.files import read_table, vectors_of


@pytest.mark.parametrize("partitions", [1, 3])
def test_papers_that_no_training_edge_moved_have_no_vector(
    tmp_path: Path, graphs: SimpleNamespace, partitions: int
) -> None:
    """Each paper has one edge, so exactly the papers of held-out pairs are untrained."""
    imported = graphs.imported(tmp_path, [(2 * pair, 2 * pair + 1) for pair in range(100)], partitions=partitions)
    held_out = {paper for edge in graphs.edges(imported, "holdout") for paper in edge}
    papers, starts, parts = ImportedFolder(imported).papers(), ImportedFolder(imported).starts(), []
    for part in range(partitions):
        with h5py.File(tmp_path / f"{part}.h5", "w") as file:
            of_part = papers[starts[part] : starts[part + 1]]
            file.create_dataset("embeddings", data=np.stack([of_part, -of_part], axis=1).astype(np.float32))
        parts.append(map_vectors(tmp_path / f"{part}.h5"))
    assert write_vectors(tmp_path / "vectors", ImportedFolder(imported), Vectors(parts)) == len(held_out) > 0
    table = read_table(tmp_path / "vectors", "graph_embeddings")
    trained = sorted(set(range(200)) - held_out)
    assert table.column("corpusid").to_pylist() == trained
    assert vectors_of(table).tolist() == [[paper, -paper] for paper in trained]
