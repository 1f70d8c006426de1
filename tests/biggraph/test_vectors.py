"""Vectors come out under the right papers."""

import json
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np

from cocite.biggraph.vectors import write_vectors
from cocite.files import read_table, vectors_of


def test_papers_that_no_training_edge_moved_have_no_vector(tmp_path: Path, graphs: SimpleNamespace) -> None:
    """Each paper has one edge, so exactly the papers of held-out pairs are untrained."""
    imported = graphs.imported(tmp_path, [(2 * pair, 2 * pair + 1) for pair in range(100)], share=0.2)
    held_out = {int(word) for word in (tmp_path / "holdout.tsv").read_text().split()}
    names = [int(name) for name in json.loads((imported / "entities" / "entity_names_paper_0.json").read_text())]
    with h5py.File(tmp_path / "checkpoint.h5", "w") as file:
        file.create_dataset("embeddings", data=np.array([[name, -name] for name in names], dtype=np.float32))
    assert write_vectors(tmp_path / "vectors", imported, tmp_path / "checkpoint.h5") == len(held_out) > 0
    table = read_table(tmp_path / "vectors", "graph_embeddings")
    trained = sorted(set(range(200)) - held_out)
    assert table.column("corpusid").to_pylist() == trained
    assert vectors_of(table).tolist() == [[paper, -paper] for paper in trained]
