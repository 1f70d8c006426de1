"""Packed documents have the vectors and gradients of padded ones, and know nothing of their neighbours."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from cocite.config.models import TrainingSettings
from cocite.encoder import packing, tokens, training
from cocite.encoder.batches import Collator
from cocite.encoder.examples import open_examples
from cocite.encoder.losses.cosent import CoSent
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Objective
from cocite.encoder.packing import let_pack
from cocite.encoder.schedule import Stopping, Unfinished
from cocite.encoder.tokens import Documents, features_of, packed
from cocite.encoder.training import train_encoder
from cocite.tables.files import read_json


def documents_of(*texts: list[int]) -> Documents:
    return tokens.documents_of([np.array(text, dtype=np.int32) for text in texts])


FIVE, ONE, THREE = [7, 8, 9, 10, 11], [12], [13, 14, 15]


@pytest.fixture
def model(encoder):
    opened = open_encoder(encoder)
    opened.eval()
    return opened


def vectors_of(model, features):
    with torch.inference_mode():
        return model(features)


def test_documents_lie_one_after_the_other_and_each_counts_its_positions_from_zero():
    row = packed(documents_of(FIVE, ONE, THREE), np.array([2, 0]))
    assert row["input_ids"].tolist() == [THREE + FIVE]
    assert row["position_ids"].tolist() == [[0, 1, 2, 0, 1, 2, 3, 4]]
    assert row["cu_seq_lens_q"].tolist() == [0, 3, 8]
    assert row["max_length_q"] == 5


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_packed_documents_have_the_vectors_of_padded_ones(model, pooling):
    model.pooling = pooling
    documents, rows = documents_of(FIVE, ONE, THREE), np.arange(3)
    padded = vectors_of(model, features_of(documents, rows, 0))
    assert let_pack(model)
    torch.testing.assert_close(vectors_of(model, packed(documents, rows)), padded, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(vectors_of(model, features_of(documents, rows, 0)), padded)


def test_a_packed_document_knows_nothing_of_its_neighbours(model):
    let_pack(model)
    some, others = (
        vectors_of(model, packed(documents_of(neighbour, THREE), np.arange(2)))[1] for neighbour in (FIVE, ONE)
    )
    torch.testing.assert_close(some, others, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [None, 40])
def test_packing_leaves_the_gradients_as_they_are(model, inputs, size):
    examples = open_examples(inputs.training)
    objective = Objective(encoder=model, loss=CoSent(kind="cosent", temperature=5.0), recompute=bool(size))
    gradients = []
    for packs in (False, True):
        assert not packs or let_pack(model)
        batch = Collator(examples=examples, padding=0, start=10**6, mini_batch_tokens=size, packs=packs)(np.arange(8))
        model.zero_grad()
        loss, _ = objective(batch)
        loss.backward()
        learned = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        gradients.append({"loss": loss.detach(), **{name: gradient.clone() for name, gradient in learned.items()}})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-6)


def test_dropout_reaches_the_attention_of_packed_documents(model):
    let_pack(model)
    for layer in model.transformer.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    row = packed(documents_of(FIVE, THREE), np.arange(2))
    whole = vectors_of(model, row)
    model.train()
    assert not torch.allclose(vectors_of(model, row), whole)


def no_kernel(*_, **__):
    raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")


def heedless_kernel(query, key, value, **keywords):
    """Attention that sees the neighbours of packed documents."""
    if not query.is_nested:
        return scaled_dot_product_attention(query, key, value, **keywords)
    rows = (nested.transpose(1, 2).values().transpose(0, 1)[None] for nested in (query, key, value))
    attended = scaled_dot_product_attention(*rows)[0].transpose(0, 1)
    offsets = query.offsets()
    return torch.nested.nested_tensor_from_jagged(attended, offsets).transpose(1, 2)


@pytest.mark.parametrize("kernel", [no_kernel, heedless_kernel])
def test_without_a_kernel_that_does_it_right_documents_stay_padded(model, monkeypatch, kernel):
    monkeypatch.setattr(packing, "scaled_dot_product_attention", kernel)
    assert not let_pack(model)
    assert model.transformer.config._attn_implementation == "sdpa"


def test_other_architectures_stay_padded(model, monkeypatch):
    monkeypatch.setattr(packing, "ARCHITECTURES", ("another",))
    assert not let_pack(model)
    assert model.transformer.config._attn_implementation == "sdpa"


def test_a_training_as_on_a_gpu_that_was_stopped_ends_as_one_that_was_not(inputs, outputs_in, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "ON_GPU", "cpu")
    settings = TrainingSettings(epochs=2, batch_size=4, lr=1e-3)

    class AfterFourSteps(Stopping):
        steps = 0

        def reason(self):
            self.steps += 1
            return "a test" if self.steps == 4 else None

    def train(folder, stopping):
        where = {"threads": 1, "state": folder / "state", "stopping": stopping}
        train_encoder(inputs, outputs_in(folder), settings, seed=1, training_seed=1, **where)

    train(tmp_path / "whole", Stopping())
    with pytest.raises(Unfinished):
        train(tmp_path / "stopped", AfterFourSteps())
    train(tmp_path / "stopped", Stopping())
    for file in ("model/model.safetensors", "curves.parquet"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert packing.NAME not in str(read_json(tmp_path / "whole/model/config.json"))
