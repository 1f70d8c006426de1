"""Link prediction finds what is there, and nothing where nothing is."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from cocite.biggraph.configuration import GraphEmbeddingSettings
from cocite.biggraph.importing import import_edges
from cocite.biggraph.training import train_graph_embedding

Settings = Callable[..., GraphEmbeddingSettings]

CHANCE_MRR = 8.2 / 2000
"""A rank drawn from 1 … 2,000 has the mean reciprocal (1 + 1/2 + … + 1/2000) / 2000."""


def last_scores(imported: Path, settings: GraphEmbeddingSettings) -> dict[str, float]:
    return train_graph_embedding(imported, settings, seed=1, state=imported.parent / "state").scores[-1]


def test_a_graph_without_structure_is_at_chance(tmp_path: Path, graphs: SimpleNamespace, settings: Settings) -> None:
    imported = graphs.imported(tmp_path, graphs.random(1000, 10_000), share=0.2)
    scores = last_scores(imported, settings(chunks=1))
    assert abs(scores["auc"] - 0.5) < 0.02
    assert abs(scores["mrr"] - CHANCE_MRR) < 0.003
    assert scores["edges"] > 2500


def test_the_published_split_of_mirrored_edges_would_be_far_above_chance(
    tmp_path: Path, graphs: SimpleNamespace, settings: Settings
) -> None:
    """The measure that says chance above does see a leak."""
    mirrored = np.array([edge for a, b in graphs.random(1000, 10_000) for edge in ((a, b), (b, a))])
    held_out = np.random.default_rng(1).random(len(mirrored)) < 0.05
    for name, rows in (("training", ~held_out), ("holdout", held_out)):
        np.savetxt(tmp_path / name, mirrored[rows], fmt="%d", delimiter="\t")
    output = tmp_path / "imported"
    import_edges(training=tmp_path / "training", holdout=tmp_path / "holdout", seed=1, output=output)
    assert last_scores(output, settings(chunks=1, dimension=64))["auc"] > 0.9


def test_communities_are_found(communities: Path, settings: Settings) -> None:
    scores = last_scores(communities, settings(chunks=1, workers=2))
    assert scores["auc"] > 0.95
    assert scores["mrr"] > 10 * CHANCE_MRR
    assert scores["hits_at_1"] <= scores["hits_at_10"] <= scores["hits_at_50"]
