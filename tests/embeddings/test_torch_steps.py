"""A step of the engine torch is one of PyTorch-BigGraph, in either of its two forms."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchbiggraph.losses import LOSS_FUNCTIONS
from torchbiggraph.model import COMPARATORS
from torchbiggraph.row_adagrad import RowAdagrad

from cocite.config.engine import RankingLoss
from cocite.embeddings.engines import Torch
from cocite.embeddings.torch_compiled_step import CpuStep
from cocite.embeddings.torch_step import Batch, Side, Step, make_batches

PAPERS, EDGES, DIMENSION = 40, 53, 6
STEPS = [Step, CpuStep]
SETTINGS: dict[str, Any] = {
    **{"engine": "torch", "dimension": DIMENSION, "lr": 0.1, "batch_size": 20, "batch_negatives": 10},
    **{"uniform_negatives": 5, "threads": 2},
}
TINY = {"batch_negatives": 2, "batch_size": 2, "uniform_negatives": 0}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"max_norm": None},
    {"max_norm": 0.5},
    {"comparator": "cos", "loss": {"kind": "ranking", "margin": 0.5}},
    {"loss": "logistic"},
    {"loss": "softmax", "comparator": "cos"},
    {"batch_negatives": 0},
    {"uniform_negatives": 0, "loss": "logistic"},
]


def settings(**changed: Any) -> Torch:
    return Torch(**{**SETTINGS, **changed})


def first_vectors() -> Tensor:
    """Vectors of all papers, and of nobody, none of which is longer than allowed."""
    drawn = torch.randn(PAPERS + 1, DIMENSION, generator=torch.Generator().manual_seed(3))
    return torch.renorm(drawn, 2, 0, 0.5)


def batches(chosen: Torch, seed: int = 1) -> list[Batch]:
    """53 edges among 40 papers: some papers come more than once, and the last chunk is not full."""
    drawn = torch.Generator().manual_seed(seed)
    edges = torch.randint(PAPERS, (2, EDGES), generator=drawn, dtype=torch.int32)
    sides = Side(first=0, papers=PAPERS), Side(first=0, papers=PAPERS)
    return list(make_batches(edges, torch.ones(EDGES), sides, chosen, drawn))


def train(
    kind: Callable[..., Step], chosen: Torch, precision: torch.dtype = torch.float32
) -> tuple[Tensor, list[float]]:
    vectors, squares = first_vectors(), torch.zeros(PAPERS + 1)
    step = kind(chosen, vectors, squares, precision)
    step.seed(1)
    return vectors[:PAPERS], [float(step.train(batch)) for batch in batches(chosen)]


def published(chosen: Torch) -> tuple[Tensor, list[float]]:
    """What `train` gives, with the comparators, losses and optimiser of PyTorch-BigGraph."""
    vectors = nn.Embedding(PAPERS + 1, DIMENSION, sparse=True, max_norm=chosen.max_norm)
    vectors.weight.data = first_vectors()
    compare, kind = COMPARATORS.get_class(chosen.comparator)(), LOSS_FUNCTIONS.get_class(chosen.loss.kind)
    loss_of = kind(chosen.loss.margin) if isinstance(chosen.loss, RankingLoss) else kind()
    optimizer, losses = RowAdagrad(vectors.parameters(), lr=chosen.lr), []
    for batch in batches(chosen):
        optimizer.zero_grad()
        sources, targets = compare.prepare(vectors(batch.rows.long()))
        first = 0 if chosen.batch_negatives else batch.edges
        own, *of_sides = compare(
            sources[:, : batch.edges], targets[:, : batch.edges], sources[:, first:], targets[:, first:]
        )
        if chosen.batch_negatives:
            itself = torch.arange(batch.edges)
            for negatives in of_sides:
                negatives[:, itself, itself] = -1e9
        loss = sum(loss_of(own.flatten(), negatives.flatten(0, 1)) for negatives in of_sides)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    # PyTorch-BigGraph scales a vector back when it is looked up next, and not yet when it has moved.
    with torch.no_grad():
        return vectors(torch.arange(PAPERS)), losses


@pytest.mark.parametrize("changed", VARIANTS, ids=str)
@pytest.mark.parametrize("kind", STEPS)
def test_steps_are_those_of_pytorch_biggraph(kind, changed):
    chosen = settings(**changed)
    expected, expected_losses = published(chosen)
    vectors, losses = train(kind, chosen)
    assert len(losses) == {10: 4, 5: 4}[chosen.edges_in_chunk]
    assert not torch.allclose(vectors, first_vectors()[:PAPERS], atol=0.01)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    torch.testing.assert_close(vectors, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("loss", ["ranking", "logistic"])
def test_an_edge_without_weight_pulls_at_nothing(kind, loss):
    """One chunk of two edges: the papers of the one that counts move, and the other's only as its negatives."""
    rows = torch.tensor([[[0, 1]], [[2, 3]]], dtype=torch.int32)
    chosen = settings(**TINY, loss=loss, max_norm=None)
    vectors = first_vectors()
    step = kind(chosen, vectors, torch.zeros(PAPERS + 1), torch.float32)
    step.train(Batch(rows=rows, edges=2, weights=torch.tensor([[1.0, 0.0]])))
    before = first_vectors()
    moved = vectors - before
    # Paper 1 stands in for the source of edge (0, 2): it moves along paper 2 alone, and paper 3 along paper 0 alone.
    for paper, along in ((1, 2), (3, 0)):
        cosine = torch.cosine_similarity(moved[paper], before[along], dim=0)
        assert abs(cosine) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", STEPS)
