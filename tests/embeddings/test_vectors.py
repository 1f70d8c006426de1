"""Vectors come out under the right papers."""

import h5py
import numpy as np
import pytest

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vectors_of
from cocite.embeddings.biggraph_training import map_vectors
from cocite.embeddings.engines import FastRP
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.trained import Vectors, write_vectors

PAPERS = 300
DRAWN = np.random.default_rng(1).normal(size=(PAPERS, 8)).astype(np.float32)
IS_SOME = np.arange(PAPERS)[:, None] % 4 == 0
EQUAL = {
    "zeros": np.zeros_like(DRAWN),
    "ones": np.ones_like(DRAWN),
    "nearly ones": 1 + 1e-7 * DRAWN,
    "large": np.full_like(DRAWN, 1e30),
    "two vectors": DRAWN[np.arange(PAPERS) % 2],
    "a quarter zeros": np.where(IS_SOME, 0, DRAWN),
    "a quarter equal": np.where(IS_SOME, 1, DRAWN),
    "pairs": DRAWN[np.arange(PAPERS) // 2],
}
NOT_FINITE = {
    "not numbers": np.full_like(DRAWN, np.nan),
    "infinite": np.full_like(DRAWN, np.inf),
    "one number": np.where(np.arange(PAPERS * 8).reshape(PAPERS, 8) == 99, np.nan, DRAWN),
}
DISTINCT = {
    "drawn": DRAWN,
    "small": DRAWN * 1e-30,
    "of very different lengths": DRAWN * np.geomspace(1e-9, 1e9, PAPERS)[:, None],
    "in one direction": DRAWN[:1] * np.arange(1, PAPERS + 1)[:, None],
    "near": DRAWN[:1] + 1e-3 * DRAWN,
    "in two bytes": (DRAWN.view(np.uint32) & 0xFFFF0000).view(np.float32),
    "some equal": np.where(np.arange(PAPERS)[:, None] < 20, 1, DRAWN),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory, graphs):
    """A graph in which all papers have different neighbours."""
    return ImportedFolder(graphs.imported(tmp_path_factory.mktemp("graph"), graphs.random(PAPERS, 3000)))


COLLAPSED = r"has collapsed: of 300 papers, \d+ have the vector of another.*"
REFUSED = {name: (vectors, COLLAPSED) for name, vectors in EQUAL.items()}
REFUSED |= {name: (vectors, "vectors that are not finite") for name, vectors in NOT_FINITE.items()}


@pytest.mark.parametrize(("vectors", "said"), REFUSED.values(), ids=REFUSED)
def test_vectors_that_collapsed_or_are_not_finite_are_refused_with_what_to_change(tmp_path, graph, vectors, said):
    with pytest.raises(InputError, match=rf"{said}; lower lr\.$"):
        write_vectors(tmp_path / "vectors", graph, Vectors([vectors.astype(np.float32)]), "lower lr")
    assert not (tmp_path / "vectors").exists()


@pytest.mark.parametrize("vectors", DISTINCT.values(), ids=DISTINCT)
def test_vectors_that_differ_are_written(tmp_path, graph, vectors):
    write_vectors(tmp_path / "vectors", graph, Vectors([vectors.astype(np.float32)]), "lower lr")


def test_equal_vectors_of_papers_with_the_same_neighbours_are_written(tmp_path, graphs):
    """Three hubs that are neighbours, each of 30 papers with no other; as `fastrp` has them, these are equal."""
    leaves = [(hub, 100 * (hub + 1) + leaf) for hub in range(3) for leaf in range(30)]
    imported = graphs.imported(tmp_path, [(0, 1), (1, 2), (0, 2), *leaves])
    engine = FastRP(engine="fastrp", dimension=16)
    trained = engine.train(imported, seed=1, state=tmp_path / "state").vectors
    write_vectors(tmp_path / "vectors", ImportedFolder(imported), trained, "lower lr")
    table = read_table(tmp_path / "vectors", "graph_embeddings")
    assert len(np.unique(vectors_of(table), axis=0)) < len(table) / 4


def test_equal_vectors_of_papers_that_are_all_neighbours_are_written(tmp_path, graphs):
    """Thirty communities, each with a vector; nearly all of their edges are there to train on."""
    imported = graphs.imported(tmp_path, graphs.communities(30, 10), holdout=0.001)
    communities = ImportedFolder(imported).papers() // 10
    write_vectors(tmp_path / "vectors", ImportedFolder(imported), Vectors([DRAWN[communities]]), "lower lr")


@pytest.mark.parametrize("partitions", [1, 3])
def test_papers_that_no_training_edge_moved_have_no_vector(tmp_path, graphs, partitions):
    """Each paper has one edge, so exactly the papers of held-out pairs are untrained."""
    imported = graphs.imported(tmp_path, [(2 * pair, 2 * pair + 1) for pair in range(100)], partitions=partitions)
    held_out = {paper for edge in graphs.edges(imported, "holdout") for paper in edge}
    papers, starts, parts = ImportedFolder(imported).papers(), ImportedFolder(imported).starts(), []
    for part in range(partitions):
        with h5py.File(tmp_path / f"{part}.h5", "w") as file:
            of_part = papers[starts[part] : starts[part + 1]]
            file.create_dataset("embeddings", data=np.stack([of_part, 200 - of_part], axis=1).astype(np.float32))
        parts.append(map_vectors(tmp_path / f"{part}.h5"))
    untrained = write_vectors(tmp_path / "vectors", ImportedFolder(imported), Vectors(parts), "lower lr")
    assert untrained == len(held_out) > 0
    table = read_table(tmp_path / "vectors", "graph_embeddings")
    trained = sorted(set(range(200)) - held_out)
    assert table.column("corpusid").to_pylist() == trained
    assert vectors_of(table).tolist() == [[paper, 200 - paper] for paper in trained]
