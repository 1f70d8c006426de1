"""Link prediction finds what is there, and nothing where nothing is; and it measures what it says."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from cocite.config.engine import LogisticLoss, RankingLoss, SoftmaxLoss
from cocite.embeddings import link_prediction
from cocite.embeddings.biggraph_training import loss_function, score_batch, train_graph_embedding
from cocite.embeddings.engines import BigGraph
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.link_prediction import LEFT_OUT, edge_loss, load_held_out, measure
from cocite.embeddings.link_prediction import score_batch as score_of_torch
from cocite.embeddings.trained import Vectors

CHANCE_MRR = 8.2 / 2000
"""A rank drawn from 1 … 2,000 has the mean reciprocal (1 + 1/2 + … + 1/2000) / 2000."""


def last_scores(imported: Path, settings: BigGraph) -> dict[str, dict[str, float]]:
    return train_graph_embedding(imported, settings, seed=1, state=imported.parent / "state").scores[-1]


@pytest.mark.long
def test_a_graph_without_structure_is_at_chance(tmp_path, graphs, settings):
    scores = last_scores(graphs.imported(tmp_path, graphs.random(1000, 10_000)), settings(chunks=1))
    for kind in ("raw", "filtered"):
        assert abs(scores[kind]["auc"] - 0.5) < 0.02
        assert abs(scores[kind]["mrr"] - CHANCE_MRR) < 0.003
    assert scores["edges"] > 2500


@pytest.mark.long
def test_the_published_split_of_mirrored_edges_is_far_above_chance(tmp_path, graphs, settings):
    """The measure that says chance above does see a leak."""
    imported = graphs.imported(tmp_path, graphs.random(1000, 10_000), holdout=0.05, holdout_of="edges")
    scores = last_scores(imported, settings(chunks=1, dimension=64))
    assert scores["raw"]["auc"] > 0.9
    assert scores["filtered"]["auc"] > 0.95
    assert scores["filtered"]["mrr"] > 10 * CHANCE_MRR


def test_communities_are_found(communities, settings):
    scores = last_scores(communities, settings(chunks=1, workers=2))
    raw, filtered = scores["raw"], scores["filtered"]
    assert raw["auc"] > 0.95
    assert raw["mrr"] > 10 * CHANCE_MRR
    assert raw["hits_at_1"] <= raw["hits_at_10"] <= raw["hits_at_50"]
    # Most of what ranks above a held-out edge are other papers of the community, which are all true neighbours.
    assert filtered["mrr"] > 3 * raw["mrr"]


@pytest.mark.parametrize("comparator", ["dot", "cos"])
@pytest.mark.parametrize("max_norm", [None, 1.5])
def test_engines_score_the_same_vectors_alike(tmp_path, graphs, settings, comparator, max_norm):
    imported = graphs.imported(tmp_path, graphs.random(40, 250))
    vectors = Vectors([np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)])
    chosen = settings(comparator=comparator, max_norm=max_norm)
    (batch,) = load_held_out(ImportedFolder(imported), seed=1)
    of_torch = score_of_torch(vectors, batch, comparator=comparator, max_norm=max_norm)
    for ours, published in zip(of_torch, score_batch(vectors, chosen, batch), strict=True):
        torch.testing.assert_close(ours, published)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("partitions", [1, 3])
def test_ranks_losses_and_auc_equal_those_counted_one_by_one(
    tmp_path, graphs, settings, monkeypatch, directed, partitions
):
    monkeypatch.setattr(link_prediction, "NEGATIVES", 20)
    imported = graphs.imported(tmp_path, graphs.random(40, 250), directed=directed, partitions=partitions)
    vectors = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)
    batches = load_held_out(ImportedFolder(imported), seed=1)
    chosen = settings(loss=RankingLoss(kind="ranking", margin=0.5), max_norm=1.5)
    parts = Vectors(np.split(vectors, ImportedFolder(imported).starts()[1:-1]))
    scores = measure(batches, partial(score_batch, parts, chosen), loss_function(chosen))
    papers = ImportedFolder(imported).papers()
    edges = {edge for side in ("training", "holdout") for edge in graphs.edges(imported, side)}
    scaled = vectors * np.minimum(1, 1.5 / np.linalg.norm(vectors, axis=1))[:, None]
    assert len(batches) > 1
    for kind in ("raw", "filtered"):
        ranks, losses, wins, ties, pairs = [], 0.0, 0, 0, 0
        for batch in batches:
            for left in (True, False):
                positives, negatives = [], []
                for number in range(len(batch)):
                    lhs, rhs = batch.ends[0][number], batch.ends[1][number]
                    positive = scaled[lhs] @ scaled[rhs]
                    of_edge = []
                    for candidate in batch.candidates[0] if left else batch.candidates[1]:
                        replaced = (candidate, rhs) if left else (lhs, candidate)
                        known = (papers[replaced[0]], papers[replaced[1]]) in edges
                        if replaced != (lhs, rhs) and not (kind == "filtered" and known):
                            of_edge.append(scaled[replaced[0]] @ scaled[replaced[1]])
                    ranks.append(1 + sum(score >= positive for score in of_edge))
                    losses += sum(max(0.0, 0.5 + score - positive) for score in of_edge)
                    positives.append(positive)
                    negatives.extend(of_edge)
                margins = np.subtract.outer(positives, negatives)
                wins, ties = wins + (margins > 1e-6).sum(), ties + (abs(margins) <= 1e-6).sum()
                pairs += margins.size
        measured, count = scores[kind], len(ranks) // 2
        assert measured["mean_rank"] == pytest.approx(np.mean(ranks))
        assert measured["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))
        for most in (1, 10, 50):
            assert measured[f"hits_at_{most}"] == pytest.approx(np.mean(np.array(ranks) <= most))
        assert measured["loss"] == pytest.approx(losses / count, rel=1e-4)
        # The edges of a batch stand among the raw negatives of one another, where rounding decides.
        assert wins / pairs <= measured["auc"] <= (wins + ties) / pairs
        assert ties < 0.01 * pairs


def test_every_model_of_a_graph_is_measured_on_the_same_edges_and_negatives(tmp_path, graphs):
    """Whatever the partitions and the weights, and so the rows that papers have."""
    pairs = graphs.random(60, 400)
    asked = []
    for changed in ({}, {"partitions": 3}, {"weights": True}):
        folder = tmp_path / str(len(asked))
        folder.mkdir()
        imported = graphs.imported(folder, pairs, **changed)
        papers = ImportedFolder(imported).papers()
        (batch,) = load_held_out(ImportedFolder(imported), seed=1)
        rows = (*batch.ends, *batch.candidates)
        asked.append([papers[part].tolist() for part in rows])
    assert asked[0] == asked[1] == asked[2]


def test_of_many_held_out_edges_a_sample_is_measured(tmp_path, graphs, monkeypatch, capsys):
    imported = graphs.imported(tmp_path, graphs.random(100, 2000), directed=True)
    held = graphs.edges(imported, "holdout")
    monkeypatch.setattr(link_prediction, "NEGATIVES", 50)
    monkeypatch.setattr(link_prediction, "MOST_EDGES", 130)
    papers = ImportedFolder(imported).papers()
    chosen = [
        (int(papers[source]), int(papers[target]))
        for batch in load_held_out(ImportedFolder(imported), seed=1)
        for source, target in zip(*batch.ends, strict=True)
    ]
    assert len(set(chosen)) == len(chosen) == 100
    assert set(chosen) < set(held)
    assert f"measured on 100 of {len(held)} held-out edges" in capsys.readouterr().err


LOSSES = [RankingLoss(kind="ranking", margin=0.3), LogisticLoss(kind="logistic"), SoftmaxLoss(kind="softmax")]


@pytest.fixture
def scores():
    """Of five edges, and of seven negatives each, one of which is left out."""
    drawn = torch.Generator().manual_seed(1)
    negatives = torch.randn(5, 7, generator=drawn)
    negatives[2, 3] = LEFT_OUT
    return torch.randn(5, generator=drawn), negatives


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_a_loss_and_its_gradients_are_the_published_ones_and_what_is_left_out_moves_nothing(loss, scores):
    ours, theirs = ([part.clone().requires_grad_() for part in scores] for _ in range(2))
    of_edges = edge_loss(loss)(*ours)
    expected = loss_function(BigGraph(loss=loss))(*theirs)
    assert of_edges.shape == (5,)
    torch.testing.assert_close(of_edges.sum(), expected)
    of_edges.sum().backward()
    expected.backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)
    of_negatives = ours[1].grad
    assert of_negatives is not None
    assert of_negatives[2, 3] == 0
    assert torch.count_nonzero(of_negatives) > 0
