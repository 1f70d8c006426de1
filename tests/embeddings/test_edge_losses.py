"""The losses of edges are those of PyTorch-BigGraph, edge by edge."""

import pytest
import torch
from torch import Tensor
from torchbiggraph.losses import LOSS_FUNCTIONS

from cocite.config.edge_training import EdgeLoss, LogisticLoss, RankingLoss, SoftmaxLoss
from cocite.embeddings.losses import LEFT_OUT, edge_loss

LOSSES = [RankingLoss(kind="ranking", margin=0.3), LogisticLoss(kind="logistic"), SoftmaxLoss(kind="softmax")]


def published(loss: EdgeLoss) -> torch.nn.Module:
    kind = LOSS_FUNCTIONS.get_class(loss.kind)
    made: torch.nn.Module = kind(loss.margin) if isinstance(loss, RankingLoss) else kind()
    return made


@pytest.fixture
def scores() -> tuple[Tensor, Tensor]:
    """Of five edges, and of seven negatives each, one of which is left out."""
    drawn = torch.Generator().manual_seed(1)
    negatives = torch.randn(5, 7, generator=drawn)
    negatives[2, 3] = LEFT_OUT
    return torch.randn(5, generator=drawn), negatives


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_a_loss_and_its_gradients_are_the_published_ones(loss: EdgeLoss, scores: tuple[Tensor, Tensor]) -> None:
    ours, theirs = ([part.clone().requires_grad_() for part in scores] for _ in range(2))
    of_edges = edge_loss(loss)(*ours)
    expected = published(loss)(*theirs)
    assert of_edges.shape == (5,)
    torch.testing.assert_close(of_edges.sum(), expected)
    of_edges.sum().backward()
    expected.backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_what_is_left_out_moves_nothing(loss: EdgeLoss, scores: tuple[Tensor, Tensor]) -> None:
    edges, negatives = scores
    negatives.requires_grad_()
    edge_loss(loss)(edges, negatives).sum().backward()
    assert negatives.grad is not None
    assert negatives.grad[2, 3] == 0
    assert torch.count_nonzero(negatives.grad) > 0
