"""The losses of edges among their negatives, as PyTorch-BigGraph defines them (Lerer et al., 2019, section 3.1).

A loss takes the scores of edges, and the scores of their negatives, edges × negatives; it gives one value an edge. A
negative that does not count has the score `LEFT_OUT`, at which every loss and its gradient are 0.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from cocite.config.edge_training import EdgeLoss, LogisticLoss, RankingLoss

LEFT_OUT = -1e9

LossOfEdges = Callable[[Tensor, Tensor], Tensor]


def edge_loss(chosen: EdgeLoss) -> LossOfEdges:
    """The loss that the settings name."""
    if isinstance(chosen, RankingLoss):
        return partial(ranking, margin=chosen.margin)
    return logistic if isinstance(chosen, LogisticLoss) else softmax


def ranking(edges: Tensor, negatives: Tensor, *, margin: float) -> Tensor:
    """By how much each negative comes closer to its edge than the margin, summed over the negatives."""
    return (negatives - edges.unsqueeze(1) + margin).clamp_min(0).sum(1)


def logistic(edges: Tensor, negatives: Tensor) -> Tensor:
    """Binary cross-entropy of the edge, and that of its negatives on average."""
    return functional.softplus(-edges) + functional.softplus(negatives).mean(1)


def softmax(edges: Tensor, negatives: Tensor) -> Tensor:
    """Cross-entropy of the edge among its negatives."""
    return functional.softplus(torch.logsumexp(negatives, 1) - edges)
