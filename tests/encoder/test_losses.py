"""The losses against figures worked out elsewhere, and against loops that follow their definitions."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cocite.encoder.losses.angle import loss as angle
from cocite.encoder.losses.cosent import loss as cosent
from cocite.encoder.losses.infonce import loss as infonce
from cocite.encoder.losses.mnrl import loss as mnrl
from cocite.encoder.losses.supcon import loss as supcon
from cocite.encoder.losses.triplet import loss as triplet
from cocite.encoder.objective import loss_of
from cocite.encoder.settings import TrainingSettings, training_settings
from cocite.errors import InputError

QUERY = torch.tensor([[1, 0, 2, 1], [0, 1, 1, -1]], dtype=torch.float64)
POSITIVE = torch.tensor([[1, 1, 1, 0], [1, 1, 0, -1]], dtype=torch.float64)
NEGATIVE = torch.tensor([[0, 1, 2, 1], [-1, 1, 1, 0]], dtype=torch.float64)
ONE_QUERY = torch.tensor([7, 7])
TWO_QUERIES = torch.tensor([7, 8])

# CoSENT with τ = 20 by hand: cosines 3/√18 and 2/3 (positive), 5/6 and 2/3 (negative);
# log(1 + e^(20·0.126227) + e^(20·0.166667) + e^(−20·0.040440) + e^0) = log 42.96206 = 3.760317.
PUBLISHED = {
    "triplet": (partial(triplet, margin=1.0), TWO_QUERIES, 1.158919),
    "cosent, 20": (partial(cosent, temperature=20.0), TWO_QUERIES, 3.760317),
    "cosent, 1": (partial(cosent, temperature=1.0), TWO_QUERIES, 1.663219),
    "angle, 20": (partial(angle, temperature=20.0), TWO_QUERIES, 0.001308),
    "angle, 1": (partial(angle, temperature=1.0), TWO_QUERIES, 1.095787),
    "infonce, one query": (partial(infonce, temperature=0.1), ONE_QUERY, 1.137573),
    "infonce, two queries": (partial(infonce, temperature=0.1), TWO_QUERIES, 1.102312),
    "mnrl": (partial(mnrl, temperature=20.0, sampled_negatives=True), TWO_QUERIES, 1.853444),
    "mnrl, without negatives": (partial(mnrl, temperature=20.0, sampled_negatives=False), TWO_QUERIES, 0.346574),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_loss_equals_the_worked_example(name):
    loss, queries, expected = PUBLISHED[name]
    assert loss(QUERY, POSITIVE, NEGATIVE, queries).item() == pytest.approx(expected, abs=5e-7)


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def complex_similarity(x, y):
    half = len(x) // 2
    norms = math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))
    total = 0.0
    for a, b, c, d in zip(x[:half], x[half:], y[:half], y[half:], strict=True):
        quotient = complex(a, b) * complex(c, d).conjugate() / norms
        total += quotient.real + quotient.imag
    return abs(total)


def pairwise_ranking(similarity, q, p, n, temperature):
    near = [similarity(a, b) for a, b in zip(q, p, strict=True)]
    far = [similarity(a, b) for a, b in zip(q, n, strict=True)]
    return math.log(1 + sum(math.exp(temperature * (f - s)) for f in far for s in near))


def loop_triplet(q, p, n, queries):
    def distance(x, y):
        return math.sqrt(sum((a - b + 1e-6) ** 2 for a, b in zip(x, y, strict=True)))

    return sum(max(0.0, distance(a, b) - distance(a, c) + 0.5) for a, b, c in zip(q, p, n, strict=True)) / len(q)


def loop_infonce(q, p, n, queries):
    total = 0.0
    for i, query in enumerate(queries):
        own = math.exp(cosine(q[i], p[i]) / 0.2)
        against = sum(math.exp(cosine(q[i], n[j]) / 0.2) for j, other in enumerate(queries) if other == query)
        total -= math.log(own / (own + against))
    return total / len(queries)


def loop_mnrl(q, p, n, queries, *, sampled_negatives=True):
    total = 0.0
    for i, query in enumerate(queries):
        others = [p[j] for j, other in enumerate(queries) if other != query] + (n if sampled_negatives else [])
        own = math.exp(4.0 * cosine(q[i], p[i]))
        total -= math.log(own / (own + sum(math.exp(4.0 * cosine(q[i], document)) for document in others)))
    return total / len(queries)


def loop_supcon(q, p, n, queries):
    total = 0.0
    for i, query in enumerate(queries):
        of_query = [j for j, other in enumerate(queries) if other == query]
        every = sum(math.exp(cosine(q[i], documents[j]) / 0.3) for documents in (p, n) for j in of_query)
        total -= math.log(math.exp(cosine(q[i], p[i]) / 0.3) / every)
    return total / len(queries)


LOOPS = {
    "mnrl": (partial(mnrl, temperature=4.0, sampled_negatives=True), loop_mnrl),
    "mnrl, without negatives": (
        partial(mnrl, temperature=4.0, sampled_negatives=False),
        partial(loop_mnrl, sampled_negatives=False),
    ),
    "supcon": (partial(supcon, temperature=0.3), loop_supcon),
    "triplet": (partial(triplet, margin=0.5), loop_triplet),
    "infonce": (partial(infonce, temperature=0.2), loop_infonce),
    "cosent": (partial(cosent, temperature=3.0), lambda q, p, n, _: pairwise_ranking(cosine, q, p, n, 3.0)),
    "angle": (partial(angle, temperature=3.0), lambda q, p, n, _: pairwise_ranking(complex_similarity, q, p, n, 3.0)),
}


def random_triplets(seed, rows=5, dimension=6):
    vectors = np.random.default_rng(seed).normal(size=(3, rows, dimension))
    return [torch.tensor(column, requires_grad=True) for column in vectors]


@pytest.mark.parametrize("name", LOOPS)
@given(seed=st.integers(0, 10_000), queries=st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_each_loss_follows_its_definition(name, seed, queries):
    loss, loop = LOOPS[name]
    columns = random_triplets(seed)
    expected = loop(*(column.tolist() for column in columns), queries)
    assert loss(*columns, torch.tensor(queries)).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_are_those_of_finite_differences(name):
    queries = torch.tensor([0, 0, 1, 1, 2])
    assert torch.autograd.gradcheck(lambda *columns: LOOPS[name][0](*columns, queries), random_triplets(3))


def test_infonce_ignores_the_documents_of_other_queries():
    queries = torch.tensor([0, 0, 1, 1, 1])
    query, positive, negative = (column.detach() for column in random_triplets(4))
    alone = infonce(query[:2], positive[:2], negative[:2], queries[:2], temperature=0.1)
    others = infonce(query[2:], positive[2:], negative[2:], queries[2:], temperature=0.1)
    together = infonce(query, positive, negative, queries, temperature=0.1)
    assert together.item() == pytest.approx((2 * alone.item() + 3 * others.item()) / 5, rel=1e-12)


def test_rankings_stay_finite_where_the_sum_over_pairs_overflows():
    query = torch.tensor([[1.0, 0.0]])
    loss = cosent(query, -query, query, TWO_QUERIES[:1], temperature=200.0)
    assert loss.item() == pytest.approx(400.0)


def test_supcon_of_one_triplet_is_infonce_of_it():
    columns = [column[:1].detach() for column in random_triplets(6)]
    given = [loss(*columns, ONE_QUERY[:1], temperature=0.2).item() for loss in (supcon, infonce)]
    assert given[0] == pytest.approx(given[1], rel=1e-12)


def test_further_positives_of_a_query_are_no_negatives_of_it_in_mnrl():
    query, positive, negative = (column.detach() for column in random_triplets(7))
    same, told = torch.tensor([0, 0, 0, 0, 0]), {"temperature": 4.0, "sampled_negatives": True}
    alone = [mnrl(query[i : i + 1], positive[i : i + 1], negative, same[:1], **told).item() for i in range(5)]
    together = mnrl(query, positive, negative, same, **told).item()
    assert together == pytest.approx(sum(alone) / 5, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("triplet", "triplet"),
        ("infonce", "infonce, two queries"),
        ("cosent", "cosent, 20"),
        ("angle", "angle, 20"),
        ("mnrl", "mnrl"),
    ],
)
def test_a_temperature_left_out_is_the_published_one(name, expected):
    given = loss_of(TrainingSettings(loss=name))(QUERY, POSITIVE, NEGATIVE, TWO_QUERIES)
    assert given.item() == pytest.approx(PUBLISHED[expected][2], abs=5e-7)


def test_an_unknown_loss_is_refused():
    with pytest.raises(InputError, match="known are angle, cosent, infonce, mnrl, supcon, triplet"):
        TrainingSettings(loss="hinge")


def test_a_setting_that_the_loss_does_not_have_is_refused():
    with pytest.raises(InputError, match="the loss triplet: 'temperature' is not known; known are margin"):
        TrainingSettings(loss="triplet", of_loss={"temperature": 0.1})


def test_settings_as_json_hold_what_the_loss_is_told_beside_all_else():
    given = training_settings('{"loss": "mnrl", "sampled_negatives": false, "epochs": 3}')
    assert given == TrainingSettings(loss="mnrl", of_loss={"sampled_negatives": False}, epochs=3)
    told = loss_of(given)(QUERY, POSITIVE, NEGATIVE, TWO_QUERIES).item()
    assert told == pytest.approx(PUBLISHED["mnrl, without negatives"][2], abs=5e-7)
