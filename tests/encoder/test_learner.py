"""Losses that see the vectors through a head, or their leading dimensions too; vectors that are cut."""

import numpy as np
import pytest
import torch
from tests.encoder.building import assert_goes_on, embedded, write_documents
from tests.examples import curve_in

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.encoder.batch import Collator
from cocite.encoder.data import open_examples
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import PROJECTION, Objective, new_learner


@pytest.fixture
def batch(inputs):
    terms = TrainingSettings(loss="mnrl").comparisons
    return Collator(examples=open_examples(inputs.training[0]), padding=0, comparisons=terms)(np.arange(6))


def objective_of(encoder, **settings):
    given = TrainingSettings(loss="mnrl", **settings)
    learner = new_learner(open_encoder(encoder), given, seed=1)
    learner.encoder.eval()
    return Objective(learner=learner, comparisons=given.comparisons, recompute=False, leading=given.matryoshka or ())


def test_matryoshka_adds_the_losses_of_the_leading_dimensions(encoder, batch):
    loss, vectors = objective_of(encoder, matryoshka=(4, 8))(batch)
    plain = TrainingSettings(loss="mnrl").loss
    expected = sum(plain(vectors[:, :dimension], batch.whole).item() for dimension in (4, 8, 16))
    assert loss.item() == pytest.approx(expected, rel=1e-6)


def test_a_loss_sees_what_the_projection_makes_of_the_vectors(encoder, batch):
    objective = objective_of(encoder, projection=5)
    loss, vectors = objective(batch)
    first, _, second = objective.learner.heads[PROJECTION]
    seen = torch.relu(vectors @ first.weight.T + first.bias) @ second.weight.T + second.bias
    assert seen.shape == (len(vectors), 5)
    assert loss.item() == pytest.approx(TrainingSettings(loss="mnrl").loss(seen, batch.whole).item(), rel=1e-6)


def test_heads_follow_from_the_seed(encoder):
    settings = TrainingSettings(projection=5)
    some, again, others = (new_learner(open_encoder(encoder), settings, seed).heads.state_dict() for seed in (1, 1, 2))
    name = "projection.0.weight"
    assert torch.equal(some[name], again[name])
    assert not torch.equal(some[name], others[name])


def test_more_leading_dimensions_than_there_are_are_refused(encoder):
    with pytest.raises(InputError, match="matryoshka has 16, but the encoder's vectors have only 16 dimensions"):
        new_learner(open_encoder(encoder), TrainingSettings(matryoshka=(8, 16)), seed=1)


def test_an_odd_number_of_dimensions_is_refused_by_angle(encoder, batch):
    given = TrainingSettings(loss="angle", projection=5)
    learner = new_learner(open_encoder(encoder), given, seed=1)
    with pytest.raises(InputError, match="angle needs an even number of dimensions, and there are 5"):
        Objective(learner=learner, comparisons=given.comparisons, recompute=False)(batch)


def test_a_training_with_a_projection_learns_and_leaves_an_encoder_of_the_usual_kind(train, encoder):
    folder = train(loss="mnrl", epochs=4, projection=8)
    losses = list(curve_in(folder, "training_loss").values())
    assert losses[-1] < losses[0]
    assert {path.name for path in (folder / "model").iterdir()} == {path.name for path in encoder.iterdir()}
    assert open_encoder(folder / "model").dimension == 16


def test_a_projection_goes_on_from_where_a_training_was_stopped(inputs, tmp_path):
    assert_goes_on(tmp_path, inputs, 3, loss="mnrl", epochs=2, projection=8)


def test_vectors_are_cut_to_their_first_numbers(encoder, tmp_path):
    documents = write_documents(tmp_path / "documents.parquet", {"a": ("bees", "nectar"), "b": ("loops", None)})

    cut, whole = (
        embedded(encoder, documents, tmp_path / f"cut-{dimension}", dimension=dimension) for dimension in (6, None)
    )
    assert cut.shape == (2, 6)
    np.testing.assert_array_equal(cut, whole[:, :6])
