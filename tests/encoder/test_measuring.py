"""The validation set is measured rightly, and what ends a training early is reported with its cause."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from tests.encoder.building import AfterSteps, trained

from cocite.core.errors import InputError
from cocite.encoder import schedule
from cocite.encoder.batch import build_batch
from cocite.encoder.documents import documents_of
from cocite.encoder.examples import Examples, Links
from cocite.encoder.measuring import explained_memory, rank_correlation
from cocite.encoder.objective import Objective


@pytest.fixture
def batch():
    """Two triplets of the queries 100 and 101, over four documents."""
    documents = documents_of([np.zeros(1, np.int32)] * 4)
    positives, negatives = (Links(documents=np.full(2, paper), starts=np.arange(3)) for paper in (2, 3))
    examples = Examples(
        queries=np.array([0, 1]), positives=positives, negatives=negatives, documents=documents, ids=np.arange(100, 104)
    )
    return build_batch(examples, np.array([0, 1]))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_lack_of_memory_names_the_settings_to_lower(batch, error):
    sentence = r"4 documents.*mini_batch_tokens.*batch_size"
    with pytest.raises(InputError, match=sentence), explained_memory(batch):
        raise error


def test_other_errors_are_left_as_they_are(batch):
    with pytest.raises(RuntimeError, match="shapes"), explained_memory(batch):
        raise RuntimeError("shapes do not match")


def test_a_training_that_runs_out_of_memory_says_so(inputs, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr("cocite.encoder.objective._passed", fail)
    with pytest.raises(InputError, match="Memory ran out over a batch of"):
        trained(tmp_path, inputs)


@pytest.mark.parametrize("stops_after", [4, 99])
def test_a_loss_that_is_not_a_number_is_reported_with_its_step_before_it_is_logged_or_saved(
    inputs, tmp_path, monkeypatch, stops_after
):
    calls = []

    def spoilt(objective, batch):
        calls.append(1)
        return computed(objective, batch) * (float("nan") if len(calls) == 3 else 1)

    computed = Objective.__call__
    monkeypatch.setattr(Objective, "__call__", spoilt)
    monkeypatch.setattr(schedule, "LOGS", 1)  # one log, after the last of six steps
    with pytest.raises(InputError, match="nan at step 3;"):
        trained(tmp_path, inputs, AfterSteps(stops_after), validations=1)
    assert not (tmp_path / "state/checkpoint.safetensors").exists()


def test_rank_correlation_by_hand():
    # The ranks of the positives are 4 and 3, of the negatives 1 and 2: Pearson's is 2 / √5; swapped, its opposite.
    near, far = np.array([0.9, 0.8]), np.array([0.1, 0.2])
    assert rank_correlation(near, far) == pytest.approx(2 / math.sqrt(5))
    assert rank_correlation(far, near) == pytest.approx(-2 / math.sqrt(5))
    # With all of three alike but one positive, ranks 4 and 2, 2, 2: 1 / √3.
    assert rank_correlation(np.array([0.9, 0.5]), np.array([0.5, 0.5])) == pytest.approx(1 / math.sqrt(3))
    assert rank_correlation(near * 0, far * 0) == 0.0


def test_rank_correlation_is_that_of_scipy_with_ties_and_without():
    random = np.random.default_rng(1)
    for digits in (1, 8):
        near, far = random.normal(0.2, size=30).round(digits), random.normal(size=50).round(digits)
        expected = spearmanr(np.concatenate([near, far]), [1] * 30 + [0] * 50).statistic
        assert rank_correlation(near, far) == pytest.approx(expected, rel=1e-12)
