"""The losses against figures worked out elsewhere, and against loops that follow their definitions."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encoder import loops
from tests.examples import OVER_EXAMPLES

from cocite.config.encoders import LOSSES
from cocite.config.entries import plugins
from cocite.config.models import TrainingSettings
from cocite.encoder import losses
from cocite.encoder.batch import PairIndices


def call(name, vectors, batch, **settings):
    """The loss of that name and these settings."""
    return plugins(LOSSES, "kind")[name](kind=name, **settings)(vectors, batch)


angle, cosent, infonce, mnrl, supcon, triplet = (partial(call, name) for name in OVER_EXAMPLES)

QUERY = torch.tensor([[1, 0, 2, 1], [0, 1, 1, -1]], dtype=torch.float64)
POSITIVE = torch.tensor([[1, 1, 1, 0], [1, 1, 0, -1]], dtype=torch.float64)
NEGATIVE = torch.tensor([[0, 1, 2, 1], [-1, 1, 1, 0]], dtype=torch.float64)
VECTORS = torch.cat([QUERY, POSITIVE, NEGATIVE])
"""Two queries, rows 0 and 1; their positives, rows 2 and 3; their negatives, rows 4 and 5."""


def batch_of(*examples):
    """Examples (query, positives, negatives) of numbers of documents."""
    positives = [(query, document) for query, near, _ in examples for document in near]
    negatives = [(query, document) for query, _, far in examples for document in far]
    triplets = [(query, one, other) for query, near, far in examples for one in near for other in far]
    return PairIndices(
        positives=torch.tensor(positives, dtype=torch.int64).reshape(-1, 2),
        negatives=torch.tensor(negatives, dtype=torch.int64).reshape(-1, 2),
        triplets=torch.tensor(triplets, dtype=torch.int64).reshape(-1, 3),
        frequencies=torch.arange(1.0, 10.0),
    )


PAIRED = batch_of((0, [2], [4]), (1, [3], [5]))
UNPAIRED = batch_of((0, [2], [4, 5]), (1, [3], [4, 5]))

# CoSENT with τ = 20 by hand: cosines 3/√18 and 2/3 (positive), 5/6 and 2/3 (negative);
# log(1 + e^(20·0.126227) + e^(20·0.166667) + e^(−20·0.040440) + e^0) = log 42.96206 = 3.760317.
PUBLISHED = {
    "triplet": (partial(triplet, margin=1.0), PAIRED, 1.158919),
    "cosent, 20": (partial(cosent, scale=20.0), PAIRED, 3.760317),
    "cosent, 1": (partial(cosent, scale=1.0), PAIRED, 1.663219),
    "angle, 20": (partial(angle, scale=20.0), PAIRED, 0.001308),
    "angle, 1": (partial(angle, scale=1.0), PAIRED, 1.095787),
    "infonce, unpaired": (partial(infonce, temperature=0.1), UNPAIRED, 1.137573),
    "infonce, paired": (partial(infonce, temperature=0.1), PAIRED, 1.102312),
    "mnrl": (partial(mnrl, scale=20.0, sampled_negatives=True), PAIRED, 1.853444),
    "mnrl, without negatives": (partial(mnrl, scale=20.0, sampled_negatives=False), PAIRED, 0.346574),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_loss_equals_the_worked_example(name):
    loss, batch, expected = PUBLISHED[name]
    assert loss(VECTORS, batch).item() == pytest.approx(expected, abs=5e-7)


LOOPS = {
    "mnrl": (partial(mnrl, scale=4.0, sampled_negatives=True), loops.loop_mnrl),
    "mnrl, without negatives": (
        partial(mnrl, scale=4.0, sampled_negatives=False),
        partial(loops.loop_mnrl, sampled_negatives=False),
    ),
    "mnrl, log_q": (partial(mnrl, scale=4.0, log_q=0.5), partial(loops.loop_mnrl, log_q=0.5)),
    "supcon": (partial(supcon, temperature=0.3), partial(loops.loop_supcon, temperature=0.3)),
    "triplet": (partial(triplet, margin=0.5), loops.loop_triplet),
    "infonce": (partial(infonce, temperature=0.2), partial(loops.loop_infonce, temperature=0.2)),
    "cosent": (partial(cosent, scale=3.0), lambda v, examples: loops.pairwise_ranking(loops.cosine, v, examples, 3.0)),
    "angle": (
        partial(angle, scale=3.0),
        lambda v, examples: loops.pairwise_ranking(loops.complex_similarity, v, examples, 3.0),
    ),
}
DOCUMENTS = st.lists(st.integers(0, 8), min_size=1, max_size=3, unique=True)
EXAMPLES = st.lists(st.tuples(st.integers(0, 8), DOCUMENTS, DOCUMENTS), min_size=1, max_size=5)


def random_vectors(seed, documents=9, dimension=6):
    return torch.tensor(np.random.default_rng(seed).normal(size=(documents, dimension)), requires_grad=True)


@pytest.mark.parametrize("name", LOOPS)
@given(seed=st.integers(0, 10_000), examples=EXAMPLES)
def test_each_loss_follows_its_definition_whatever_the_examples_share(name, seed, examples):
    loss, loop = LOOPS[name]
    vectors = random_vectors(seed)
    expected = loop(vectors.tolist(), examples)
    assert loss(vectors, batch_of(*examples)).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_are_those_of_finite_differences(name):
    batch = batch_of((0, [3, 4], [5]), (0, [6], [7]), (1, [4], [8, 3]), (2, [1], [0]))
    assert torch.autograd.gradcheck(lambda vectors: LOOPS[name][0](vectors, batch), random_vectors(3))


@pytest.mark.parametrize("name", ["mnrl", "mnrl, without negatives", "mnrl, log_q", "infonce", "supcon"])
def test_a_large_batch_is_compared_in_blocks_with_the_same_loss_and_gradients(name, monkeypatch):
    loss, loop = LOOPS[name]
    examples = [(0, [3, 4], [5]), (0, [6], [7]), (1, [4], [8, 3]), (2, [1], [0]), (5, [1, 2], [0])]
    whole, blocks = random_vectors(3), random_vectors(3)
    loss(whole, batch_of(*examples)).backward()
    monkeypatch.setattr(losses, "COMPARISONS_AT_ONCE", 20)
    in_blocks = loss(blocks, batch_of(*examples))
    in_blocks.backward()
    assert in_blocks.item() == pytest.approx(loop(blocks.tolist(), examples), rel=1e-9)
    torch.testing.assert_close(blocks.grad, whole.grad)


@pytest.mark.parametrize("name", OVER_EXAMPLES)
def test_a_batch_without_negatives_has_a_finite_loss_and_finite_gradients(name):
    vectors = VECTORS.clone().requires_grad_()
    loss = call(name, vectors, batch_of((0, [2], []), (1, [3], [])))
    loss.backward()
    assert loss.isfinite()
    assert vectors.grad.isfinite().all()


def test_rankings_stay_finite_where_the_sum_over_pairs_overflows():
    vectors = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0]])
    assert cosent(vectors, batch_of((0, [1], [2])), scale=200.0).item() == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("triplet", "triplet"),
        ("infonce", "infonce, paired"),
        ("cosent", "cosent, 20"),
        ("angle", "angle, 20"),
        ("mnrl", "mnrl"),
    ],
)
def test_a_temperature_or_scale_left_out_is_the_published_one(name, expected):
    given = TrainingSettings(loss=name).loss(VECTORS, PAIRED)
    assert given.item() == pytest.approx(PUBLISHED[expected][2], abs=5e-7)
