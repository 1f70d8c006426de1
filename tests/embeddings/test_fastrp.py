"""Walks are projected as defined, whatever the blocks and threads, and a killed projection resumes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite.config.embeddings import AnyEngine
from cocite.config.settings import entry_of
from cocite.core.checkpoints import open_whole
from cocite.embeddings import fastrp_projection as projection
from cocite.embeddings.edges import TRAINING
from cocite.embeddings.engines import FastRP
from cocite.embeddings.fastrp_projection import project_walks, random_signs
from cocite.embeddings.imported import ImportedFolder, partition_starts, write_edges, write_papers
from cocite.embeddings.trained import Trained

from .conftest import interrupted, vectors_of

SEED = 1


def projected(imported: Path, state: Path, **changed: Any) -> Trained:
    return project_walks(imported, FastRP(**{"engine": "fastrp", "dimension": 24, **changed}), seed=SEED, state=state)


def by_definition(imported: Path, hop_weights: tuple[float, ...], beta: float, dimension: int) -> np.ndarray:
    """The vectors from whole matrices of double precision, step by step as the paper writes them."""
    graph = ImportedFolder(imported)
    papers = len(graph.papers())
    adjacency = np.zeros((papers, papers))
    for lhs, rhs, weights in graph.weighted_edges(TRAINING):
        for edge in range(len(lhs)):
            weight = 1.0 if weights is None else float(weights[edge])
            adjacency[lhs[edge], rhs[edge]] += weight
            adjacency[rhs[edge], lhs[edge]] += weight
    degrees = adjacency.sum(1)
    walk = np.array([row / degree if degree else row for row, degree in zip(adjacency, degrees, strict=True)])
    ends = np.diag([(degree / degrees.sum()) ** beta if degree else 0.0 for degree in degrees])
    signs = random_signs(papers, range(dimension), SEED).astype(float)
    total = np.zeros((papers, dimension))
    for hop, weight in enumerate(hop_weights, start=1):
        total += weight * unit(np.linalg.matrix_power(walk, hop) @ ends @ signs)
    return unit(total)


def unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.where(lengths > 0, vectors / np.where(lengths > 0, lengths, 1), 0)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weights", [None, np.random.default_rng(2).uniform(0.2, 4, 90)], ids=["plain", "weighted"])
@pytest.mark.parametrize(("hop_weights", "beta"), [((1.0,), 0.0), ((2.0, 0.0, 0.0, 1.0), 0.3)])
def test_vectors_are_the_weighted_hops_of_the_definition(tmp_path, graphs, directed, weights, hop_weights, beta):
    how = {"directed": directed, "edge_weights": weights, "weighted": weights is not None}
    imported = graphs.imported(tmp_path, graphs.random(50, 90), **how)
    found = vectors_of(projected(imported, tmp_path / "state", hop_weights=hop_weights, beta=beta))
    expected = by_definition(imported, hop_weights, beta, 24)
    assert np.abs(found - expected).max() < 1e-5


def test_communities_are_found(communities, tmp_path):
    (scores,) = projected(communities, tmp_path / "state", dimension=64).scores
    assert scores["raw"]["auc"] > 0.95
    assert scores["filtered"]["hits_at_10"] > 0.95


def test_neither_blocks_nor_threads_change_a_bit(communities, tmp_path):
    whole = vectors_of(projected(communities, tmp_path / "0", block=24))
    for number, changed in enumerate(({"block": 1}, {"block": 7}, {"block": 5, "threads": 3}, {"threads": 2}), 1):
        assert np.array_equal(vectors_of(projected(communities, tmp_path / str(number), **changed)), whole)


@pytest.mark.parametrize("files", [0, 1, 7])
def test_a_killed_projection_makes_only_its_last_block_again(communities, tmp_path, monkeypatch, files):
    """Eight files are written: of four blocks the second hop and the third."""
    settings = {"dimension": 8, "block": 2, "hop_weights": (0.0, 1.0, 1.0)}
    whole = vectors_of(projected(communities, tmp_path / "whole", **settings))
    drawn: list[range] = []
    monkeypatch.setattr(projection, "random_signs", lambda *given: drawn.append(given[1]) or random_signs(*given))
    with monkeypatch.context() as killed:
        killed.setattr(projection, "open_whole", killed_after(files))
        with pytest.raises(KeyboardInterrupt):
            projected(communities, tmp_path / "state", **settings)
    assert len(list((tmp_path / "state").glob("hop-*.f32"))) == files
    drawn.clear()
    assert np.array_equal(vectors_of(projected(communities, tmp_path / "state", **settings)), whole)
    assert drawn == [range(start, start + 2) for start in range(files // 2 * 2, 8, 2)]


def killed_after(files: int) -> Callable[[Path], Any]:
    left = iter(range(files))
    return lambda path: interrupted() if next(left, None) is None else open_whole(path)


def test_a_projection_killed_while_merging_resumes(communities, tmp_path, monkeypatch):
    whole = vectors_of(projected(communities, tmp_path / "whole"))
    with monkeypatch.context() as killed:
        killed.setattr(projection, "of_length_1", interrupted)
        with pytest.raises(KeyboardInterrupt):
            projected(communities, tmp_path / "state")
    monkeypatch.setattr(projection, "random_signs", interrupted)
    assert np.array_equal(vectors_of(projected(communities, tmp_path / "state")), whole)
    monkeypatch.setattr(projection, "merge_blocks", interrupted)
    assert np.array_equal(vectors_of(projected(communities, tmp_path / "state")), whole)
    assert not list((tmp_path / "state").glob("hop-*"))


def made_by_hand(folder: Path, papers: int, **sides: Sequence[tuple[int, int]]) -> Path:
    """An imported folder of these papers and edges, by row."""
    imported, starts = folder / "imported", partition_starts(papers, 1)
    write_papers(imported, np.arange(papers) + 100, starts)
    for side, edges in sides.items():
        write_edges(imported, side, starts, [(*np.array(edges, dtype=np.int32).T, None)])
    return imported


@pytest.mark.parametrize("beta", [0.0, -1.0, 1.0])
def test_a_paper_without_an_edge_to_train_on_has_a_vector_of_zeros(tmp_path, beta):
    imported = made_by_hand(tmp_path, 4, training=[(0, 1), (1, 2)], holdout=[(2, 3)])
    vectors = vectors_of(projected(imported, tmp_path / "state", beta=beta))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0], abs=1e-6)


def test_a_graph_of_one_edge_takes_more_dimensions_than_papers(tmp_path):
    imported = made_by_hand(tmp_path, 2, training=[(0, 1)], holdout=[(1, 0)])
    trained = projected(imported, tmp_path / "state", dimension=100, hop_weights=(1.0,), threads=4)
    signs = random_signs(2, range(100), SEED)
    assert vectors_of(trained) == pytest.approx(signs[::-1] / 10, abs=1e-6)


def test_signs_are_even_and_drawn_by_column():
    signs = random_signs(10_000, range(8), SEED)
    assert set(np.unique(signs)) == {-1, 1}
    assert np.abs(signs.mean(0)).max() < 0.04
    assert np.abs(np.corrcoef(signs.T) - np.eye(8)).max() < 0.04
    assert np.array_equal(random_signs(10_000, range(3, 5), SEED), signs[:, 3:5])


def test_hops_come_out_of_a_resolved_configuration_and_without_weight_are_refused():
    """As the rules read it: there a tuple is a list."""
    chosen = entry_of({"engine": "fastrp", "hop_weights": [1, 0.5], "graph": "citation"}, AnyEngine)
    assert chosen.hop_weights == (1, 0.5)
    with pytest.raises(ValueError, match="hop_weights are all 0"):
        FastRP(engine="fastrp", hop_weights=(0.0, 0.0))
