"""What ends a training early is told with its cause."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cocite.encoder import training
from cocite.encoder.batches import arranged
from cocite.encoder.examples import examples_of_triplets
from cocite.encoder.faults import check_loss, explained_memory, unread
from cocite.encoder.objective import Objective
from cocite.encoder.settings import TrainingSettings
from cocite.encoder.stopping import Stopping
from cocite.encoder.tokens import Documents
from cocite.encoder.training import Inputs, train_encoder
from cocite.ground.errors import InputError


@pytest.fixture
def batch():
    """Two triplets of the queries 100 and 101, over four documents."""
    documents = Documents(tokens=np.zeros(4, np.int32), starts=np.arange(5))
    examples = examples_of_triplets(np.array([[0, 2, 3], [1, 2, 3]]), documents, np.arange(100, 104))
    groups = [{"input_ids": torch.zeros(3, 9)}, {"input_ids": torch.zeros(1, 5)}]
    return replace(arranged(examples, np.array([0, 1])), groups=groups), examples


def checked(value, batch, vectors, step):
    check_loss(value, unread(torch.tensor(value), batch[0], vectors, step), batch[1])


def test_the_documents_without_finite_vectors_are_named(batch):
    vectors = torch.tensor([[0.0, 1.0], [float("nan"), 0.0], [1.0, 1.0], [0.0, float("inf")]])
    with pytest.raises(InputError, match=r"nan at step 7 \(2 of the 4 documents .* not finite: 101, 103\)"):
        checked(float("nan"), batch, vectors, step=7)


def test_the_queries_are_named_where_the_loss_itself_overflows(batch):
    with pytest.raises(InputError, match=r"inf at step 2 \(all vectors are finite; the queries .* are 100, 101\)"):
        checked(float("inf"), batch, torch.ones(4, 2), step=2)


def test_a_loss_that_is_a_number_passes(batch):
    checked(0.5, batch, torch.full((4, 2), float("nan")), step=1)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_lack_of_memory_names_the_settings_to_lower(batch, error):
    told = r"4 documents of up to 9 tokens, 3 of them at once.*at_once.*batch_size"
    with pytest.raises(InputError, match=told), explained_memory(batch[0]):
        raise error


def test_a_lack_of_memory_over_packed_documents_counts_them(batch):
    row = {"input_ids": torch.zeros(1, 23), "cu_seq_lens_q": torch.tensor([0, 9, 14, 20, 23]), "max_length_q": 9}
    with (
        pytest.raises(InputError, match=r"4 documents of up to 9 tokens, 4 of them"),
        explained_memory(replace(batch[0], groups=[row])),
    ):
        raise MemoryError


def test_other_errors_are_left_as_they_are(batch):
    with pytest.raises(RuntimeError, match="shapes"), explained_memory(batch[0]):
        raise RuntimeError("shapes do not match")


def test_a_training_that_runs_out_of_memory_says_so(encoder, triplets, outputs_in, tmp_path, monkeypatch):
    def fail(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Objective, "_embed", fail)
    inputs = Inputs(encoder=encoder, training=triplets / "training.parquet", validation=triplets / "validation.parquet")
    where = {"threads": 1, "state": tmp_path / "state", "stopping": Stopping()}
    with pytest.raises(InputError, match="Memory ran out over a batch of"):
        train_encoder(inputs, outputs_in(tmp_path), TrainingSettings(), seed=1, training_seed=1, **where)


@pytest.mark.parametrize("stops_after", [4, None])
def test_a_loss_that_is_no_number_is_told_with_its_step_before_it_is_logged_or_saved(
    encoder, triplets, outputs_in, tmp_path, monkeypatch, stops_after
):
    class After(Stopping):
        steps = 0

        def reason(self):
            self.steps += 1
            return "a test" if self.steps == stops_after else None

    calls = []

    def spoilt(objective, batch):
        calls.append(1)
        loss, vectors = computed(objective, batch)
        return loss * (float("nan") if len(calls) == 3 else 1), vectors

    computed = Objective.__call__
    monkeypatch.setattr(Objective, "__call__", spoilt)
    monkeypatch.setattr(training, "LOGS", 1)  # one log, after the last of six steps
    inputs = Inputs(encoder=encoder, training=triplets / "training.parquet", validation=triplets / "validation.parquet")
    where = {"threads": 1, "state": tmp_path / "state", "stopping": After()}
    settings = TrainingSettings(batch_size=4, evaluations=1)
    with pytest.raises(InputError, match="nan at step 3 "):
        train_encoder(inputs, outputs_in(tmp_path), settings, seed=1, training_seed=1, **where)
    assert list((tmp_path / "state").glob("checkpoint-*")) == []
