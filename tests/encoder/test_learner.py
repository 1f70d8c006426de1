"""Losses that see the vectors through a head, or their leading dimensions too; vectors that are cut."""

import numpy as np
import pytest
import torch
from tests.examples import curve_in

from cocite.config.models import TrainingSettings
from cocite.config.settings import parse_settings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vectors_of
from cocite.encoder.batches import Collator
from cocite.encoder.embedding import embed_tables
from cocite.encoder.examples import open_examples
from cocite.encoder.learner import PROJECTION, Learner, new_learner
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Objective
from cocite.encoder.schedule import Stopping, Unfinished
from cocite.encoder.training import Training, train_encoder


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
    expected = sum(plain(vectors[:, :dimension], batch).item() for dimension in (4, 8, 16))
    assert loss.item() == pytest.approx(expected, rel=1e-6)


def test_a_loss_sees_what_the_projection_makes_of_the_vectors(encoder, batch):
    objective = objective_of(encoder, projection=5)
    loss, vectors = objective(batch)
    first, _, second = objective.learner.heads[PROJECTION]
    seen = torch.relu(vectors @ first.weight.T + first.bias) @ second.weight.T + second.bias
    assert seen.shape == (len(vectors), 5)
    assert loss.item() == pytest.approx(TrainingSettings(loss="mnrl").loss(seen, batch).item(), rel=1e-6)


def test_without_a_head_the_vectors_are_seen_as_they_are(encoder):
    vectors = torch.ones(2, 16)
    assert Learner(open_encoder(encoder)).seen_through(PROJECTION, vectors) is vectors


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


def test_matryoshka_and_a_projection_do_not_go_together():
    with pytest.raises(InputError, match="matryoshka has no effect on vectors behind a projection"):
        parse_settings(TrainingSettings, '{"matryoshka": [8], "projection": 8}')


@pytest.fixture
def train(inputs, outputs_in, tmp_path):
    """A function that trains into a folder of this name."""

    def run(name, stopping=None, **settings):
        folder = tmp_path / name
        given = TrainingSettings(**{"loss": "mnrl", "epochs": 4, "batch_size": 4, "lr": 3e-3, **settings})
        where = {"threads": 1, "state": folder / "state", "stopping": stopping}
        train_encoder(inputs, outputs_in(folder), given, seed=1, training_seed=1, **where)
        return folder

    return run


class AfterThreeSteps(Stopping):
    """Stops a training once."""

    steps = 0

    def reason(self):
        """After the third step."""
        self.steps += 1
        return "a test" if self.steps == 3 else None


def test_a_training_with_a_projection_learns_and_leaves_an_encoder_of_the_usual_kind(train, encoder):
    folder = train("projected", projection=8)
    losses = list(curve_in(folder, "training_loss").values())
    assert losses[-1] < losses[0]
    assert {path.name for path in (folder / "model").iterdir()} == {path.name for path in encoder.iterdir()}
    assert open_encoder(folder / "model").dimension == 16


def test_a_projection_goes_on_from_where_a_training_was_stopped(train):
    whole = train("whole", projection=8)
    with pytest.raises(Unfinished):
        train("stopped", AfterThreeSteps(), projection=8)
    stopped = train("stopped", projection=8)
    for file in ("model/model.safetensors", "curves.parquet"):
        assert (stopped / file).read_bytes() == (whole / file).read_bytes()


def test_the_weights_of_a_projection_move(encoder, inputs, tmp_path):
    settings = TrainingSettings(loss="mnrl", batch_size=4, lr=3e-3, projection=8, warmup=0.0)
    training, validation = (open_examples(files) for [files] in (inputs.training, inputs.validation))
    learner = new_learner(open_encoder(encoder), settings, seed=1)
    before = {name: weight.clone() for name, weight in learner.heads.named_parameters()}
    going = Training(learner, training, [validation], settings, seed=1, state=tmp_path)
    step, batches = next(going.steps())
    going.take(step, batches)
    assert learner.encoder.transformer.training  # the transformer is opened for embedding, without dropout
    assert all(not torch.equal(before[name], weight) for name, weight in learner.heads.named_parameters())


def test_vectors_are_cut_to_their_first_numbers(encoder, write_documents, tmp_path):
    documents = write_documents(tmp_path / "documents.parquet", {"a": ("bees", "nectar"), "b": ("loops", None)})

    def embedded(dimension):
        where = {"threads": 1, "state": tmp_path / "state", "dimension": dimension, "precision": "float32"}
        embed_tables(encoder, [documents], tmp_path / f"cut-{dimension}", **where)
        return vectors_of(read_table(tmp_path / f"cut-{dimension}/documents.parquet", "document_embeddings"))

    assert embedded(6).shape == (2, 6)
    np.testing.assert_array_equal(embedded(6), embedded(None)[:, :6])


def test_vectors_cannot_be_cut_to_more_numbers_than_they_have(encoder):
    with pytest.raises(InputError, match="gives vectors of 16 dimensions, and 17 are to be kept"):
        open_encoder(encoder, dimension=17)