def test_bfloat16_products_learn_the_same_up_to_their_rounding(kind):
    exact, _ = train(kind, settings())
    rounded, losses = train(kind, settings(), torch.bfloat16)
    assert np.isfinite(losses).all()
    assert torch.cosine_similarity(exact, rounded).median() > 0.98


@pytest.mark.parametrize("kind", STEPS)
def test_vectors_stored_in_bfloat16_are_right_on_average(kind):
    """A step of a fourth of what bfloat16 can tell apart, taken 40 times from 1, each time by chance or not at all."""
    chosen = settings(dimension=2, max_norm=None, **TINY, lr=2**-10)
    vectors, squares = torch.ones(PAPERS + 1, 2, dtype=torch.bfloat16), torch.full((PAPERS + 1,), 0.0)
    step = kind(chosen, vectors, squares, torch.float32)
    step.seed(7)
    rows = torch.arange(PAPERS, dtype=torch.int32).reshape(1, -1, 1)
    gradients = torch.ones(PAPERS, 2)
    for _ in range(40):
        squares.zero_()
        step._update(rows, gradients)
    moved = 1 - vectors[:PAPERS].float()
    # 40 papers of 2 numbers, which move by chance: their mean is known to some hundredths of itself.
    assert moved.mean().item() == pytest.approx(40 * 2**-10, rel=0.1)
    assert moved.std() > 0


def loss_of_first_batch(kind: Callable[..., Step], chosen: Torch, value: float) -> tuple[float, Tensor]:
    """The loss of a batch one of whose papers has this vector, and all vectors behind it."""
    (batch, *_), vectors = batches(chosen), first_vectors()
    vectors[int(batch.rows[0, 0, 0])] = value
    step = kind(chosen, vectors, torch.zeros(PAPERS + 1), torch.float32)
    return float(step.train(batch)), vectors


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_a_gradient_that_is_not_finite_shows_in_the_loss_as_does_a_step_too_long_to_be_scaled_back(kind, bad):
    chosen = settings(max_norm=None, loss="logistic")
    assert np.isnan(loss_of_first_batch(kind, chosen, bad)[0])
    assert not np.isnan(train(kind, chosen)[1]).any()
    assert np.isnan(train(kind, settings(lr=1e25))[1]).any()


@pytest.mark.parametrize("kind", STEPS)
def test_a_vector_of_zeros_can_be_compared_by_cosine(kind):
    chosen = settings(comparator="cos", loss={"kind": "ranking", "margin": 0.5})
    loss, vectors = loss_of_first_batch(kind, chosen, 0)
    assert np.isfinite(loss)
    assert vectors.isfinite().all()


def test_batches_hold_each_edge_once_in_its_order():
    made = batches(settings())
    edges = torch.randint(PAPERS, (2, EDGES), generator=torch.Generator().manual_seed(1), dtype=torch.int32)
    assert [(batch.rows.shape[1], batch.edges) for batch in made] == [(2, 10), (2, 10), (1, 10), (1, 3)]
    together = torch.cat([batch.rows[:, :, : batch.edges].flatten(1) for batch in made], 1)
    assert torch.equal(together, edges)
    assert all(batch.rows.shape[2] == batch.edges + 5 for batch in made)


def test_negatives_are_drawn_from_the_side_whose_end_they_replace():
    chosen = settings(uniform_negatives=30)
    edges = torch.zeros(2, 20, dtype=torch.int32)
    sides = Side(first=0, papers=7), Side(first=100, papers=3)
    (batch,) = make_batches(edges, torch.ones(20), sides, chosen, torch.Generator().manual_seed(1))
    sources, targets = (set(side[:, 10:].flatten().tolist()) for side in batch.rows)
    assert sources == set(range(7))
    assert targets == {100, 101, 102}


UPDATED = """\
import hashlib
import numpy as np
from cocite.embeddings.torch_compiled_step import update
vectors, gradients = np.split(np.random.default_rng(1).normal(size=(2500, 100)).astype(np.float32), [500])
keys, squares = np.sort(np.arange(2000) % 500 * 2000 + np.arange(2000)), np.zeros(500, np.float32)
for unit in (False, True):
    update(vectors, squares, gradients, keys, 2000, np.float32(0.1), np.float32(5), unit, np.uint32(7), 2)
print(hashlib.sha256(vectors.tobytes()).hexdigest())
"""


@pytest.mark.long
def test_the_process_that_compiles_a_step_gives_the_bits_of_those_that_load_it(tmp_path):
    command, environment = [sys.executable, "-c", UPDATED], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    digests = {subprocess.run(command, env=environment, capture_output=True, check=True).stdout for _ in range(2)}
    assert len(digests) == 1
