"""SciDocs' recommendation: a small ranker learns from clicks what an embedding adds to other features.

Cohan et al. (2020, "SPECTER", section 4): a feed-forward network takes ten features of a query and a candidate, the
cosine of their embeddings among them, and is trained to score the clicked paper above the others that were shown, as in
the released code. Two details differ: the released code divides the loss by a constant, the propensity of one position,
and keeps the best of five epochs by the validation loss; here the last one is kept.
"""

from collections.abc import Collection, Iterable
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cocite.core.randomness import derive_seed
from cocite.evaluation.benchmark import Click
from cocite.evaluation.ranking import Similarity
from cocite.evaluation.scored import UnscorableError

HIDDEN, DROPOUT = 50, 0.4
MARGIN, DECAY, LARGEST_NORM = 0.1, 0.95, 5.0
BATCH, EPOCHS = 128, 5
NEGATIVES = 10
"""Papers of a click that it is compared with, the first ones shown."""

Features = NDArray[np.float32]


def rank_by_clicks(
    clicks: Iterable[Click], similarity: Similarity, known: Collection[str], *, seed: int
) -> dict[str, dict[str, float]]:
    """Train a ranker on the clicks for training, and score the candidates of the others by it. Documents that are not
    `known` are left out. Raises `UnscorableError` if there is no pair to train on."""
    splits: dict[str, list[tuple[str, list[Click], Features]]] = {"train": [], "test": []}
    for (split, name), rows in groupby(clicks, key=lambda click: (click.split, click.name)):
        shown = [row for row in rows if row.query in known and row.candidate in known]
        if shown:
            angles = similarity(shown[0].query, [row.candidate for row in shown])
            columns = np.column_stack([np.array([row.features for row in shown]), angles])
            splits[split].append((name, shown, columns.astype(np.float32)))
    pairs = []  # The features of the clicked paper with those of each other one.
    for _, shown, columns in splits["train"]:
        clicked = [place for place, row in enumerate(shown) if row.is_clicked]
        others = [place for place, row in enumerate(shown) if not row.is_clicked][:NEGATIVES]
        pairs += [(columns[place], columns[other]) for place in clicked for other in others]
    if not pairs:
        raise UnscorableError("There is no click to train the ranker on whose papers have vectors.")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums over threads come out differently with their number
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "recommendation") % 2**63)
            ranker = _fit(*(torch.from_numpy(np.stack(side)) for side in zip(*pairs, strict=True)))
    finally:
        torch.set_num_threads(threads)
    ranked = {}
    with torch.inference_mode():
        for name, shown, columns in splits["test"]:
            scores = ranker(torch.from_numpy(columns))[:, 0].tolist()
            ranked[name] = {row.candidate: score for row, score in zip(shown, scores, strict=True)}
    return ranked


def _fit(better: torch.Tensor, worse: torch.Tensor) -> nn.Module:
    """The trained network, from pairs × features of the clicked papers and of the others."""
    ranker = nn.Sequential(
        nn.Linear(better.shape[1], HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, 1), nn.Sigmoid()
    )
    optimiser = torch.optim.Adadelta(ranker.parameters(), lr=1.0, rho=DECAY)
    loss_of = nn.MarginRankingLoss(margin=MARGIN)
    ones = torch.ones(len(better), 1)
    for _ in range(EPOCHS):
        for places in torch.randperm(len(better)).split(BATCH):
            loss = loss_of(ranker(better[places]), ranker(worse[places]), ones[places])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(ranker.parameters(), LARGEST_NORM)
            optimiser.step()
    return ranker.eval()
